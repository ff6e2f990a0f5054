"""What the tests of the census share: quick settings, who hears of a run, tools."""

import json
import os
import sys

from msgspec import Raw

from earnest.census.ask import Timeouts
from earnest.census.record import Leg, Record
from earnest.census.task import Settings

PYTHON = os.path.realpath(sys.executable)

FAST = Settings(Timeouts(open_s=20.0, page_s=5.0, leg_s=30.0), install_s=60.0)


class Told:
    """What a run tells, kept."""

    def __init__(self):
        self.begun, self.finished, self.there = [], [], 0

    def begins(self, name):
        self.begun.append(name)

    def done(self, record):
        self.finished.append(record)

    def kept(self, count):
        self.there += count


def tool(name="read_note", **more):
    """A tool, with whatever else a test wants."""
    return {"name": name, "description": "Read a note", "inputSchema": {"type": "object"}, **more}


def leg(tools, *, modern=False, asked="legacy", hello=None):
    """A leg that listed these tools: objects, or the bytes of a page."""
    said = hello or {"serverInfo": {"name": "s", "version": "1"}, "capabilities": {"tools": {}}}
    page = Raw(tools if isinstance(tools, bytes) else json.dumps({"tools": tools}).encode())
    version = "2026-07-28" if modern else "2025-11-25"
    return Leg(
        asked=asked, modern=modern, version=version, hello=Raw(json.dumps(said).encode()), pages=(page,), open_s=0.5, list_s=0.6
    )


def made(name="s", tools=(), cohort="a", **more):
    """A record of a server that listed these tools in the older era."""
    given = {"legs": (leg(list(tools)),), "recorded": "2026-11-30", "licence": "MIT", "provenance": f"npm:{name}@1", **more}
    return Record(spec="0", name=name, cohort=cohort, source="npm", **given)

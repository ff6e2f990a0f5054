"""What the tests of the census share: quick settings, who hears of a run, tools."""

import os
import sys

from earnest.census.ask import Timeouts
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

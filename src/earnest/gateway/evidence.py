"""What assays have shown of tools, as the store keeps it and as resolution reads it (rows 3 and 6).

A violation holds for every pin and artefact until an assay that a person had kept shows otherwise. Support holds for one
definition of one artefact, started in one way: with these arguments, in this folder, with this environment. Where the artefact
cannot be known, or the server is at an address, there is none: what runs there tomorrow is not known to be what was assayed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from earnest.gateway.served import Launch
from earnest.store.base import Evidence


class Known(NamedTuple):
    """What evidence says of one tool now."""

    violated: frozenset[str]
    supported: frozenset[str]


def start_of(launch: Launch, names: Collection[str]) -> str:
    """A digest of how a server is started: its arguments, its folder, and the variables of `names` it is given."""
    env = sorted((name, hashlib.sha256(launch.env[name].encode()).hexdigest()) for name in names if name in launch.env)
    return hashlib.sha256(msgspec.json.encode([list(launch.argv), launch.cwd or "", env])).hexdigest()


def known(rows: Sequence[Evidence], tool: str, tool_pin: str, artefact: str, start: str) -> Known:
    """What rows say of a tool, as it is now."""
    own = [row for row in rows if row.tool == tool]
    violated = frozenset(row.hint for row in own if row.verdict == "violated")
    supported = frozenset(row.hint for row in own if holds(row, tool_pin, artefact, start))
    return Known(violated, supported - violated)


def holds(row: Evidence, tool_pin: str, artefact: str, start: str) -> bool:
    """Whether a row supports something of the tool as it is now."""
    if row.verdict != "supported" or not artefact or row.artefact != artefact or row.pin != tool_pin:
        return False
    return bool(_detail(row).get("start") == start)


def _detail(row: Evidence) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(row.detail)
    except msgspec.MsgspecError:
        return {}
    return value if isinstance(value, dict) else {}


def told(row: Evidence, tool_pin: str, artefact: str, start: str) -> dict[str, Any]:
    """A row for a person. `lane`: where it was stopped in a lane, rather than seen in an assay."""
    detail = _detail(row)
    return {
        "hint": row.hint,
        "verdict": row.verdict,
        "holds": row.verdict == "violated" or holds(row, tool_pin, artefact, start),
        "reason": str(detail.get("reason", "")),
        "tier": str(detail.get("tier", "")),
        "lane": str(detail.get("lane", "")),
        "calls": detail.get("calls", 0),
        "seen_at": row.seen_at,
    }

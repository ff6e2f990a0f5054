"""What the boxes of contained servers stopped, and what that says of a tool.

A tool has broken its word on read-only, or on closed-world, if its box stopped a change of files, or a connection, in two
calls of it that were each alone in their lane (`contained.py` says when). One is not enough: a server may act by a clock of its
own, and then whatever is called has the blame. It is kept as an assay's contradiction is (row 3): it only raises, and stands
until an assay shows otherwise. In the lane itself nothing changes by it, because there the word is made true; it counts where
the server runs without its walls. What cannot be laid at a tool's door is said in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.gateway.contained import Stopped
from earnest.gateway.served import Served
from earnest.pdp.catalog import Tool
from earnest.sandbox.box import Event
from earnest.store.base import Evidence

if TYPE_CHECKING:
    from earnest.gateway.app import App

_HABITS: Final = (".pyc", ".lock", "-journal", "-wal", "-shm", "/.git/index")
"""Ends of paths that libraries write beside what they read, and do without where they cannot."""
_NEEDED: Final = 2
"""Calls alone in their lane, of one tool, in which the same was stopped."""
_COUNTED: Final = 10_000
_SAID: Final = 2000
"""Kinds of what was stopped that are told once each."""


def broken(lane: Lane, events: Sequence[Event]) -> dict[str, Event]:
    """The hints that a call in a lane contradicted, each with the first of what was stopped."""
    found: dict[str, Event] = {}
    for event in events:
        if event.port:
            if lane is Lane.OBSERVE and event.method != "datagram":
                found.setdefault("open_world", event)
        elif event.method == "change" and not (event.subject.endswith(_HABITS) or "/__pycache__" in event.subject):
            found.setdefault("read_only", event)
    return found if lane in (Lane.OBSERVE, Lane.NET) else {}


class Violations:
    """Keeps what was stopped. One for each application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._said: set[tuple[str, str, str, int]] = set()
        self._calls: dict[tuple[str, str, str, str], int] = {}
        """In how many calls, by identity, tool, its pin and hint."""

    def stopped(self, served: Served, lane: Lane, what: Stopped) -> None:
        """A box of a lane stopped something."""
        tool = served.server.tools.get(what.tool) if what.tool else None
        for event in what.events:
            key = (served.server.identity, lane.value, event.subject, event.port)
            if key not in self._said and len(self._said) < _SAID:
                self._said.add(key)
                whose = f"in a call of {what.tool}" if what.tool else "in no single call"
                place = f"{event.subject}:{event.port}" if event.port else event.subject
                detail = f" ({event.detail})" if event.detail else ""
                self._app.ctx.log.info(f"[{served.name}] its {lane} lane was stopped from {place}{detail}, {whose}")
        if tool is not None and (found := broken(lane, what.events)):
            try:
                self._keep(served, lane, tool, found, what.tier)
            except EarnestError as error:
                self._app.ctx.log.info(f"[{served.name}] {error}")

    def _again(self, served: Served, tool: Tool, hint: str) -> bool:
        """Count one more call; whether that makes enough."""
        key = (served.server.identity, tool.name, tool.pin, hint)
        count = self._calls.pop(key, 0) + 1
        self._calls[key] = count
        if len(self._calls) > _COUNTED:
            del self._calls[next(iter(self._calls))]
        return count >= _NEEDED

    def _keep(self, served: Served, lane: Lane, tool: Tool, found: dict[str, Event], tier: str) -> None:
        new = {
            hint: event
            for hint, event in found.items()
            if hint not in tool.standing.violated and self._again(served, tool, hint)
        }
        if not new:
            return
        app, server = self._app, served.server
        artefact, start = app.world.catalogs.start(server)
        with app.store.transaction():
            for hint, event in new.items():
                text = msgspec.json.encode(_detail(lane, event, tier, start)).decode()
                app.store.put_evidence(
                    Evidence(server.identity, tool.name, hint, tool.pin, artefact, "violated", text, app.wall())
                )
        app.records.note(
            "violation",
            f"{tool.name} of {server.name} tried what its {lane} lane does not allow: it broke its word on {', '.join(new)}",
            server=server.name,
            tool=tool.name,
            identity=server.identity,
        )
        app.gateway.flush_soon()
        for catalogs in (app.world.catalogs, *app.gateway.overlays.values()):
            catalogs.resolve_again(server.identity)
        app.gateway.resolved_again()


def _detail(lane: Lane, event: Event, tier: str, start: str) -> dict[str, Any]:
    place = f"{event.subject}:{event.port}" if event.port else event.subject
    did = "connect to" if event.port else "change"
    return {
        "reason": f"in its {lane} lane it tried to {did} {place}, and was stopped",
        "tier": tier,
        "calls": _NEEDED,
        "start": start,
        "lane": lane.value,
    }

"""Homes for sessions side by side, where boxes have their folders at paths of this machine: no two can have the same one.

Each session there takes a home of its own, with the same things in it, at a path of the same length. What goes in speaks of
that home and what comes out of the fixture's, so that all that is made of sessions knows one home alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from earnest.sandbox.box import Box, Ended, Event, Look, Plan


class Home(msgspec.Struct, frozen=True):
    """One home: `source` is what is in it, `path` where it is in a box, `fixture` where the fixture's is said to be."""

    source: str
    path: str
    fixture: str

    @property
    def is_fixture(self) -> bool:
        return self.path == self.fixture

    def sent(self, data: bytes) -> bytes:
        """What is sent to a server."""
        return data.replace(self.fixture.encode(), self.path.encode())

    def heard(self, data: bytes) -> bytes:
        """What came from one."""
        return data.replace(self.path.encode(), self.fixture.encode())

    def told(self, text: str) -> str:
        """The same of a text or path."""
        return text.replace(self.path, self.fixture)

    def planned(self, plan: Plan) -> Plan:
        """A plan that has this home."""
        if self.is_fixture:
            return plan
        own = msgspec.json.decode(self.sent(msgspec.json.encode(plan)), type=Plan)
        folders = tuple(
            msgspec.structs.replace(folder, source=self.source) if folder.target == self.path else folder
            for folder in own.folders
        )
        return msgspec.structs.replace(own, folders=folders)


class Homes:
    """The homes of one assay, each taken by one session at a time."""

    def __init__(self, homes: tuple[Home, ...]) -> None:
        self._homes = homes
        self._free: asyncio.LifoQueue[Home] | None = None

    async def take(self) -> Home:
        """One that nobody has, the fixture's own first."""
        if self._free is None:
            self._free = asyncio.LifoQueue()
            for home in reversed(self._homes):
                self._free.put_nowait(home)
        return await self._free.get()

    def give(self, home: Home) -> None:
        """It is free again."""
        if self._free is not None:
            self._free.put_nowait(home)


class HomeBox:
    """A box that speaks of the fixture's home. See `earnest.sandbox.box.Box`."""

    def __init__(self, box: Box, home: Home) -> None:
        self._box, self._home = box, home
        self._looks: dict[int, tuple[Look, Look]] = {}
        self.tier, self.sight, self.argv = box.tier, box.sight, box.argv
        self.env: Mapping[str, str] = box.env

    def look(self) -> Look:
        own = self._box.look()
        told = Look({self._home.told(path): entry for path, entry in own.entries.items()})
        self._looks[id(told)] = (told, own)
        return told

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None:
        own = self._looks[id(look)][1] if look is not None and id(look) in self._looks else look
        found = self._box.bytes_of(self._home.sent(path.encode()).decode(), own)
        return None if found is None else self._home.heard(found)

    def events(self, since: int = 0) -> tuple[Event, ...]:
        told = self._home.told
        return tuple(
            msgspec.structs.replace(
                event, subject=told(event.subject), detail=told(event.detail), body=self._home.heard(event.body)
            )
            for event in self._box.events(since)
        )

    def close(self) -> Ended:
        return self._box.close()

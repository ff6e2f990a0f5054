"""Which link serves which session, opened once, opened again when lost, closed with its owner.

A link belongs to one principal, server and downstream session (DESIGN, "On the wire"), unless the operator said `shared`:
then to the server alone. Opening happens at most once at a time for each link; those who come meanwhile wait for the same
opening. A server that keeps dying is started again after growing pauses and, past the limit, left alone until its next call
after the longest pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, NamedTuple

from earnest.core.errors import EarnestError
from earnest.upstream.base import Link

FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 30.0


class Owner(NamedTuple):
    """Whose a link is: a server's, and what separates its links: a session with its capabilities (neither for `shared`), and
    the lane where the server is contained."""

    server: str
    session: str = ""
    capabilities: str = ""
    lane: str = ""


class _Slot:
    __slots__ = ("failures", "link", "not_before", "opening")

    def __init__(self) -> None:
        self.link: Link | None = None
        self.opening: asyncio.Task[Link] | None = None
        self.failures = 0
        self.not_before = 0.0


class Links:
    """All links of the gateway."""

    def __init__(self, *, restarts: int = 5, first_pause_s: float = FIRST_PAUSE_S) -> None:
        """`restarts`: failures in a row before a server is called broken (E1209) for the longest pause. `first_pause_s`: before
        the second start; doubles from there."""
        self._first_pause_s = first_pause_s
        self._slots: dict[Owner, _Slot] = {}
        self._restarts = restarts
        self._closing: set[asyncio.Task[None]] = set()

    def ready(self, owner: Owner) -> Link | None:
        """The open link of an owner, if there is one: the fast path."""
        slot = self._slots.get(owner)
        if slot is None or slot.link is None or not slot.link.alive:
            return None
        return slot.link

    def grounds(self, owner: Owner, link: Link) -> tuple[str, object, object, object]:
        """What it stands on (`net.tracks`) that this is the link of an owner."""
        return ("is", self._slots[owner], "link", link)

    async def get(self, owner: Owner, make: Callable[[], Link], opened: Callable[[Link], None]) -> Link:
        """The open link of an owner, opened by `make` if there is none. `opened` is called once for each new link, before
        anyone gets it. Raises what opening raised, or E1209 while a broken server rests."""
        slot = self._slots.setdefault(owner, _Slot())
        if slot.link is not None and slot.link.alive:
            return slot.link
        if slot.opening is None:
            slot.opening = asyncio.get_running_loop().create_task(self._open(owner, slot, make, opened))
        opening = slot.opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if not opening.cancelled():
                raise  # it is this caller who was cancelled
            raise EarnestError("E1204", f"server {owner.server!r} was closed before it was open", exit_code=3) from None

    async def _open(self, owner: Owner, slot: _Slot, make: Callable[[], Link], opened: Callable[[Link], None]) -> Link:
        loop = asyncio.get_running_loop()
        try:
            if slot.failures >= self._restarts and loop.time() < slot.not_before:
                raise EarnestError(
                    "E1209",
                    f"server {owner.server!r} failed {slot.failures} times in a row and rests for "
                    f"{slot.not_before - loop.time():.0f} s more",
                    f"See why with `earnest probe {owner.server}`.",
                    exit_code=3,
                )
            pause = slot.not_before - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            link = make()
            try:
                await link.open()
            except BaseException:
                self._failed(slot)
                raise
            slot.link = link

            def lost(error: EarnestError) -> None:
                self._failed(slot)
                self._later(link.close())  # what is left of it: a process that stays, connections

            link.on_lost = lost
            opened(link)
            # A link that lives for a while after opening is no failure any more.
            loop.call_later(LONGEST_PAUSE_S, self._proved, slot, link)
            return link
        finally:
            slot.opening = None

    def _failed(self, slot: _Slot) -> None:
        slot.failures += 1
        pause = min(LONGEST_PAUSE_S, self._first_pause_s * 2 ** (slot.failures - 1))
        slot.not_before = asyncio.get_running_loop().time() + (pause if slot.failures > 1 else 0.0)

    def _proved(self, slot: _Slot, link: Link) -> None:
        if slot.link is link and link.alive:
            slot.failures = 0

    def all(self) -> list[tuple[Owner, Link]]:
        """The open links."""
        return [(owner, slot.link) for owner, slot in self._slots.items() if slot.link is not None and slot.link.alive]

    def release(self, match: Callable[[Owner], bool]) -> None:
        """Close the links of owners that are gone, in the background."""
        for owner in [o for o in self._slots if match(o)]:
            slot = self._slots.pop(owner)
            self._later(self._close(slot))

    async def close(self) -> None:
        """Close all; returns when nothing is left running."""
        self.release(lambda owner: True)
        if self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    def _later(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, slot: _Slot) -> None:
        if slot.opening is not None:
            slot.opening.cancel()
            await asyncio.wait({slot.opening})
        if slot.link is not None:
            await slot.link.close()

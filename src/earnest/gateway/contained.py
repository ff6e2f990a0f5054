"""A link to one lane of a contained server: its process in a box, and what the box stopped it from doing.

What a box refuses is told to the call in whose time it happened, if there was only one in the lane all that time, and none of
another tool ended shortly before, which may have left something to be done later; what happened at the start, between calls, or
while several were under way is the server's, and no tool's.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from earnest.core import pin
from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.gateway.lanes import boxed, letter
from earnest.gateway.served import Launch
from earnest.gateway.ungranted import proposal, ungranted
from earnest.pdp.catalog import Tool
from earnest.protocol.envelope import Message
from earnest.sandbox.box import Box, Event
from earnest.upstream.base import Exchange, ExchangeHandler, Reply, ServerHello
from earnest.upstream.opening import pages
from earnest.upstream.stdio import StdioLink

QUIET_S: Final = 10.0
"""Seconds after a call of another tool, or a request of another kind, in which what is stopped may still be that one's."""
_ACTS: Final = ("tools/call", "resources/read", "prompts/get", "completion/complete")
"""Requests in which a server may act; lists are asked for beside all others."""
_SAID: Final = 3
"""So many things that a box stopped are told with an error."""


class Stopped(NamedTuple):
    """What a box stopped. `tool`: in whose call, empty where that cannot be said."""

    tool: str
    events: tuple[Event, ...]
    tier: str


class _Named(msgspec.Struct):
    name: str = ""


class ContainedLink(StdioLink):
    """See the module. `stopped` hears what the box refused."""

    def __init__(
        self,
        name: str,
        launch: Launch,
        lane: Lane,
        *,
        stopped: Callable[[Stopped], None] = lambda what: None,
        **more: Any,
    ) -> None:
        super().__init__(f"{name} ({lane} lane)", (), env={}, cwd=None, **more)
        self.lane = lane
        self.offered: dict[str, bytes] = {}
        """The tools that this lane lists, where it is not the one whose list is served."""
        self.box: Box | None = None
        self._server = name
        self._launch = launch
        self._stopped = stopped
        self._heard = 0
        self._opened = False
        self._tier = ""
        self._under_way: set[_Heard] = set()
        self._last: dict[str, float] = {}
        """When a call of each tool ended last; of what is no tool's call under the empty name."""
        self._unsure = False
        """It acts when no call is under way, or may still be at one that was given up, or at a task: no call is alone any
        more."""

    async def open(self) -> ServerHello:
        """Raises E18xx, E1251 and E1252 besides what any link raises."""
        self.box = box = await asyncio.to_thread(self._boxed)
        self._argv, self._env = box.argv, dict(box.env)
        try:
            hello = await super().open()
        except EarnestError as error:
            named = await asyncio.to_thread(ungranted, self._launch)
            raise _with_words(error, self._refused(), proposal(self._server, named), self._another()) from None
        self._between()
        self._opened = True
        return hello

    def _another(self) -> str:
        grants = self._launch.grants
        if grants is None or self.lane is not grants.list_lane or self.lane is Lane.ACT:
            return ""
        return (
            f'Where it has to write, or needs a secret, to start: [servers.{self._server}.contain] list_lane = "act", or "net".'
        )

    def _boxed(self) -> Box:
        tier, plan = boxed(self._launch, self.lane)
        self._tier = letter(tier)
        return tier.box(plan)

    async def close(self) -> None:
        await super().close()
        box = self.box
        if box is None:
            return
        ended = await asyncio.to_thread(box.close)
        if ended.limit not in ("", "failed"):
            self._words.say(f"reached a limit of its box: {ended.limit}")
        if self._opened:
            self._between()

    def call(
        self,
        method: str,
        params: bytes,
        handler: ExchangeHandler,
        *,
        id: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        named: str = "",
    ) -> Exchange:
        if method not in _ACTS:
            return super().call(method, params, handler, id=id, headers=headers, named=named)
        tool = ""
        if method == "tools/call":
            with contextlib.suppress(msgspec.MsgspecError):
                tool = named or msgspec.json.decode(params, type=_Named).name
        heard = _Heard(self, handler, tool)
        self._between()
        heard.alone = not self._unsure and not self._under_way and not self._lately(tool)
        for other in self._under_way:
            other.alone = False
        self._under_way.add(heard)
        exchange = super().call(method, params, heard, id=id, headers=headers, named=named)
        return _Contained(exchange, heard)

    def offers(self, tool: Tool) -> bool:
        """Whether this lane lists a tool as the lane does whose list is served."""
        here = self.offered.get(tool.name)
        return here is not None and (here == tool.offered or pin.pin(here) == pin.pin(tool.offered))

    async def walk(self) -> None:
        """Take what this lane lists, to compare it. Raises E12xx."""
        found: dict[str, bytes] = {}
        twice: set[str] = set()
        if b'"tools"' in self.hello.capabilities:
            async for raw in pages(self, "tools/list"):
                try:
                    name = msgspec.json.decode(raw, type=_Named).name
                except msgspec.MsgspecError:
                    continue  # no tool, so none that is the same
                twice |= {name} & found.keys()
                found[name] = raw
        self.offered = {name: raw for name, raw in found.items() if name not in twice}

    # what the box stopped

    def _refused(self) -> tuple[Event, ...]:
        box = self.box
        if box is None:
            return ()
        events = box.events(self._heard)
        self._heard += len(events)
        return tuple(event for event in events if event.doing == "refused")

    def _between(self) -> None:
        """Take note of what nobody's call did, so that it is not taken for the next one's."""
        if not self._under_way and (events := self._refused()):
            self._unsure = self._opened
            self._tell("", events)

    def _given_up(self, heard: _Heard) -> None:
        """Nobody waits for this call; the server may go on with it all the same."""
        if heard in self._under_way:
            self._unsure = True
            self._over(heard)

    def _lately(self, tool: str) -> bool:
        """Whether something else ended so shortly ago that it may have left something to be done later."""
        since = time.monotonic() - QUIET_S
        return any(ended > since for other, ended in self._last.items() if other != tool)

    def _over(self, heard: _Heard) -> None:
        if heard not in self._under_way:
            return
        self._under_way.discard(heard)
        self._last[heard.tool] = time.monotonic()
        if events := self._refused():
            self._tell(heard.tool if heard.alone else "", events)

    def _tell(self, tool: str, events: tuple[Event, ...]) -> None:
        self._stopped(Stopped(tool, events, self._tier))


class _Heard:
    """The handler of one call, and what is told of its end before it hears of it."""

    __slots__ = ("_handler", "_link", "alone", "tool")

    def __init__(self, link: ContainedLink, handler: ExchangeHandler, tool: str) -> None:
        self._link = link
        self._handler = handler
        self.tool = tool
        self.alone = True

    def over(self) -> None:
        self._link._over(self)

    def given_up(self) -> None:
        self._link._given_up(self)

    def reply(self, reply: Reply) -> None:
        if b'"taskId"' in reply.result:
            self._link._unsure = True  # it works on, whatever is called meanwhile
        self.over()
        self._handler.reply(reply)

    def message(self, message: Message) -> None:
        self._handler.message(message)

    def request(self, message: Message) -> bool:
        return self._handler.request(message)

    def parted(self) -> None:
        self._handler.parted()

    def lost(self, error: EarnestError, sent: bool) -> None:
        self.over()
        self._handler.lost(error, sent)


class _Contained(Exchange):
    """An exchange that is over as well when it is cancelled."""

    __slots__ = ("_exchange", "_heard")

    def __init__(self, exchange: Exchange, heard: _Heard) -> None:
        self._exchange = exchange
        self._heard = heard

    def cancel(self, reason: str = "") -> None:
        self._exchange.cancel(reason)
        self._heard.given_up()


def _with_words(error: EarnestError, stopped: Sequence[Event], proposed: str, another: str) -> EarnestError:
    """An error of the start with what the box stopped before it, or what its command names and is not granted: most likely that
    is why."""
    told = list(dict.fromkeys(f"{event.subject}{f':{event.port}' if event.port else ''}" for event in stopped))
    remedies = [proposed] if proposed else []
    if told:
        shown = ", ".join(told[:_SAID]) + (" …" if len(told) > _SAID else "")
        remedies.append(f"Its box stopped it from {shown}.")
    if another and not proposed:
        remedies.append(another)
    if not remedies:
        return error
    remedies.append("docs/containment.md shows how to grant folders, hosts and secrets.")
    return EarnestError(error.code, error.message, " ".join(remedies), exit_code=error.exit_code, said=error.said)

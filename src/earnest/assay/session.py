"""One session: a server in a fresh box, calls made one after the other, and a look after each.

What a call changed is what differs between the look before it and the look after it. A look is taken once the box has come to
rest: writes that a server makes just after it has answered belong to that call.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.assay.arguments import answers
from earnest.assay.arguments.harvest import filled
from earnest.assay.homes import Home, HomeBox, Homes
from earnest.assay.model import Answer, Call, Effect, Step
from earnest.assay.observe import network
from earnest.assay.observe.effects import QUIET, Files, Noise
from earnest.assay.observe.places import Lay
from earnest.core.errors import EarnestError
from earnest.sandbox.box import Box, Change, Event, Look, Plan, Tier, changes
from earnest.upstream.opening import ClientHello, pages
from earnest.upstream.stdio import StdioLink

SETTLE_S: Final = 0.012
_RESTS: Final = 6
_WORDS: Final = 20
_RESOURCES: Final = 3

_AT_HOME: Final = Home("", "", "")


class Bench(msgspec.Struct, frozen=True):
    """What sessions are made from. `timeout` is of one call, `opening` of the start, in seconds."""

    tier: Tier
    plan: Plan
    lay: Lay
    name: str
    timeout: float = 20.0
    opening: float = 60.0
    dumps: bool = False
    """Whether a database inside answers `dev.earnest/dump`."""
    homes: Homes | None = None
    """Homes for sessions side by side, where a tier cannot give each the same."""


class Session:
    """One server in one box. Use as `async with`."""

    def __init__(self, bench: Bench, noise: Noise = QUIET) -> None:
        self.bench = bench
        self.noise = noise
        self.answers: list[Answer] = []
        self.resourceful = False
        """Whether its resources, asked twice, say the same, so that they can be probes."""
        self._words: deque[str] = deque(maxlen=_WORDS)
        self._box: Box
        self._home = _AT_HOME
        self._link: StdioLink
        self._look: Look
        self._start: Look
        self._heard = 0
        self._rows: Mapping[str, Any] = {}

    async def __aenter__(self) -> Session:
        bench = self.bench
        if bench.homes is not None:
            self._home = await bench.homes.take()
        try:
            box = await asyncio.to_thread(bench.tier.box, self._home.planned(bench.plan))
        except BaseException:
            self._give_home()
            raise
        self._box = box if self._home.is_fixture else HomeBox(box, self._home)
        self._link = StdioLink(
            bench.name,
            self._box.argv,
            env=self._box.env,
            cwd=None,
            client=ClientHello(prefer_modern=False),
            log=self._words.append,
            open_timeout=bench.opening,
        )
        try:
            await self._link.open()
            self._start = self._look = await self._rest()
            self._heard = len(self._box.events())
            if bench.dumps:
                self._rows = await self._dump()
        except EarnestError as error:
            events = self._box.events()
            await self._shut()
            raise _with_words(error, self._words, events) from None
        except BaseException:
            await self._shut()
            raise
        return self

    async def __aexit__(self, *gone: object) -> None:
        await self._shut()

    async def _shut(self) -> None:
        if hasattr(self, "_link"):
            await self._link.close()
        await asyncio.to_thread(self._box.close)
        self._give_home()

    def _give_home(self) -> None:
        if self.bench.homes is not None and self._home is not _AT_HOME:
            self.bench.homes.give(self._home)
            self._home = _AT_HOME

    @property
    def alive(self) -> bool:
        """Whether the server still answers."""
        return self._link.alive

    @property
    def words(self) -> list[str]:
        """What the server wrote to standard error last."""
        return [self._home.told(word).removeprefix(f"[{self.bench.name}] ") for word in self._words]

    async def listed(self) -> list[bytes]:
        """The raw definitions of its tools. Raises E12xx and E1311, with what is known of why."""
        if b'"tools"' not in self._link.hello.capabilities:
            return []
        try:
            return [self._home.heard(raw) async for raw in pages(self._link, "tools/list", self.bench.opening)]
        except EarnestError as error:
            raise _with_words(error, self._words, self._box.events()) from None

    @property
    def info(self) -> Mapping[str, Any]:
        """What the server says it is."""
        try:
            value = msgspec.json.decode(self._link.hello.server_info or b"{}")
        except msgspec.MsgspecError:
            return {}
        return value if isinstance(value, dict) else {}

    async def resources(self) -> str:
        """What its resources are and the first few say, as one text; empty where it has none."""
        if b'"resources"' not in self._link.hello.capabilities:
            return ""
        try:
            found = [raw async for raw in pages(self._link, "resources/list", self.bench.timeout)]
            parts = [raw.decode("utf-8", "replace") for raw in found]
            for raw in found[-_RESOURCES:]:
                uri = msgspec.json.decode(raw).get("uri")
                reply = await self._link.ask("resources/read", msgspec.json.encode({"uri": uri}), self.bench.timeout)
                parts.append(self._home.heard(reply.result or reply.error)[:50_000].decode("utf-8", "replace"))
        except (EarnestError, msgspec.MsgspecError, AttributeError):
            return ""
        return "\n".join(parts)

    # calls

    async def step(self, step: Step) -> Call:
        """Make one call and look."""
        arguments = filled(step, self.answers)
        answer = await self._ask(step.tool, arguments)
        self.answers.append(answer)
        return Call(Step(step.tool, arguments), answer, tuple(await self.seen()))

    async def together(self, step: Step, times: int = 2) -> Call:
        """Make one call several times at once and look."""
        arguments = filled(step, self.answers)
        found = await asyncio.gather(*(self._ask(step.tool, arguments) for _ in range(times)))
        return Call(Step(step.tool, arguments), found[0], tuple(await self.seen()))

    async def quiet(self, step: Step) -> Answer:
        """Make one call without a look of its own: what it changes falls into the next one's window."""
        return await self._ask(step.tool, filled(step, self.answers))

    async def _ask(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        params = msgspec.json.encode({"name": tool, "arguments": dict(arguments)})
        began = time.monotonic()
        try:
            reply = await self._link.ask("tools/call", self._home.sent(params), self.bench.timeout)
            heard = self._home.heard
            reply = msgspec.structs.replace(reply, result=heard(reply.result), error=heard(reply.error))
        except EarnestError as error:
            outcome = "timeout" if error.code == "E1206" else "lost"
            return Answer(outcome, None, error.told, time.monotonic() - began)  # type: ignore[arg-type]
        return answers.read(reply, time.monotonic() - began)

    # looks

    async def seen(self) -> list[Effect]:
        """What changed since the last look."""
        before, self._look = self._look, await self._rest()
        files = Files(self._box, self.bench.lay, before, self._look)
        found = await asyncio.to_thread(files.effects, self.noise)
        found += self._contacts()
        if self.bench.dumps and self.alive:
            found += await self._rows_changed()
        return found

    def _contacts(self) -> list[Effect]:
        events = self._box.events(self._heard)
        self._heard += len(events)
        found = network.effects(events, self.bench.lay, self.noise.contacts)
        return [left for effect in found if (left := self.noise.left(effect)) is not None]

    async def _rest(self) -> Look:
        await asyncio.sleep(SETTLE_S)
        look = await asyncio.to_thread(self._box.look)
        last: Look | None = getattr(self, "_look", None)
        for number in range(_RESTS):
            if last is not None and not changes(last, look):
                break
            await asyncio.sleep(SETTLE_S * (number + 1))
            last, look = look, await asyncio.to_thread(self._box.look)
        return look

    async def wait(self, seconds: float) -> list[Effect]:
        """Let time pass, and look."""
        await asyncio.sleep(seconds)
        return await self.seen()

    async def end(self) -> list[Effect]:
        """End the server in good order, and look at what it did on its way out."""
        await self._link.close()
        before, self._look = self._look, await asyncio.to_thread(self._box.look)
        files = Files(self._box, self.bench.lay, before, self._look)
        return [*await asyncio.to_thread(files.effects, self.noise), *self._contacts()]

    def since_start(self) -> tuple[Sequence[Change], Sequence[Event]]:
        """All that differs from the first look, as it is, for what is no tool's."""
        return changes(self._start, self._look), self._box.events()

    # databases inside

    async def _dump(self) -> Mapping[str, Any]:
        reply = await self._link.ask("dev.earnest/dump", b"{}", self.bench.timeout)
        value = msgspec.json.decode(reply.result or b"{}")
        rows = value.get("areas") if isinstance(value, dict) else None
        return rows if isinstance(rows, dict) else {}

    async def _rows_changed(self) -> list[Effect]:
        from earnest.assay.observe.databases import compared

        before, self._rows = self._rows, await self._dump()
        return compared(before, self._rows)


def _with_words(error: EarnestError, words: Sequence[str], events: Sequence[Event]) -> EarnestError:
    said = " / ".join(dict.fromkeys([*filter(None, [error.said]), *words]))[-2000:]
    stopped = [event.detail or event.subject for event in events if event.doing == "refused"][:3]
    if stopped:
        said += f" (the sandbox stopped: {'; '.join(stopped)})"
    return EarnestError(error.code, error.message, error.remedy, exit_code=3, said=said)

"""The scout: one session in which every tool is tried, to find arguments that get somewhere and what they change.

It only nominates. What one tool wrote late may show in another's window here, so nothing that the scout saw stands against a
tool until a clean session has shown it too.

A few calls that must fail come first: what they change is what the server does on every call. A path that those and at least
half of all tools change is the server's bookkeeping.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.assay.arguments.harvest import Harvest, Made
from earnest.assay.arguments.plan import Planner, place_in_turn, rank
from earnest.assay.model import Call, Effect, ServerFinding, Step, ToolUnder
from earnest.assay.observe.effects import Noise, marks_of, within
from earnest.assay.session import Bench, Session
from earnest.core.errors import EarnestError

MOST_CALLS: Final = 12
_ENOUGH_ANSWERS: Final = 4
_ENOUGH_EFFECTS: Final = 4
_MOST_SECONDS: Final = 60.0
"""Seconds of answering time after which a tool is tried no more."""
_MOST_WAITS: Final = 2
"""Calls that nobody answered in time after which a tool is tried no more."""
_RESTARTS: Final = 6
_SLOW_S: Final = 1.5
_LATE_S: Final = 0.7
NOBODY: Final = "no_such_tool_of_this_server"


class Scouted(msgspec.Struct):
    """What the scout learned."""

    calls: list[Call]
    """In order, of all tools."""
    harvest: Harvest
    noise: Noise
    findings: list[ServerFinding]
    late: list[Effect]

    def of(self, tool: str) -> list[Call]:
        """The calls of one tool."""
        return [call for call in self.calls if call.step.tool == tool]


class Scout:
    """Runs the scouting session of one server."""

    def __init__(
        self,
        bench: Bench,
        tools: Sequence[ToolUnder],
        planner: Planner,
        noise: Noise,
        told: Callable[[str], None],
        until: float = math.inf,
    ) -> None:
        """`until`: the moment (monotonic clock) after which no further tool is tried."""
        self._bench, self._tools, self._planner, self._told = bench, tools, planner, told
        self._noise, self._until = noise, until
        self._harvest = Harvest(planner.given)
        self._calls: list[Call] = []
        self._failing: list[Effect] = []
        self._nobodys: list[Effect] = []
        """Effects of calls of a tool that does not exist: whatever they change, every call changes."""
        self._findings: list[ServerFinding] = []
        self._session: Session | None = None
        self._restarts = 0
        self._tried: dict[str, list[Mapping[str, Any]]] = {}
        self._spent: dict[str, float] = {}

    async def run(self) -> Scouted:
        """Try every tool; those that got nowhere once more at the end, when more is known. Raises E12xx."""
        ordered = sorted(self._tools, key=place_in_turn)
        self._planner.meet(ordered)
        late: list[Effect] = []
        try:
            await self._open()
            await self._fail()
            for tool in ordered:
                self._told(tool.name)
                await self._try(tool, MOST_CALLS)
                await self._provoke(tool)
            for turn in range(2):
                if turn == 0 and any(self._wants_more(tool) for tool in ordered):
                    # What others have moved, written over or taken by now may have been in the way.
                    await self._afresh()
                await self._make_anew(ordered)
                for tool in [one for one in ordered if self._wants_more(one)]:
                    self._told(f"{tool.name}, again" if turn == 0 else f"{tool.name}, once more")
                    await self._try(tool, 6)
            if self._session is not None and self._session.alive:
                late = await self._session.wait(0.5)
                late += await self._session.end()
        finally:
            await self._close()
        noise = self._with_bookkeeping()
        calls = [
            Call(c.step, c.answer, tuple(left for effect in c.effects if (left := noise.left(effect)) is not None))
            for c in self._calls
        ]
        for made, call in zip(self._harvest.made, calls, strict=True):
            at = self._harvest.made.index(made)
            self._harvest.made[at] = msgspec.structs.replace(made, effective=bool(call.hard))
        return Scouted(calls, self._harvest, noise, self._findings, late)

    async def _open(self) -> None:
        session = Session(self._bench, self._noise)
        await session.__aenter__()
        self._session = session

    async def _close(self) -> None:
        if self._session is not None:
            await self._session.__aexit__()
            self._session = None

    async def _fail(self) -> None:
        """Calls that must fail. What they bring late is waited for: counts are often written a moment after the answer."""
        wanting = next((tool for tool in self._tools if tool.schema.get("required")), None)
        steps = [Step(NOBODY, {}), Step(NOBODY, {"a": 1}), *([Step(wanting.name, {})] if wanting is not None else ())]
        for step in steps:
            assert self._session is not None
            if not self._session.alive and not await self._again():
                return
            call = await self._session.step(step)
            late = await self._session.wait(_LATE_S)
            if call.answer.outcome != "done":
                (self._nobodys if step.tool == NOBODY else self._failing).extend((*call.effects, *late))

    async def _afresh(self) -> None:
        await self._close()
        await self._open()
        self._tried = {}

    async def _again(self) -> bool:
        """A new session after the server ended; False once that has happened too often."""
        await self._close()
        self._restarts += 1
        if self._restarts > _RESTARTS:
            return False
        await self._open()
        return True

    def _wants_more(self, tool: ToolUnder) -> bool:
        calls = [call for call in self._calls if call.step.tool == tool.name]
        if not any(call.answer.outcome == "done" for call in calls):
            return True
        changes = tool.claims.read_only is False or (tool.claims.read_only is None and rank(tool) in (1, 3, 4))
        return changes and not any(call.hard for call in calls)

    async def _try(self, tool: ToolUnder, most: int) -> None:
        tried = self._tried.setdefault(tool.name, [])
        answered = effective = 0
        known = -1
        queue: Iterator[dict[str, Any]] = iter(())
        waited = 0
        while most > 0 and waited < _MOST_WAITS and self._spent.get(tool.name, 0.0) <= _MOST_SECONDS and self._in_time():
            if self._planner.complaints.count != known:  # what was said of the last call makes better guesses of the next
                known = self._planner.complaints.count
                queue = self._planner.each(tool, self._harvest, MOST_CALLS + len(tried))
            arguments = next((one for one in queue if one not in tried), None)
            if arguments is None or not await self._ready(tool):
                return
            most -= 1
            tried.append(arguments)
            call = await self._call(Step(tool.name, arguments))
            answered += call.answer.outcome == "done"
            waited += call.answer.outcome == "timeout"
            effective += bool(call.hard)
            if tool.claims.read_only is True and answered >= _ENOUGH_ANSWERS:
                return
            if effective >= _ENOUGH_EFFECTS or (answered >= 8 and not effective):
                return

    def _in_time(self) -> bool:
        return time.monotonic() < self._until

    async def _make_anew(self, ordered: Sequence[ToolUnder]) -> None:
        """Make once more what tools made that deleters have taken away since, so that those which got nowhere find
        something."""
        if not any(rank(tool) in (3, 4) and self._wants_more(tool) for tool in ordered):
            return
        for tool in ordered:
            made = [call for call in self._calls if call.step.tool == tool.name and call.hard]
            if rank(tool) == 1 and made and await self._ready(tool):
                await self._call(made[0].step)

    async def _provoke(self, tool: ToolUnder) -> None:
        """Values that the server's source compares with, in a call that worked."""
        worked = [c for c in self._calls if c.step.tool == tool.name and c.answer.outcome == "done"]
        if tool.claims.read_only is True or not worked or worked[0].answer.seconds > _SLOW_S:
            return  # readers are provoked in the soak
        for arguments in self._planner.provocations(tool, worked[0].step.arguments, 8):
            if not self._in_time() or not await self._ready(tool):
                return
            await self._call(Step(tool.name, arguments), provoked=True)

    async def _ready(self, tool: ToolUnder) -> bool:
        if self._session is not None and self._session.alive:
            return True
        self._findings.append(ServerFinding("ended", f"ended while its tools were tried (before {tool.name})", tool.name))
        return await self._again()

    async def _call(self, step: Step, *, provoked: bool = False) -> Call:
        assert self._session is not None
        call = await self._session.step(step)
        self._spent[step.tool] = self._spent.get(step.tool, 0.0) + call.answer.seconds
        self._calls.append(call)
        if call.answer.outcome in ("error", "dressed"):
            self._planner.complaints.add(step.tool, call.step.arguments, call.answer.text)
        self._harvest.add(Made(call.step, call.answer, bool(call.hard), provoked))
        return call

    def _with_bookkeeping(self) -> Noise:
        """The noise, with what failing calls and at least half of all tools change alike."""
        nobodys = {mark for effect in self._nobodys for mark in marks_of(effect)}
        failing = nobodys | {mark for effect in self._failing for mark in marks_of(effect)}
        if not failing:
            return self._noise
        by_mark: dict[tuple[str, str], set[str]] = {mark: set() for mark in failing}
        called = {call.step.tool for call in self._calls}
        for call in self._calls:
            for effect in call.effects:
                for mark in marks_of(effect) & failing:
                    by_mark[mark].add(call.step.tool)
        areas = nobodys | {mark for mark, tools in by_mark.items() if len(tools) >= max(1, len(called) / 2)}
        # What changes beside it in the same file with calls that fail belongs to it.
        subjects = {subject for subject, _ in areas}
        areas |= {known for mark in failing if mark[0] in subjects for known in (mark, within(mark))}
        for subject in sorted(subjects):
            many = max((len(tools) for mark, tools in by_mark.items() if mark[0] == subject), default=0)
            what = f"{subject} changes with every call, failing ones too ({many} of {len(called)} tools)"
            what += ": the server's own bookkeeping"
            self._findings.append(ServerFinding("bookkeeping", what, subject))
        return msgspec.structs.replace(self._noise, areas=self._noise.areas | areas)


async def opened(bench: Bench, noise: Noise) -> Session:
    """A session that has begun. Raises E12xx."""
    session = Session(bench, noise)
    try:
        return await session.__aenter__()
    except EarnestError:
        raise

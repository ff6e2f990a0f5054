"""The soak: one session in which every reader is called many times, with its own arguments and with provoking ones.

What only happens at the n-th call, at one magic value, with two calls at once, later, or at exit happens here. Like the scout
it
only nominates. Where something came late and nobody can say whose it was, all readers are suspects.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from earnest.assay.arguments.plan import Planner
from earnest.assay.model import Call, Effect, Step, ToolUnder
from earnest.assay.observe.effects import Noise
from earnest.assay.oracle import probes as probing
from earnest.assay.oracle.scout import Scouted
from earnest.assay.session import Bench, Session

CALLS: Final = 12
SLOW_S: Final = 1.5


class Nomination(msgspec.Struct, frozen=True):
    """Something seen outside of a clean session: `path` are the calls before it, the last of them the tool's own."""

    tool: str
    effect: Effect
    path: tuple[Step, ...]
    pair: bool = False


class Soaked(msgspec.Struct):
    """What the soak showed."""

    calls: dict[str, list[Call]]
    nominations: list[Nomination]
    late: list[Effect]
    order: list[str]
    cut: bool = False
    """Whether time was over before every reader had its turn."""


async def soak(
    bench: Bench,
    readers: Sequence[ToolUnder],
    scouted: Scouted,
    planner: Planner,
    noise: Noise,
    patience: float,
    told: Callable[[str], None],
    until: float = math.inf,
) -> Soaked:
    """Run the soak for the readers of a server; after `until` (monotonic clock) of no further one. Raises E12xx."""
    found = Soaked({tool.name: [] for tool in readers}, [], [], [])
    path: list[Step] = []
    async with Session(bench, noise) as session:
        probes = await probing.stable(session, probing.chosen(readers, scouted.calls))
        await session.seen()
        for tool in readers:
            if time.monotonic() > until:
                found.cut = True
                break
            if not session.alive:
                break
            told(tool.name)
            found.order.append(tool.name)
            await _one(session, tool, scouted, planner, probes, path, found)
        if session.alive:
            found.late = [*await session.wait(patience)]
        found.late += await session.end()
    return found


async def _one(
    session: Session,
    tool: ToolUnder,
    scouted: Scouted,
    planner: Planner,
    probes: Sequence[Step],
    path: list[Step],
    found: Soaked,
) -> None:
    worked = [call for call in scouted.of(tool.name) if call.answer.outcome == "done"]
    if not worked:
        return
    slow = worked[0].answer.seconds > SLOW_S
    distinct = [call.step.arguments for call in worked][:4]
    provoking = planner.provocations(tool, worked[0].step.arguments)
    queue = [*distinct, *provoking]
    queue += [distinct[number % len(distinct)] for number in range(max(0, CALLS - len(queue)))]
    queue = queue[:2] if slow else queue
    before = await probing.ask(session, probes, tool.name)
    await session.seen()  # what the probes do is not this tool's
    for arguments in queue:
        await _call(session, Step(tool.name, arguments), path, found, pair=False)
        if not session.alive:
            return
    if not slow:
        await _call(session, Step(tool.name, distinct[0]), path, found, pair=True)
    after = await probing.ask(session, probes, tool.name)
    for effect in probing.differing(before, after, tool.name):
        found.nominations.append(Nomination(tool.name, effect, tuple(path)))
    await session.seen()


async def _call(session: Session, step: Step, path: list[Step], found: Soaked, *, pair: bool) -> None:
    call = await (session.together(step) if pair else session.step(step))
    path.append(step)
    found.calls[step.tool].append(call)
    found.nominations += [Nomination(step.tool, effect, tuple(path), pair) for effect in call.effects]


def nominated(calls: Sequence[Call]) -> list[Nomination]:
    """What the calls of the scout nominate. A path has what went before and the server outlived, and then the call itself,
    whatever became of it: a server that ends in the midst of what it was asked to do has done it all the same."""
    found: list[Nomination] = []
    path: list[Step] = []
    for call in calls:
        found += [Nomination(call.step.tool, effect, (*path, call.step)) for effect in call.effects]
        if call.answer.outcome != "lost":
            path.append(call.step)
    return found


def by_tool(nominations: Sequence[Nomination]) -> Mapping[str, list[Nomination]]:
    """Nominations of each tool, the first of each kind."""
    found: dict[str, dict[tuple[str, str, str], Nomination]] = {}
    for one in nominations:
        found.setdefault(one.tool, {}).setdefault(one.effect.key, one)
    return {tool: list(kinds.values()) for tool, kinds in found.items()}

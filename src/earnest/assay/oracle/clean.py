"""Clean sessions: a fresh box, what must go before, one tool, and nothing else. Only what they show is evidence.

A script says what is done: the prologue, then *turns* of the target, then waiting and the end. The windows of the prologue are
nobody's; those of the turns are the target's; what comes later or at exit is the target's if the same script without it does
not show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from earnest.assay.model import Call, Effect, Step, When
from earnest.assay.observe.effects import Noise
from earnest.assay.oracle import probes as probing
from earnest.assay.session import Bench, Session
from earnest.core.errors import EarnestError

MOST_LATE_S: Final = 2.5
"""Seconds in which what comes late is still looked for where a tool would else be accused of it."""

How = Literal["first", "repeat", "pair"]


class Turn(msgspec.Struct, frozen=True):
    """One call of the target. `repeat`: the same call as just before; `pair`: twice at once."""

    step: Step
    how: How = "first"


class Script(msgspec.Struct, frozen=True):
    """What one clean session does. `patience`: seconds waited after the last call."""

    tool: str
    prologue: tuple[Step, ...]
    turns: tuple[Turn, ...]
    patience: float
    probes: tuple[Step, ...] = ()
    asked: bool = False
    """Whether readers and resources are asked before and after, `probes` of them by name."""


class Sight(msgspec.Struct, frozen=True):
    """One effect in a clean session: in which window, after which calls."""

    effect: Effect
    when: When
    how: How
    steps: tuple[Step, ...]
    first: bool = False
    """Whether the first call of its kind had succeeded or had effect, so that a repeat means something."""


class Ran(msgspec.Struct, frozen=True):
    """A clean session that has been. `calls` are the target's."""

    calls: tuple[Call, ...]
    sights: tuple[Sight, ...]
    repeats: int = 0
    failed: str = ""


async def run(bench: Bench, script: Script, noise: Noise) -> Ran:
    """Run a script. A server that does not start or ends is told in `failed`."""
    try:
        async with Session(bench, noise) as session:
            return await _run(session, script)
    except EarnestError as error:
        return Ran((), (), failed=error.told)


async def _run(session: Session, script: Script) -> Ran:
    asked = bool(script.probes) or script.asked
    kept = await probing.stable(session, script.probes) if asked else []
    for step in script.prologue:
        await session.step(step)
    if asked or script.prologue:
        await session.seen()
    prologue_answers = list(session.answers)
    before = await _known(session, kept, script.tool)
    calls: list[Call] = []
    sights: list[Sight] = []
    worked, repeats = False, 0
    for turn in script.turns:
        if not session.alive:
            break
        session.answers[:] = prologue_answers
        call = await (session.together(turn.step) if turn.how == "pair" else session.step(turn.step))
        if asked:
            after = await _known(session, kept, script.tool)
            call = Call(call.step, call.answer, (*call.effects, *probing.differing(before, after, script.tool)))
            before = after
        if turn.how == "first":
            worked = call.answer.outcome == "done"
        repeats += worked and turn.how == "repeat"
        calls.append(call)
        path = (*script.prologue, *(one.step for one in script.turns[: len(calls)]))
        sights += [Sight(effect, "call", turn.how, path, worked) for effect in call.effects]
    every = (*script.prologue, *(turn.step for turn in script.turns[: len(calls)]))
    if session.alive:
        sights += [Sight(effect, "later", "first", every) for effect in await session.wait(script.patience)]
    sights += [Sight(effect, "exit", "first", every) for effect in await session.end()]
    return Ran(tuple(calls), tuple(sights), repeats)


async def _known(session: Session, kept: Sequence[Step], tool: str) -> dict[str, str]:
    """What the probes answer; what they change themselves is nobody's."""
    if not kept and not session.resourceful:
        return {}
    found = await probing.ask(session, kept, tool)
    await session.seen()
    return found


async def without_target(bench: Bench, script: Script, noise: Noise) -> Sequence[Effect]:
    """What the same script shows late and at exit if the target is not called."""
    patience = max(script.patience, MOST_LATE_S)
    bare = msgspec.structs.replace(script, turns=(), probes=(), asked=False, patience=patience)
    return [sight.effect for sight in (await run(bench, bare, noise)).sights]

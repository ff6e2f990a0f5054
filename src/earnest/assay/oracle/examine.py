"""One tool examined: which clean sessions it gets, and what of what they showed came again.

A reader with nothing against it gets none of its own: the soak has called it often enough. One with a nomination gets a script
that repeats what led to it, shortest first: the call alone, the call a dozen times, two at once, everything that was called
before it. A tool with effect gets one script with each of its ways of being called, each repeated. What would contradict a
claim
is run until it came twice, three times at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.assay.model import Call, Effect, Evidence, Step, ToolUnder
from earnest.assay.observe.effects import Noise
from earnest.assay.oracle import clean, probes
from earnest.assay.oracle.clean import Ran, Script, Sight, Turn
from earnest.assay.oracle.scout import Scouted
from earnest.assay.oracle.soak import CALLS, Nomination, Soaked
from earnest.assay.session import Bench
from earnest.core.hints import RISKY

RUNS: Final = 3
NEEDED: Final = 2
_MOST_PATH: Final = 80
_MOST_WAYS: Final = 4

Bears = Callable[[Sight], bool]
"""Whether a sight bears on a hint."""

CONTRADICTS: Final[Mapping[str, Bears]] = {
    "read_only": lambda s: s.effect.hard,
    "destructive": lambda s: s.effect.hard and s.effect.lossy is True,
    # What the sandbox stopped changed nothing the first time either, and so is tried again by the most harmless of tools.
    "idempotent": lambda s: (
        s.effect.hard and s.effect.nature != "refused" and s.how == "repeat" and s.first and s.when == "call"
    ),
    "open_world": lambda s: s.effect.external,
}
"""What contradicts the safe side of each hint."""


class Tally(msgspec.Struct):
    """All that was seen of one tool. `sights` are of clean sessions; `evidence` what came again, by hint; `once` what did
    not."""

    tool: ToolUnder
    calls: list[Call] = []
    sights: list[Sight] = []
    evidence: dict[str, list[Evidence]] = {}
    once: dict[str, list[str]] = {}
    cleaned: int = 0
    repeats: int = 0
    """Calls repeated in clean sessions after the same call had worked."""
    failed: str = ""
    cut: bool = False
    """Whether time was over before all of its clean sessions had been run."""

    @property
    def answered(self) -> int:
        return sum(call.answer.outcome == "done" for call in self.calls)

    @property
    def effective(self) -> int:
        later = any(sight.when != "call" and sight.effect.hard for sight in self.sights)
        return sum(bool(call.hard) for call in self.calls) or int(later)

    def of(self, bears: Bears) -> list[Sight]:
        """Sights that bear on something."""
        return [sight for sight in self.sights if bears(sight)]


class Examiner:
    """Examines the tools of one server."""

    def __init__(
        self, bench: Bench, noise: Noise, scouted: Scouted, soaked: Soaked, tools: Sequence[ToolUnder], patience: float
    ) -> None:
        self._bench, self._noise, self._scouted, self._soaked = bench, noise, scouted, soaked
        self._tools, self._patience = tools, patience
        self.sessions = 0
        self._probes = tuple(probes.chosen(tools, scouted.calls))

    def begin(self, tool: ToolUnder) -> Tally:
        """What scout and soak have of a tool."""
        return Tally(tool, calls=[*self._scouted.of(tool.name), *self._soaked.calls.get(tool.name, [])])

    def reads(self, tally: Tally) -> bool:
        """Whether a tool is examined as a reader."""
        return tally.tool.claims.read_only is True or (not tally.effective and tally.tool.name in self._soaked.calls)

    async def examine(self, tally: Tally, nominations: Sequence[Nomination]) -> None:
        """The tool by itself: what it was nominated for, or each of its ways."""
        tool, safe = tally.tool, safe_claims(tally.tool)
        if self.reads(tally):
            weighty = _weighty(nominations)
            wanted = {hint for hint in safe if any(would(hint, one.effect) for one in weighty)}
            for script in self._alone(tool, weighty or list(nominations)[:1]):
                await self._run(script, tally, safe)
                if wanted <= tally.evidence.keys():
                    return
        elif tally.effective or tally.answered:
            await self._effects(tool, tally, safe)
            left = [one for one in nominations if not self._came_again(one, tally)]
            for script in self._alone(tool, left)[:2]:
                await self._run(script, tally, safe)

    async def suspect(self, tally: Tally) -> None:
        """Something came late and nobody's: the tool alone, many times, and then patience."""
        worked = [call for call in tally.calls if call.answer.outcome == "done"]
        if worked:
            prologue, step = self._scouted.harvest.prologue(worked[0].step)
            turns = (Turn(step), *(Turn(step, "repeat") for _ in range(CALLS - 1)))
            await self._run(self._script(tally.tool, prologue, turns, patient=True), tally, safe_claims(tally.tool))

    async def led_to(self, tally: Tally, nomination: Nomination) -> None:
        """All that was called before the nomination, and then the tool: for what shows only after another tool."""
        tool = tally.tool
        others = tuple(earlier for earlier in nomination.path[:-1] if earlier.tool != tool.name)[-_MOST_PATH:]
        if not others:
            return
        own = [earlier for earlier in nomination.path if earlier.tool == tool.name][-CALLS * 2 :]
        distinct = tuple({(s.tool, msgspec.json.encode(s.arguments)): s for s in others}.values())
        script = self._script(tool, distinct, tuple(Turn(earlier) for earlier in own))
        await self._run(script, tally, safe_claims(tool))

    async def _effects(self, tool: ToolUnder, tally: Tally, safe: Sequence[str]) -> None:
        """The script of a tool with effect. Where what was thought to go before does not bring the effect back, it is tried
        with
        nothing before, then with all that had effect before."""
        expected = tally.effective
        script = self._effect_script(tool, tally)
        bare = msgspec.structs.replace(script, prologue=(), turns=tuple(_bare(turn) for turn in script.turns))
        first = next((n for n, call in enumerate(self._scouted.calls) if call.step.tool == tool.name and call.hard), 0)
        before = [call.step for call in self._scouted.calls[:first] if call.hard][-_MOST_PATH:]
        full = msgspec.structs.replace(bare, prologue=tuple(before))
        for one in (script, *((bare,) if script.prologue else ()), *((full,) if before else ())):
            seen = len(tally.sights)
            await self._run(one, tally, safe)
            if not expected or any(sight.effect.hard for sight in tally.sights[seen:]):
                return

    def _came_again(self, one: Nomination, tally: Tally) -> bool:
        return any(sight.effect.key == one.effect.key for sight in tally.sights)

    # scripts

    def _alone(self, tool: ToolUnder, nominations: Sequence[Nomination]) -> list[Script]:
        """Scripts of one tool that may show it again, shortest first."""
        found: list[Script] = []
        for one in nominations[:4]:
            prologue, step = self._scouted.harvest.prologue(one.path[-1])
            asked = one.effect.nature == "answers"
            pair = (Turn(step), Turn(step, "pair"), Turn(step, "pair"))
            script = self._script(tool, prologue, pair if one.pair else (Turn(step),), asked=asked)
            if script not in found:
                found.append(script)
        for one in nominations[:1]:
            prologue, step = self._scouted.harvest.prologue(one.path[-1])
            own = [earlier for earlier in one.path if earlier.tool == tool.name][-CALLS * 2 :]
            if len(own) > 1:
                asked = one.effect.nature == "answers"
                found.append(self._script(tool, prologue, tuple(Turn(earlier) for earlier in own), asked=asked))
        return found

    def _effect_script(self, tool: ToolUnder, tally: Tally) -> Script:
        """Each way of calling the tool that had an effect of its own kind, each repeated."""
        ways: dict[Any, Call] = {}
        for call in tally.calls:
            if call.hard:
                ways.setdefault(tuple(sorted((e.nature, e.lossy is True) for e in call.hard)), call)
        if not ways:
            answered = [call for call in tally.calls if call.answer.outcome == "done"]
            ways = {number: call for number, call in enumerate(answered[:2])}
        prologue: list[Step] = []
        turns: list[Turn] = []
        for call in list(ways.values())[:_MOST_WAYS]:
            before, step = self._scouted.harvest.prologue(call.step)
            moved: dict[int, int] = {}
            for number, one in enumerate(before):
                shifted = _shifted(one, moved)
                if shifted not in prologue:
                    prologue.append(shifted)
                moved[number] = prologue.index(shifted)
            step = _shifted(step, moved)
            turns += [Turn(step), Turn(step, "repeat")]
        if tool.claims.idempotent is True and turns:
            turns += [Turn(turns[0].step), *(Turn(turns[0].step, "repeat") for _ in range(CALLS - 2))]
        if turns:
            turns.append(Turn(turns[0].step, "pair"))
        return self._script(
            tool, tuple(prologue), tuple(turns), patient=tool.claims.destructive is False, asked=not tally.effective
        )

    def _script(
        self,
        tool: ToolUnder,
        prologue: tuple[Step, ...],
        turns: tuple[Turn, ...],
        *,
        patient: bool = False,
        asked: bool = False,
    ) -> Script:
        """`patient`: late writes are waited for. `asked`: other tools are asked what they know, before and after."""
        return Script(tool.name, prologue, turns, self._patience if patient else 0.3, self._probes if asked else (), asked)

    # runs

    async def _run(self, script: Script, tally: Tally, safe: Sequence[str]) -> None:
        first = await self._once(script, tally)
        against = {hint: first_of for hint in safe if (first_of := _bearing(first, CONTRADICTS[hint]))}
        if not against:
            return
        if script.prologue:
            # What calls before it do late is theirs, in whose window ever it shows.
            self.sessions += 1
            others = {effect.subject for effect in await clean.without_target(self._bench, script, self._noise)}
            against = {
                hint: {key: sight for key, sight in sights.items() if sight.effect.subject not in others}
                for hint, sights in against.items()
            }
        counts = {(hint, key): 1 for hint, sights in against.items() for key in sights}
        runs = 1
        while runs < RUNS and any(n < NEEDED for n in counts.values()) and counts:
            again = await self._once(script, tally)
            runs += 1
            for hint, sights in against.items():
                repeated = _bearing(again, CONTRADICTS[hint])
                for key in sights:
                    counts[hint, key] += key in repeated
            if all(any(counts[hint, key] >= NEEDED for key in sights) for hint, sights in against.items() if sights):
                break
        shorter = await self._shortened(script, against, tally)
        for hint, sights in against.items():
            for key, sight in sights.items():
                if counts[hint, key] >= NEEDED:
                    sight = shorter.get((hint, key), sight)
                    found = _evidence(sight, counts[hint, key], runs)
                    tally.evidence.setdefault(hint, []).append(found)
                else:
                    tally.once.setdefault(hint, []).append(sight.effect.what)

    async def _shortened(
        self, script: Script, against: Mapping[str, Mapping[tuple[str, str, str], Sight]], tally: Tally
    ) -> dict[tuple[str, tuple[str, str, str]], Sight]:
        """What shows with the one call alone that it came with: a replay of as few steps as may be."""
        found: dict[tuple[str, tuple[str, str, str]], Sight] = {}
        wanted = [(hint, key, sight) for hint, sights in against.items() for key, sight in sights.items()]
        tried = 0
        for hint, key, sight in wanted:
            if sight.when != "call" or sight.how != "first" or len(sight.steps) < 2 or (hint, key) in found or tried >= 2:
                continue
            tried += 1
            alone = msgspec.structs.replace(script, prologue=(), turns=(_bare(Turn(sight.steps[-1])),), patience=0.0)
            again = await self._once(alone, tally)
            for other, good in against.items():
                repeated = _bearing(again, CONTRADICTS[other])
                found |= {(other, k): repeated[k] for k in good if k in repeated}
        return found

    async def _once(self, script: Script, tally: Tally) -> Ran:
        self.sessions += 1
        ran = await clean.run(self._bench, script, self._noise)
        tally.cleaned += 1
        tally.calls += ran.calls
        tally.sights += ran.sights
        tally.repeats += ran.repeats
        tally.failed = tally.failed or ran.failed
        return ran


def _bare(turn: Turn) -> Turn:
    return Turn(Step(turn.step.tool, turn.step.arguments), turn.how)


def safe_claims(tool: ToolUnder) -> list[str]:
    """The hints for which a tool claims the safe side."""
    return [hint for hint in CONTRADICTS if tool.claims.get(hint) is not None and tool.claims.get(hint) is not RISKY[hint]]


def _weighty(nominations: Sequence[Nomination]) -> list[Nomination]:
    """Those that could contradict something; what other tools tell first, since the rest may be another's that came late."""
    found = [one for one in nominations if one.effect.hard or one.effect.external]
    return sorted(found, key=lambda one: (one.effect.nature != "answers", not one.effect.external))


def unsettled(tally: Tally, nominations: Sequence[Nomination], owned: frozenset[str]) -> Nomination | None:
    """A nomination that no clean session has shown again and that is nobody else's."""
    shown = {sight.effect.key for sight in tally.sights}
    for one in _weighty(nominations):
        matters = any(would(hint, one.effect) for hint in safe_claims(tally.tool))
        if matters and one.effect.key not in shown and one.effect.subject not in owned:
            return one
    return None


def would(hint: str, effect: Effect) -> bool:
    return CONTRADICTS[hint](Sight(effect, "call", "repeat", (), True))


def _bearing(ran: Ran, bears: Bears) -> dict[tuple[str, str, str], Sight]:
    found: dict[tuple[str, str, str], Sight] = {}
    for sight in ran.sights:
        if bears(sight):
            found.setdefault(sight.effect.key, sight)
    return found


def _evidence(sight: Sight, runs: int, of: int) -> Evidence:
    effect = sight.effect
    return Evidence(effect.what, effect.subject, effect.nature, effect.place, sight.when, sight.steps, runs, of)


def _shifted(step: Step, moved: Mapping[int, int]) -> Step:
    """A step whose references count from another front."""
    refs = tuple((path, msgspec.structs.replace(ref, step=moved[ref.step])) for path, ref in step.refs if ref.step in moved)
    return Step(step.tool, step.arguments, refs)


def soft_effects(tally: Tally) -> list[Effect]:
    """Soft effects of a tool, the first of each kind; from clean sessions where there were any, since in a shared one they may
    be another's."""
    found: dict[tuple[str, str, str], Effect] = {}
    shared = () if tally.cleaned else (effect for call in tally.calls for effect in call.effects)
    for effect in (*(sight.effect for sight in tally.sights), *shared):
        if not effect.hard and not effect.external and effect.place != "network":
            found.setdefault(effect.key, effect)
    return list(found.values())

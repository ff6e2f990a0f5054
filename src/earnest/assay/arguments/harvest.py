"""What earlier answers hold that a later call can use, and which earlier call it takes to have it.

A value found in an answer is offered to parameters whose names share a word with the key it stood under (`todo_id` to `id` of
an
answer of `create_todo`). When a call with such a value did something, the call that first brought the value is part of its
prologue: in a clean session it is made first, and the value is taken from its answer there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.assay.arguments.answers import at, leaves, spoken
from earnest.assay.model import Answer, Ref, Step

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MOST: Final = 4000
_LONGEST: Final = 300
_GENERIC: Final = frozenset(
    {"id", "ids", "name", "key", "path", "uuid", "number", "the", "of", "a", "get", "list", "new", "by", "to"}
)


def words(name: str) -> tuple[str, ...]:
    """The words of an identifier, lower case, plural endings off."""
    found = [word.lower() for word in _WORD.findall(name)]
    return tuple(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found)


class Made(msgspec.Struct, frozen=True):
    """One call of a session that has been, with its answer and whether it changed something."""

    step: Step
    answer: Answer
    effective: bool
    provoked: bool = False
    """Whether it was made to see what a word of the source does: its values are no example for others."""


class _Found(msgspec.Struct, frozen=True):
    key: tuple[str, ...]
    tool: tuple[str, ...]
    value: Any
    at: int


class Harvest:
    """Values of a session's answers, newest first."""

    def __init__(self, given: Callable[[str], bool] = lambda value: False) -> None:
        """`given`: whether the fixture has a thing of this name, so that no call is needed for it."""
        self._given = given
        self.made: list[Made] = []
        self._found: list[_Found] = []
        self._seen: set[tuple[tuple[str, ...], str]] = set()

    def add(self, made: Made) -> None:
        """Take a call and its answer in."""
        number = len(self.made)
        self.made.append(made)
        if made.answer.outcome != "done" or made.provoked:
            return
        tool = words(made.step.tool)
        for key, value in _named(made.answer):
            if isinstance(value, bool) or not isinstance(value, str | int | float) or len(self._found) > _MOST:
                continue
            if isinstance(value, str) and not 0 < len(value) <= _LONGEST:
                continue
            mark = (words(key), repr(value))
            if mark not in self._seen:
                self._seen.add(mark)
                self._found.append(_Found(words(key), tool, value, number))

    def offers(self, tool: str, parameter: str, most: int = 6) -> list[Any]:
        """Values for a parameter, best first."""
        wanted, own = set(words(parameter)), set(words(tool))
        scored: list[tuple[float, int, Any]] = []
        for found in self._found:
            key = set(found.key)
            shared = wanted & key
            if not shared and not (wanted & _GENERIC and set(found.tool) & (wanted - _GENERIC)):
                continue
            score = 2.0 * len(shared - _GENERIC) + 1.0 * len(shared & _GENERIC)
            score += 1.0 * len((own | wanted) & set(found.tool) - _GENERIC)
            score -= 0.5 * len(key ^ wanted)
            scored.append((score, found.at, found.value))
        scored.sort(key=lambda item: (-item[0], -item[1]))
        return [value for score, _, value in scored[:most] if score > -1]

    def prologue(self, step: Step) -> tuple[tuple[Step, ...], Step]:
        """The calls that must go before a step, and the step with its values referring to their answers."""
        needed: dict[int, None] = {}
        sources: dict[tuple[str | int, ...], tuple[int, tuple[str | int, ...]]] = {}
        self._need(step, len(self.made), needed, sources, 0)
        order = sorted(needed)
        where = {number: index for index, number in enumerate(order)}
        steps = []
        for number in order:
            earlier = self.made[number].step
            own: dict[tuple[str | int, ...], tuple[int, tuple[str | int, ...]]] = {}
            self._sources(earlier, number, own)
            steps.append(_with_refs(earlier, own, where, self.made))
        return tuple(steps), _with_refs(step, sources, where, self.made)

    def _need(
        self,
        step: Step,
        before: int,
        needed: dict[int, None],
        sources: dict[tuple[str | int, ...], tuple[int, tuple[str | int, ...]]],
        depth: int,
    ) -> None:
        self._sources(step, before, sources)
        for number, _ in list(sources.values()):
            if number in needed or depth > 5:
                continue
            needed[number] = None
            self._need(self.made[number].step, number, needed, {}, depth + 1)

    def _sources(
        self, step: Step, before: int, sources: dict[tuple[str | int, ...], tuple[int, tuple[str | int, ...]]]
    ) -> None:
        for path, value in leaves(step.arguments):
            source = self._source(path, value, before, step.tool)
            if source is not None:
                sources[path] = source

    def _source(
        self, path: tuple[str | int, ...], value: Any, before: int, tool: str
    ) -> tuple[int, tuple[str | int, ...]] | None:
        """The first effective call whose answer holds a value, and where; or whose arguments gave it its name."""
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "" or self._given(str(value)):
            return None
        name = set(words(str(next((part for part in reversed(path) if isinstance(part, str)), ""))))
        for number, made in enumerate(self.made[:before]):
            if made.answer.outcome != "done" or not made.effective or made.step.tool == tool:
                continue
            for place, found in _placed(made.answer):
                key = set(words(str(place[1] if place and place[0] == "~" else _last(place))))
                same = found == value or (str(found) == str(value) and isinstance(value, int | str))
                if same and (name & key or (isinstance(value, str) and len(value) >= 8)):
                    return number, place
            given = [one for _, one in leaves(made.step.arguments)]
            if isinstance(value, str) and len(value) >= 3 and value in given:
                return number, ()
        return None


def _last(path: tuple[str | int, ...]) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _placed(answer: Answer) -> Iterable[tuple[tuple[str | int, ...], Any]]:
    if isinstance(answer.parsed, str):
        counts: dict[str, int] = {}
        for key, value in spoken(answer.parsed):
            number = counts.get(key, 0)
            counts[key] = number + 1
            yield ("~", key, number), value
    else:
        yield from leaves(answer.parsed)


def _named(answer: Answer) -> Iterable[tuple[str, Any]]:
    """Values with the key under which they stood; of lines of a listing their words."""
    if not isinstance(answer.parsed, str):
        for path, value in leaves(answer.parsed):
            key = _last(path)
            if key:
                yield key, value
                if isinstance(value, str) and "/" not in key and len(path) > 1 and key in ("id", "name", "key"):
                    parent = next((part for part in reversed(path[:-1]) if isinstance(part, str)), "")
                    yield f"{parent}_{key}", value
        return
    yield from spoken(answer.parsed)


def _with_refs(
    step: Step,
    sources: Mapping[tuple[str | int, ...], tuple[int, tuple[str | int, ...]]],
    where: Mapping[int, int],
    made: Sequence[Made],
) -> Step:
    refs = []
    for path, (number, place) in sources.items():
        if number in where and place:
            value = at(step.arguments, path)
            refs.append((path, Ref(where[number], place, value)))
    return Step(step.tool, step.arguments, tuple(refs))


def filled(step: Step, answers: Sequence[Answer]) -> dict[str, Any]:
    """The arguments of a step in this session: values that come from earlier answers are taken from there."""
    import copy

    arguments: dict[str, Any] = copy.deepcopy(dict(step.arguments))
    for path, ref in step.refs:
        if ref.step >= len(answers):
            continue
        value = at(answers[ref.step].parsed, ref.path)
        if value is None:
            continue
        if isinstance(ref.value, str) and not isinstance(value, str):
            value = str(value)
        elif isinstance(ref.value, int) and isinstance(value, str) and value.isdigit():
            value = int(value)
        holder: Any = arguments
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = value
    return arguments

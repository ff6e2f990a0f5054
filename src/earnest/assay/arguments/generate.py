"""Values for a schema, best guess first, and all others by choosing otherwise in one place.

At each place of a value there are options in order: what a person or the schema names, what was guessed from the place's name,
what was found in other tools' answers, what fits the bounds. The first candidate takes the first option everywhere; every
further one takes another option at one place. So a dozen candidates differ in what matters, and the same run gives the same
candidates.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from earnest.assay.arguments.harvest import words
from earnest.assay.arguments.schema import Document, JsonSchema, merged, types
from earnest.assay.arguments.strings import by_format, by_pattern, of_length

Guess = Callable[[str, JsonSchema], Sequence[Any]]
"""Values for a place, by its name and schema, best first; they need not fit."""


class Rules(Protocol):
    """What was learned of a tool besides its schema."""

    def wish(self, name: str) -> bool | None:
        """Whether a member that may be left out is to be there (True) or not (False); None: as it comes."""

    def least(self, name: str) -> int:
        """How many elements a list is to have."""


class NoRules:
    """Nothing was learned."""

    def wish(self, name: str) -> bool | None:
        return None

    def least(self, name: str) -> int:
        return 0


MAX_DEPTH: Final = 8
_ABSENT: Final = object()
_MOST_OPTIONS: Final = 12
_MOST_CHOICES: Final = 8
_DOING: Final = frozenset({"mode", "action", "operation", "command", "method", "type", "kind", "op", "subcommand"})


class Candidates:
    """Argument objects for one tool, each valid by the schema where any could be found."""

    def __init__(self, document: Document, guess: Guess, seed: int = 0, rules: Rules | None = None) -> None:
        self._document, self._guess, self._seed, self._rules = document, guess, seed, rules or NoRules()

    def make(self, most: int = 12) -> list[dict[str, Any]]:
        """Up to `most` different ones, the best guess first."""
        return list(islice(self.each(most), most))

    def each(self, most: int = 12) -> Iterator[dict[str, Any]]:
        """The same one after the other: required members alone, then all members, then variations. `most`: how hard to try."""
        found: set[str] = set()
        loose: list[dict[str, Any]] = []
        for value in self._values(most * 6):
            key = repr(value)  # 1 is not true
            if not isinstance(value, dict) or key in found:
                continue
            found.add(key)
            if self._document.valid(value):
                loose.clear()
                most = 0
                yield value
            elif most:
                loose.append(value)
        yield from loose[:2] if most else ()
        if most and not loose:
            yield {}

    def _draw(self, chosen: Mapping[str, int], full: bool, seed: int, also: str = "") -> _Draw:
        return _Draw(self._document, self._guess, chosen, full, seed, self._rules, also)

    def _values(self, tries: int) -> Iterator[Any]:
        plans: list[_Draw] = []
        for full in (False, True):
            draw = self._draw({}, full, self._seed)
            yield _drawn(draw)
            plans.append(draw)
        # A member that may be left out, one at a time; first those of objects that would be empty without, and what a call
        # is to do where a tool does several things.
        left_out = plans[0].left_out
        alone = iter(sorted(left_out, key=lambda place: (not left_out[place], place.count("."))))
        for place in [place for place in left_out if left_out[place] or _is_choice(place)][:6]:
            yield from self._with(place)
        left = tries
        for number in range(1, _MOST_OPTIONS):
            for draw, full in zip(plans, (False, True), strict=True):
                for place, options in draw.counts.items():
                    if number < options and left:
                        left -= 1
                        yield _drawn(self._draw({place: number}, full, self._seed))
                        other = next(alone, "") if left % 2 else ""
                        if other:
                            yield from self._with(other)
        for place in alone:
            yield from self._with(place)
        for seed in range(1, 1 + left // 2):  # schemas whose parts depend on each other: at random
            dice = random.Random(self._seed * 1000 + seed)
            chosen = {place: dice.randrange(options) for place, options in plans[1].counts.items()}
            yield _drawn(self._draw(chosen, bool(seed % 2), seed))

    def _with(self, place: str) -> Iterator[Any]:
        """Required members and this one, with each of its choices where it has few."""
        draw = self._draw({}, False, self._seed, place)
        yield _drawn(draw)
        if _is_choice(place):
            for number in range(1, min(draw.counts.get(place, 1), _MOST_CHOICES)):
                yield _drawn(self._draw({place: number}, False, self._seed, place))


def _is_choice(place: str) -> bool:
    """Whether a member says what a call is to do."""
    return bool(set(words(place.rpartition(".")[2])) & _DOING)


class _Draw:
    """One value: `chosen` says which option to take where; `counts` tells how many there were. `full`: with all that may be
    left out; `also`: with this one. `left_out` tells what was, and whether its object is empty for it."""

    def __init__(
        self,
        document: Document,
        guess: Guess,
        chosen: Mapping[str, int],
        full: bool,
        seed: int,
        rules: Rules,
        also: str = "",
    ) -> None:
        self.document, self._guess, self._rules = document, guess, rules
        self._chosen, self._full, self._also = chosen, full, also
        self._dice = random.Random(seed)
        self.counts: dict[str, int] = {}
        self.left_out: dict[str, bool] = {}

    def value(self, schema: Any, place: str = "", name: str = "", depth: int = 0) -> Any:
        """A value for a schema."""
        found, hops = self.document.followed(schema)
        depth += hops
        if found.get("not") == {}:
            return _ABSENT
        if "const" in found:
            return found["const"]
        found = self._decided(found, place, depth)
        if "const" in found:
            return found["const"]
        fixed = self._fixed(found, place)
        if fixed is not _ABSENT:
            return fixed
        kind = self._kind(found, place, name)
        match kind:
            case "object":
                return self._object(found, place, depth)
            case "array":
                return self._array(found, place, name, depth)
            case "null":
                return None
        return self._scalar(found, place, name, kind)

    def _pick(self, place: str, options: Sequence[Any]) -> Any:
        self.counts[place] = max(self.counts.get(place, 0), min(len(options), _MOST_OPTIONS))
        return options[min(self._chosen.get(place, 0), len(options) - 1)]

    def _decided(self, found: JsonSchema, place: str, depth: int) -> JsonSchema:
        """One alternative of `oneOf`, `anyOf` and `if` taken."""
        for key in ("oneOf", "anyOf"):
            branches = found.get(key)
            if isinstance(branches, list) and branches:
                plain = [b for b in branches if not (isinstance(b, Mapping) and b.get("type") == "null")] or branches
                ordered = sorted(plain, key=_weight) if depth > 3 else plain
                ordered = [*ordered, *(b for b in branches if b not in ordered)]
                branch, _ = self.document.followed(self._pick(f"{place}|{key}", ordered))
                rest = {k: v for k, v in found.items() if k != key}
                found = self._decided(merged(rest, branch), place + "|", depth + 1) if depth < 20 else merged(rest, branch)
        if "if" in found and depth < 20:
            rest = {k: v for k, v in found.items() if k not in ("if", "then", "else")}
            condition, _ = self.document.followed(found["if"])
            then, _ = self.document.followed(found.get("then", True))
            otherwise, _ = self.document.followed(found.get("else", True))
            met = self._pick(f"{place}|if", (False, True) if found.get("else") else (True, False))
            found = self._decided(
                merged(merged(rest, condition), then) if met else merged(rest, otherwise), place + "|", depth + 1
            )
        for part in found.get("allOf") or ():  # what `followed` could not fold in: more alternatives
            inner, _ = self.document.followed(part)
            rest = {k: v for k, v in found.items() if k != "allOf"}
            found = self._decided(merged(rest, inner), place + "&", depth + 1) if depth < 20 else rest
        return found

    def _fixed(self, found: JsonSchema, place: str) -> Any:
        enumeration = found.get("enum")
        if isinstance(enumeration, list) and enumeration:
            default = [found["default"]] if "default" in found and found["default"] in enumeration else []
            return self._pick(place, _unique([*default, *enumeration]))
        return _ABSENT

    def _kind(self, found: JsonSchema, place: str, name: str) -> str:
        kinds = types(found.get("type"))
        if kinds:
            real = [kind for kind in kinds if kind != "null"] or kinds
            return str(self._pick(f"{place}|type", real)) if len(real) > 1 else real[0]
        if any(
            key in found for key in ("properties", "required", "additionalProperties", "patternProperties", "minProperties")
        ):
            return "object"
        if any(key in found for key in ("items", "prefixItems", "minItems", "contains")):
            return "array"
        if any(key in found for key in ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")):
            return "number"
        return "string" if not place or name else "object" if not place else "string"

    # objects and lists

    def _object(self, found: JsonSchema, place: str, depth: int) -> Any:
        properties = found.get("properties") or {}
        required = [key for key in found.get("required") or () if isinstance(key, str)]
        wanted = list(required)
        if depth < MAX_DEPTH - 2:
            wanted += [key for key in properties if key not in wanted and self._takes(f"{place}.{key}", key)]
        if not self._full:
            self.left_out |= {f"{place}.{key}": bool(place) and not wanted for key in properties if key not in wanted}
        known = {key: properties[key] for key in properties}
        wanted, known = self._dependents(found, wanted, known)
        least = found.get("minProperties") or 0
        wanted += [key for key in properties if key not in wanted][: max(0, least - len(wanted))]
        most = found.get("maxProperties")
        if isinstance(most, int):
            wanted = [*required, *(key for key in wanted if key not in required)][: max(most, len(required))]
        result: dict[str, Any] = {}
        for key in wanted:
            schema = known.get(key, self._other(found, key))
            if depth > MAX_DEPTH and key not in required:
                continue
            value = self.value(schema, f"{place}.{key}", key, depth + 1) if depth < MAX_DEPTH * 2 else None
            if value is not _ABSENT:
                result[key] = value
        self._fill(found, result, place, depth, least)
        return result

    def _takes(self, place: str, name: str) -> bool:
        wish = self._rules.wish(name)
        return place == self._also or wish is True or (self._full and wish is None)

    def _dependents(self, found: JsonSchema, wanted: list[str], known: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        for _ in range(5):
            before = list(wanted)
            for key, more in (found.get("dependentRequired") or {}).items():
                if key in wanted:
                    wanted += [one for one in more if one not in wanted]
            for key, schema in {**(found.get("dependentSchemas") or {}), **(found.get("dependencies") or {})}.items():
                if key not in wanted:
                    continue
                if isinstance(schema, list):
                    wanted += [one for one in schema if one not in wanted]
                    continue
                inner, _ = self.document.followed(schema)
                for name, value in (inner.get("properties") or {}).items():
                    known[name] = merged(known[name], value) if isinstance(known.get(name), Mapping) else value
                wanted += [one for one in inner.get("required") or () if one not in wanted]
            if wanted == before:
                break
        return wanted, known

    def _other(self, found: JsonSchema, key: str) -> Any:
        import re

        for pattern, schema in (found.get("patternProperties") or {}).items():
            try:
                if len(pattern) < 200 and re.search(pattern, key):
                    return schema
            except re.error:
                continue
        more = found.get("additionalProperties", found.get("unevaluatedProperties", True))
        return more if more is not False else True

    def _fill(self, found: JsonSchema, result: dict[str, Any], place: str, depth: int, least: int) -> None:
        """Members with names of their own, where the schema has rules for such."""
        more = found.get("additionalProperties", found.get("unevaluatedProperties"))
        patterns = found.get("patternProperties") or {}
        wish = (
            least if least > len(result) else (1 if place and not result and not found.get("properties") and depth < 3 else 0)
        )
        if not wish or (more is False and not patterns):
            return
        names = found.get("propertyNames")
        for number in range(wish - len(result) if least > len(result) else wish):
            schema = more if isinstance(more, Mapping) else True
            key = f"key{number + 1}"
            if patterns:
                pattern, schema = next(iter(patterns.items()))
                key = by_pattern(pattern, self._dice) or key
            elif isinstance(names, Mapping):
                made = self.value(merged({"type": "string"}, names), f"{place}.#{number}", "key", depth + 1)
                key = made if isinstance(made, str) else key
            value = self.value(schema, f"{place}.{key}", key, depth + 1)
            if value is not _ABSENT:
                result[key] = value

    def _array(self, found: JsonSchema, place: str, name: str, depth: int) -> Any:
        whole = [value for value in self._guessed(found, name, list) if value]
        if whole and place not in self._chosen and not found.get("prefixItems"):
            return self._pick(place, whole)
        items = [self.value(s, f"{place}[{n}]", name, depth + 1) for n, s in enumerate(found.get("prefixItems") or ())]
        least, most = found.get("minItems") or 0, found.get("maxItems")
        least = max(least, self._rules.least(name))
        wish = max(least, 1 if depth <= MAX_DEPTH // 2 and found.get("items") is not False else 0, len(items))
        if isinstance(most, int):
            wish = min(wish, most)
        contains = found.get("contains")
        if contains is not None:
            items += [
                self.value(contains, f"{place}[c{n}]", name, depth + 1) for n in range(min(found.get("minContains", 1), 20))
            ]
        tries = 0
        while len(items) < wish and tries < 200:
            tries += 1
            value = self.value(found.get("items", True), f"{place}[{len(items)}]", name, depth + 1)
            if value is _ABSENT:
                break
            if found.get("uniqueItems") and value in items:
                value = _varied(value, tries)
            items.append(value)
        return [item for item in items if item is not _ABSENT][: most if isinstance(most, int) else None]

    # plain values

    def _guessed(self, found: JsonSchema, name: str, kind: type | tuple[type, ...]) -> list[Any]:
        given = [found["default"]] if "default" in found else []
        given += found["examples"] if isinstance(found.get("examples"), list) else []
        guesses = list(self._guess(name, found))
        own = [value for value in (*guesses, *given) if isinstance(value, kind)]
        if kind is not bool:
            own = [value for value in own if not isinstance(value, bool)]
        plain = {key: value for key, value in found.items() if key not in ("$defs", "default", "examples", "description")}
        return [value for value in _unique(own) if self.document.fits(plain, value)]

    def _scalar(self, found: JsonSchema, place: str, name: str, kind: str) -> Any:
        match kind:
            case "boolean":
                guessed = self._guessed(found, name, bool)
                return self._pick(place, _unique([*guessed, False, True]))
            case "integer":
                return self._pick(place, _unique([*self._guessed(found, name, int), *_numbers(found, whole=True)]))
            case "number":
                return self._pick(place, _unique([*self._guessed(found, name, (int, float)), *_numbers(found, whole=False)]))
        options = self._guessed(found, name, str)
        if not options:
            options = self._strings(found)
        return self._pick(place, options)

    def _strings(self, found: JsonSchema) -> list[str]:
        made: list[str] = []
        if isinstance(found.get("format"), str):
            made += by_format(found["format"])
        if isinstance(found.get("pattern"), str):
            made += [text for _ in range(3) if (text := by_pattern(found["pattern"], self._dice)) is not None]
        made += of_length(found.get("minLength"), found.get("maxLength"))
        plain = {key: found[key] for key in ("minLength", "maxLength", "pattern", "not") if key in found}
        return [text for text in _unique(made) if self.document.fits(plain, text)] or made[:1] or ["sample"]


def _drawn(draw: _Draw) -> Any:
    """A value for the whole schema; nothing where the schema is not what a schema is."""
    try:
        return draw.value(draw.document.root)
    except (TypeError, AttributeError, ValueError, KeyError, RecursionError, OverflowError):
        return None


def _weight(branch: Any) -> int:
    """Deep inside a recursion the branch that ends it is wanted."""
    text = repr(branch)
    return len(text) + 10_000 * text.count("$ref")


def _unique(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(value == other and type(value) is type(other) for other in found):
            found.append(value)
    return found


def _varied(value: Any, number: int) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + number
    if isinstance(value, str):
        return f"{value}{number}"
    if isinstance(value, dict) and value:
        key = next(iter(value))
        return {**value, key: _varied(value[key], number)}
    return value


def _numbers(found: JsonSchema, *, whole: bool) -> list[int | float]:
    low = found.get("minimum", -math.inf)
    if "exclusiveMinimum" in found and isinstance(found["exclusiveMinimum"], int | float):
        low = max(low, found["exclusiveMinimum"] + (1 if whole else 1e-3))
    high = found.get("maximum", math.inf)
    if "exclusiveMaximum" in found and isinstance(found["exclusiveMaximum"], int | float):
        high = min(high, found["exclusiveMaximum"] - (1 if whole else 1e-3))
    step = found.get("multipleOf")
    options: list[int | float] = []
    for wish in (1, 2, 10, 0, 100):
        value: int | float = min(max(wish, low), high)
        if isinstance(step, int | float) and step > 0:
            value = math.ceil(value / step) * step
            if value > high:
                value = math.floor(high / step) * step
        if math.isfinite(value):
            options.append((math.ceil(value) if value != int(value) else int(value)) if whole else value)
    return _unique(options) or [1]

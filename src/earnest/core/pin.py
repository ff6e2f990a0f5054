"""Pins: a tool is the definition that a person was shown, and a change of it is judged before it counts.

Theory. The pin of a tool is SHA-256 over the canonical form of its whole definition, written `v1:` and 64
hexadecimal digits; the number is that of the formula, so that a later one can take over from stored bytes
without an alarm. The pin says whether anything changed. What changed, and how bad that is, says
`difference`, from the two definitions:

    neutral     nothing that anybody could act on: an absent hint spelled out as its default or the reverse,
    the order
                of keys, of set-like lists and of comma-separated defaults, a path that a person marked as
                noise
    tightening  a hint went to its riskier value, spelled out or by losing its safe claim; takes effect at
    once loosening   everything else, and any changed text: what is not provably one of the above refused
    the definition can be read in two ways

Set-like lists are `required`, `type` and `enum` of a JSON Schema: the first two are sets by specification
(JSON Schema Validation 6.1.1, 6.5.3), the third is one in meaning (6.1.2), and servers print all three from
unordered sets. `anyOf`, `oneOf` and `prefixItems` are no sets here: their order says which alternative a
reader tries first or which value goes where. A list counts as set-like only where a schema keyword stands,
not in data (a default, an example, `_meta`) that happens to use the same word.

Noise is bounded, because the text in it comes from the server: a pattern is tried only on single words that
look like a path, never on prose, and a path with a blank, a control or an invisible character in it is
none.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from earnest.core.canonical import canonical
from earnest.core.errors import EarnestError
from earnest.core.hints import RISKY, WIRE_NAMES
from earnest.core.regex import Regex
from earnest.core.visible import visible

FORMULA: Final = 1
"""The formula that new pins are made with."""

Kind = Literal["neutral", "tightening", "loosening", "refused"]
_SEVERITY: Final[dict[Kind, int]] = {"neutral": 0, "tightening": 1, "loosening": 2, "refused": 3}

_TWINS: Final = (("inputSchema", "input_schema"), ("outputSchema", "output_schema"))
_SCHEMAS: Final = frozenset(name for pair in _TWINS for name in pair)

_SET_LIKE: Final = frozenset(["required", "type", "enum"])
_SCHEMA_IN: Final = frozenset(
    [
        *("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"),
        *("contains", "propertyNames", "not", "if", "then", "else", "contentSchema"),
    ]
)
_SCHEMA_LISTS: Final = frozenset(["anyOf", "oneOf", "allOf", "prefixItems", "items"])
_SCHEMA_MAPS: Final = frozenset(
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]
)
_WORD: Final = re.compile(r"[^\s,]+")
_PATH: Final = re.compile(r"(?<![^\s\"'(\[=`])(?:~?/(?!/)|[A-Za-z]:[\\/])[^\s\"'`()\[\]<>]{0,4096}")
_CONTEXT: Final = 30


class Change(msgspec.Struct, frozen=True):
    """One place where two definitions differ: `path` is a JSON pointer (RFC 6901), `old` and `new` are JSON
    texts, empty where there is no value."""

    path: str
    old: str
    new: str
    kind: Kind


class Difference(msgspec.Struct, frozen=True):
    """How a definition changed: the worst kind of its changes, and these in the order of their paths."""

    kind: Kind
    changes: tuple[Change, ...] = ()


class _Number(msgspec.Struct, frozen=True):
    """The text of a number: `1` and `1.0` differ, and neither is the string."""

    text: str


_ABSENT: Final = object()


def pin(tool: bytes, formula: int = FORMULA) -> str:
    """The pin of one tool definition, e.g. `v1:9f86…`.

    Raises `EarnestError`: E1301 to E1303 where the definition is not proper JSON, E1602 where it can be
    read in two ways, E1603 for a formula this earnest does not know.
    """
    make = _FORMULAS.get(formula)
    if make is None:
        raise EarnestError(
            "E1603",
            f"pin formula v{formula} is not known to this earnest",
            "Use the newer earnest that made the pin.",
        )
    twins = ambiguity(tool)
    if twins:
        raise EarnestError("E1602", f"the tool has both {twins[0]} and {twins[1]}, and they differ")
    return f"v{formula}:{make(tool)}"


def text_pin(text: str) -> str:
    """The pin of a server's instructions; of the empty text where it gives none."""
    return f"v{FORMULA}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def holds(accepted: str, tool: bytes) -> bool:
    """Whether `tool` is the definition that `accepted` was made of, under the formula of `accepted`. Raises
    as `pin`."""
    return accepted == pin(tool, formula(accepted))


def formula(accepted: str) -> int:
    """The number of the formula of a pin. Raises E1603 for what is no pin."""
    head, colon, rest = accepted.partition(":")
    if not colon or head[:1] != "v" or not head[1:].isdecimal() or not head.isascii() or len(rest) != 64:
        raise EarnestError("E1603", f"{accepted[:80]!a} is no pin")
    return int(head[1:])


def ambiguity(tool: bytes) -> tuple[str, str] | None:
    """The two spellings of one member that a tool has both of, with different values; None where there are
    none."""
    return _twins(_load(tool))


def difference(old: bytes, new: bytes, noise: Sequence[str] = ()) -> Difference:
    """What changed from one tool definition to the next, and how bad that is.

    `noise` are regular expressions (linear ones, see `core.regex`); a path in which one occurs is not
    compared. Raises as `pin` does for what is not proper JSON, and E1109 for a pattern that is none.
    """
    before, after = _load(old), _load(new)
    twins = _twins(after)
    if twins:
        pair = (_json(after[twins[0]]), _json(after[twins[1]]))
        return Difference("refused", (Change(f"/{twins[1]}", pair[0], pair[1], "refused"),))
    if before == after:
        return Difference("neutral")
    patterns = tuple(Regex(text) for text in noise)
    changes = tuple(_tool(before, after, patterns))
    return Difference(
        max((change.kind for change in changes), key=_SEVERITY.__getitem__, default="neutral"), changes
    )


def text_difference(old: str, new: str, noise: Sequence[str] = ()) -> Difference:
    """The same for the instructions of a server: equal but for noise, or loosening."""
    if old == new:
        return Difference("neutral")
    patterns = tuple(Regex(text) for text in noise)
    kind: Kind = "neutral" if _quiet(old, patterns) == _quiet(new, patterns) else "loosening"
    return Difference(kind, (Change("", _json(old), _json(new), kind),))


def render(found: Difference) -> list[str]:
    """Plain lines for a person, worst first. Nothing is cut but what is the same on both sides, and that is
    counted; control, bidi and invisible characters are spelled out."""
    lines = []
    for change in sorted(found.changes, key=lambda change: -_SEVERITY[change.kind]):
        old, new = _apart(change.old, change.new)
        lines.append(f"{change.kind}: {visible(change.path) or 'text'}")
        lines.append(f"  was: {visible(old) if change.old else '(absent)'}")
        lines.append(f"  now: {visible(new) if change.new else '(absent)'}")
    return lines


# Comparing


def _tool(before: Any, after: Any, noise: tuple[Regex, ...]) -> Iterator[Change]:
    if type(before) is not dict or type(after) is not dict:
        yield Change("", _json(before), _json(after), "loosening")
        return
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, _ABSENT), after.get(key, _ABSENT)
        path = f"/{_pointer(key)}"
        if key == "annotations":
            yield from _annotations(old, new, path, noise)
        else:
            yield from _value(old, new, path, key in _SCHEMAS, noise)


def _annotations(old: Any, new: Any, path: str, noise: tuple[Regex, ...]) -> Iterator[Change]:
    before = {} if old is None or old is _ABSENT else old
    after = {} if new is None or new is _ABSENT else new
    if type(before) is not dict or type(after) is not dict:
        yield from _value(old, new, path, False, noise)
        return
    if not before and not after and old is not new and _json(old) != _json(new):
        yield Change(path, _json(old), _json(new), "neutral")
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key, _ABSENT), after.get(key, _ABSENT)
        kind = _hint(WIRE_NAMES[key], was, now) if key in WIRE_NAMES else None
        if kind is None:
            yield from _value(was, now, f"{path}/{_pointer(key)}", False, noise)
        elif was is not now:
            yield Change(f"{path}/{key}", _json(was), _json(now), kind)


def _hint(name: str, was: Any, now: Any) -> Kind | None:
    """How a hint changed; None for values that are no hint. `"true"` counts as absent for us, but others
    may read it, so that a change from or to it is a change of text."""
    sides = []
    for value in (was, now):
        if value is None or value is _ABSENT:
            sides.append(RISKY[name])
        elif value is True or value is False:
            sides.append(value)
        else:
            return None
    if sides[0] is sides[1]:
        return "neutral"
    return "tightening" if sides[1] is RISKY[name] else "loosening"


def _value(old: Any, new: Any, path: str, schema: bool, noise: tuple[Regex, ...]) -> Iterator[Change]:
    """Compare two values. `schema`: they stand where a JSON Schema does."""
    if old is new:
        return
    if type(old) is dict and type(new) is dict:
        for key in sorted(old.keys() | new.keys()):
            was, now = old.get(key, _ABSENT), new.get(key, _ABSENT)
            below = f"{path}/{_pointer(key)}"
            if schema:
                yield from _keyword(key, was, now, below, noise)
            else:
                yield from _value(was, now, below, False, noise)
    elif type(old) is list and type(new) is list and len(old) == len(new):
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from _value(was, now, f"{path}/{index}", schema, noise)
    elif type(old) is not type(new) or old != new:
        same = type(old) is str and type(new) is str and _quiet(old, noise) == _quiet(new, noise)
        yield Change(path, _json(old), _json(new), "neutral" if same else "loosening")


def _keyword(key: str, old: Any, new: Any, path: str, noise: tuple[Regex, ...]) -> Iterator[Change]:
    """Compare the values of one keyword of a schema."""
    if type(old) is list and type(new) is list and key in _SET_LIKE:
        if old != new:
            same = sorted(map(_json, old)) == sorted(map(_json, new))
            yield Change(path, _json(old), _json(new), "neutral" if same else "loosening")
    elif key in _SCHEMA_MAPS and type(old) is dict and type(new) is dict:
        for name in sorted(old.keys() | new.keys()):
            below = f"{path}/{_pointer(name)}"
            yield from _value(old.get(name, _ABSENT), new.get(name, _ABSENT), below, True, noise)
    elif key == "default" and type(old) is str and type(new) is str and old != new and _same_items(old, new):
        yield Change(path, _json(old), _json(new), "neutral")
    else:
        inside = key in _SCHEMA_LISTS if type(old) is list else key in _SCHEMA_IN
        yield from _value(old, new, path, inside, noise)


def _same_items(old: str, new: str) -> bool:
    """Whether two defaults are one comma-separated list in two orders. Items are single words, so that
    prose with a comma in it is none, and the white space around them is the same in sum."""
    items = [[item.strip(" ") for item in text.split(",")] for text in (old, new)]
    return (
        len(items[0]) > 1
        and len(old) == len(new)
        and all(_WORD.fullmatch(item) for item in items[0])
        and sorted(items[0]) == sorted(items[1])
    )


def _quiet(text: str, noise: tuple[Regex, ...]) -> str:
    """`text` with the paths that are noise put out of sight. U+0000 marks the place, and a text that has
    one already is left alone."""
    if not noise or "\0" in text:
        return text

    def hide(found: re.Match[str]) -> str:
        path = found[0]
        if path != visible(path):
            return path
        return "\0" if any(pattern.search(path) for pattern in noise) else path

    return _PATH.sub(hide, text)


# Reading and writing


def _load(raw: bytes) -> Any:
    return json.loads(canonical(raw), parse_float=_Number, parse_int=_Number)


def _json(value: Any) -> str:
    """Canonical enough to compare and to show: keys sorted, numbers as they stood, nothing for what is
    absent."""
    if value is _ABSENT:
        return ""
    if type(value) is _Number:
        return str(value.text)
    if type(value) is dict:
        return "{" + ",".join(f"{_json(key)}:{_json(value[key])}" for key in sorted(value)) + "}"
    if type(value) is list:
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _twins(tool: Any) -> tuple[str, str] | None:
    if type(tool) is dict:
        for wire, other in _TWINS:
            if wire in tool and other in tool and _json(tool[wire]) != _json(tool[other]):
                return wire, other
    return None


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _apart(old: str, new: str) -> tuple[str, str]:
    """Two texts without the long stretches they share at both ends, which are counted instead."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    head = head - _CONTEXT if head > 2 * _CONTEXT else 0
    tail = tail - _CONTEXT if tail > 2 * _CONTEXT else 0

    def cut(text: str) -> str:
        front = f"[{head} characters as before] " if head else ""
        back = f" [{tail} characters as before]" if tail else ""
        return front + text[head : len(text) - tail] + back

    return (cut(old), cut(new)) if old and new else (old, new)


def _formula_1(tool: bytes) -> str:
    return hashlib.sha256(canonical(tool)).hexdigest()


_FORMULAS: Final[Mapping[int, Callable[[bytes], str]]] = {1: _formula_1}

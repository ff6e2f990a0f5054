"""What servers say of arguments they do not take, read for what they would take.

`Sheet 'Tab' not found. Available sheets: 'Sheet1'` blames one value and offers another; `must point to a CSV file (.csv)` says
of which kind it is to be; `count: must be at least 1` bounds a number; `needs options or source` asks for a member, `does not
use axis` for one less. A complaint is laid to those parameters whose value it quotes or whose name it has; what one tool was
told of a value is offered to others whose parameter has that name too, after all they were told themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.assay.arguments.answers import leaves
from earnest.assay.arguments.harvest import words

_IN_QUOTES: Final = re.compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"|`([^`\n]{1,200})`")
_OFFERED: Final = re.compile(
    r"\b(?:available|one of|such as|valid|allowed|expected|choose from|options?(?: are)?:|like|e\.g\.?|use|supported|possible"
    r"|did you mean|must be|input should be)\b",
    re.I,
)
_ENDING: Final = re.compile(r"(?<![\w/])\.([a-z][a-z0-9]{1,5})\b")
_AT_LEAST: Final = re.compile(r"(?:at least|greater than or equal to|>=|minimum(?: is| of)?|no less than)\s*(-?\d+)", re.I)
_ABOVE: Final = re.compile(r"(?:greater than|more than|above|>)\s*(-?\d+)", re.I)
_AT_MOST: Final = re.compile(
    r"(?:at most|less than or equal to|<=|maximum(?: is| of)?|no more than|cannot exceed)\s*(-?\d+)", re.I
)
_POSITIVE: Final = re.compile(r"\bpositive\b", re.I)
_MISSING: Final = re.compile(
    r"(?:missing|required|requires?|needs?|give|provide|specify|must (?:have|include|contain|be given)|expected|without)\b"
    r"([^.;\n]{0,160})",
    re.I,
)
_FIELD_REQUIRED: Final = re.compile(
    r"([\w.\[\]]+)['\"`]?\s*:?\s*\n?\s*(?:field required|is required|is missing|required)", re.I
)
_SPOKEN: Final = re.compile(r"((?:[A-Za-z]+ ){0,2}[A-Za-z]+)(?: is| are) (?:required|missing|needed)", re.I)
_TOO_MANY: Final = re.compile(
    r"(?:does not (?:use|take|accept|support|allow)|do not (?:use|give)|not allowed|not permitted|unexpected|unknown|extra"
    r"|cannot be (?:used|combined|given)|takes? no|must not|drop|leave out|remove)\b([^.;\n]{0,200})",
    re.I,
)
_EXTRA_FIELD: Final = re.compile(r"([\w.\[\]]+)\s*:?\s*\n?\s*extra inputs are not permitted", re.I)
_ABSOLUTE: Final = re.compile(r"/|~/|[A-Za-z]:[\\/]")
"""Paths in examples are of somebody else's machine."""
_EITHER: Final = re.compile(r"\beither\s+[`'\"]?(\w+)[`'\"]?(?:\s*\([^)]*\))?\s+or\s+[`'\"]?(\w+)", re.I)
_TAKEN: Final = re.compile(r"\b(?:already|duplicate|in use|taken)\b", re.I)
_MANY: Final = re.compile(r"(?:needs?|requires?|at least|must have)\s+(\d+)(?:\s+(?:or|to)\s+\d+)?\s+(\w+)", re.I)
_WORD: Final = re.compile(r"[A-Za-z_][\w-]*")
_LONGEST: Final = 1500
_MOST: Final = 40


class Complaint(msgspec.Struct, frozen=True):
    """One failed call: what was said, and the values it is laid to, by parameter: those quoted back, else those of parameters
    that are named."""

    text: str
    blamed: Mapping[str, tuple[Any, ...]]
    offered: tuple[tuple[frozenset[str], tuple[str, ...]], ...]
    """Values that would do, with the words before them."""
    instead: Mapping[str, tuple[str, ...]]
    """Values that may do in the place of one, by parameter: where a part of it was wrong, or where it was taken already."""
    asked: frozenset[str]
    refused: frozenset[str]
    """Members that are asked for, and that are not wanted."""
    spoken: tuple[frozenset[str], ...]
    """Words of members that are asked for by words: `branch name is required` for `branchName`."""


class Complaints:
    """All that was said, by tool."""

    def __init__(self) -> None:
        self._heard: dict[str, list[Complaint]] = {}
        self.tools: frozenset[str] = frozenset()
        """Names of tools, which complaints name to be called first and not to be given."""
        self.count = 0
        """How many different ones there were: who made guesses before the last one may make better ones now."""

    def add(self, tool: str, arguments: Mapping[str, Any], text: str) -> None:
        """A call of a tool with these arguments failed with these words."""
        text = text[:_LONGEST]
        kept = self._heard.setdefault(tool, [])
        if len(kept) >= _MOST or any(one.text == text for one in kept):
            return
        quoted: dict[str, tuple[Any, ...]] = {}
        named: dict[str, tuple[Any, ...]] = {}
        instead: dict[str, tuple[str, ...]] = {}
        values, said, offered = _quotes(text), set(_WORD.findall(text)), tuple(_offered(text))
        for path, value in leaves(arguments):
            name = next((part for part in reversed(path) if isinstance(part, str)), "")
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                continue
            if isinstance(value, str) and len(value) > 1 and value in values:
                quoted[name] = (*quoted.get(name, ()), value)
                instead[name] = (_another(value),) if _TAKEN.search(text) else ()
            elif name in said:
                named[name] = (*named.get(name, ()), value)
            if isinstance(value, str) and (part := next((one for one in values if one != value and _part(one, value)), "")):
                instead[name] = tuple(value.replace(part, one) for _, some in offered[:1] for one in some)
        asked = _words(_MISSING.findall(text)) | _steps(_FIELD_REQUIRED.findall(text))
        spoken = tuple(frozenset(words(phrase)) for phrase in _SPOKEN.findall(text))
        refused = _words(_TOO_MANY.findall(text)) | _steps(_EXTRA_FIELD.findall(text))
        for one, other in _EITHER.findall(text):
            asked, refused = (asked | {one}) - {other}, (refused | {other}) - {one}
        blamed = {name: quoted[name] for name in _meant(text, quoted)} or named
        kept.append(Complaint(text, blamed, offered, instead, asked, refused, spoken))
        self.count += 1

    def offers(self, tool: str, name: str) -> list[Any]:
        """Values that complaints about a parameter say would do, this tool's first."""
        wanted = set(words(name))
        found: list[Any] = []
        for one in reversed(self._heard.get(tool, ())):
            found += one.instead.get(name, ())
        for one in [*reversed(self._heard.get(tool, ())), *self._others(tool)]:
            for phrase, values in one.offered:
                if name in one.blamed or wanted & phrase:
                    found += [v for v in values if v not in one.blamed.get(name, ()) and v not in self.tools]
                    break
        return list(dict.fromkeys(found))[:6]

    def numbers(self, tool: str, name: str) -> list[int]:
        """Numbers at the bounds that complaints tell of a parameter."""
        found: list[int] = []
        for one in self._heard.get(tool, ()):
            at = one.text.find(name)
            if at < 0:
                continue
            said = one.text[at : at + 160]
            found += [int(number) for number in _AT_LEAST.findall(said)[:1]]
            found += [int(number) + 1 for number in _ABOVE.findall(said)[:1]]
            found += [int(number) for number in _AT_MOST.findall(said)[:1]]
            found += [1] if _POSITIVE.search(said) else []
        return list(dict.fromkeys(found))

    def endings(self, tool: str, name: str) -> list[str]:
        """Kinds of files, by ending, that complaints about a parameter ask for."""
        found: list[str] = []
        for one in reversed(self._heard.get(tool, ())):
            values = one.blamed.get(name, ())
            text = one.text
            for value in values:
                text = text.replace(str(value), " ")
            if values:
                found += [ending for ending in _ENDING.findall(text.lower()) if ending not in found]
        return found

    def bad(self, tool: str, name: str, value: Any) -> bool:
        """Whether a value of a parameter was complained about."""
        return any(_is_in(value, one.blamed.get(name, ())) for one in self._heard.get(tool, ()))

    def wish(self, tool: str, name: str) -> bool | None:
        """Whether a member that may be left out is asked for (True) or not wanted (False); what was said last counts."""
        wish: bool | None = None
        for one in self._heard.get(tool, ()):
            if name in one.refused:
                wish = False
            elif (name in one.asked or frozenset(words(name)) in one.spoken) and name not in one.blamed:
                wish = True
        return wish

    def least(self, tool: str, name: str) -> int:
        """How many elements a list is said to need."""
        wanted = set(words(name))
        pairs = [pair for one in self._heard.get(tool, ()) for pair in _MANY.findall(one.text)]
        return max((int(number) for number, noun in pairs if wanted & set(words(noun)) and int(number) < 50), default=0)

    def words_of(self, tool: str) -> str:
        """All that a tool complained about, as one text."""
        return " ".join(one.text for one in self._heard.get(tool, ())).lower()

    def _others(self, tool: str) -> Iterator[Complaint]:
        for other, said in self._heard.items():
            if other != tool:
                yield from said[:6]


def _quotes(text: str) -> frozenset[str]:
    return frozenset(value for groups in _IN_QUOTES.findall(text) for value in groups if value)


def _part(part: str, value: str) -> bool:
    """Whether a text is a part of a value, by itself."""
    return len(part) > 2 and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", value) is not None


def _another(value: str) -> str:
    """A value like one that is taken."""
    stem, dot, ending = value.rpartition(".")
    return f"{stem}2{dot}{ending}" if dot and len(ending) < 6 else f"{value}2"


def _meant(text: str, quoted: Mapping[str, Sequence[Any]]) -> Sequence[str]:
    """The parameters that a complaint is about, where several have the value that it quotes: those it names before it."""
    if len(quoted) < 2:
        return tuple(quoted)
    near = [
        name
        for name, values in quoted.items()
        if any(set(words(name)) & set(words(text[max(0, text.find(v) - 25) : max(0, text.find(v))])) for v in values)
    ]
    return near or tuple(quoted)


def _offered(text: str) -> Iterator[tuple[frozenset[str], tuple[str, ...]]]:
    for offer in _OFFERED.finditer(text):
        rest = text[offer.start() :].partition("\n")[0]
        phrase = frozenset(words(re.split(r"['\"`]", rest, maxsplit=1)[0]))
        values = [value for groups in _IN_QUOTES.findall(rest) for value in groups if value]
        yield phrase, tuple(value for value in values if not _ABSOLUTE.match(value))[:8]


def _words(parts: Sequence[str]) -> frozenset[str]:
    return frozenset(word for part in parts for word in _WORD.findall(part))


def _steps(places: Sequence[str]) -> frozenset[str]:
    """The names in places like `options.items[0]`."""
    return frozenset(part for place in places for part in re.split(r"[.\[\]]", place))


def _is_in(value: Any, values: Sequence[Any]) -> bool:
    return any(value == one and type(value) is type(one) for one in values)

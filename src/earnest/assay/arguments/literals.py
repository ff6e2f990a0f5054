"""Values that a server's own source compares with: what only one magic word sets off is found with that word.

Read with expressions, not parsed: Python, JavaScript and TypeScript alike, where the source can be read; minified or compiled
servers give little, and nothing is lost by that but the words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from earnest.assay.arguments.harvest import words

_TEXT: Final = r"""(?:"([^"\\\n]{1,100})"|'([^'\\\n]{1,100})')"""
_SUBJECT: Final = r"""([\w.$]+(?:\[['"]\w+['"]\]|\.get\(['"]\w+['"][^)\n]{0,30}\))?[\w.()]{0,40})"""
_EQUAL: Final = re.compile(_SUBJECT + r"\s*[!=]==?\s*" + _TEXT)
_METHOD: Final = re.compile(_SUBJECT + r"\.(?:startswith|startsWith|endswith|endsWith|includes|match)\(\s*" + _TEXT)
_CONTAINS: Final = re.compile(_TEXT + r"\s+in\s+" + _SUBJECT)
_AMONG: Final = re.compile(_SUBJECT + r"\s+in\s+[\[({]([^\])}\n]{1,300})[\])}]")
_CASE: Final = re.compile(r"\bcase\s+" + _TEXT)
_NUMBER: Final = re.compile(_SUBJECT + r"\s*([!=<>]=?=?)\s*(-?\d{1,12})\b")
_REMAINDER: Final = re.compile(_SUBJECT + r"\s*%\s*(\d{1,6})\s*={2,3}\s*(\d{1,6})")
_ANY_TEXT: Final = re.compile(_TEXT)
_ENDINGS: Final = (".py", ".js", ".mjs", ".cjs", ".ts")
_SKIPPED: Final = frozenset({"node_modules", "__pycache__", ".git", "tests", "test", "venv", ".venv", "dist-info"})
_LARGEST: Final = 1_500_000
_MOST_FILES: Final = 200
_MOST: Final = 400
_LONGEST_TEXT: Final = 400
"""Lengths that source compares with, up to which a text of that length is made."""


class Literal(msgspec.Struct, frozen=True):
    """A value, and the words of what it is compared with."""

    subject: tuple[str, ...]
    value: Any
    how: str = "=="


class Literals:
    """What was mined, by parameter."""

    def __init__(self, found: Sequence[Literal] = ()) -> None:
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def of(self, parameter: str, most: int = 10) -> list[Any]:
        """Values that the source compares something of this name with, and those it compares something unnamed with."""
        wanted = set(words(parameter))
        own = [one.value for one in self._found if wanted & set(one.subject)]
        return own[:most]

    def others(self, parameter: str, most: int = 8) -> list[Any]:
        """Values compared with something of another name, for text parameters."""
        wanted = set(words(parameter))
        loose = [one for one in self._found if not wanted & set(one.subject)]
        return [one.value for one in loose][:most]


def mined(places: Iterable[str]) -> Literals:
    """Read source files and folders. Raises nothing: what cannot be read says nothing."""
    found: dict[tuple[tuple[str, ...], str], Literal] = {}
    for path in _files(places):
        try:
            if os.path.getsize(path) > _LARGEST:
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        for literal in of_text(text):
            if isinstance(literal.value, str) and not any(char.isalnum() for char in literal.value):
                continue
            found.setdefault((literal.subject, repr(literal.value)), literal)
        if len(found) > _MOST:
            break
    return Literals(list(found.values())[:_MOST])


def _files(places: Iterable[str]) -> Iterable[str]:
    count = 0
    for place in places:
        if os.path.isfile(place):
            yield place
            continue
        for folder, folders, names in os.walk(place):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.endswith(".dist-info"))
            for name in sorted(names):
                if name.endswith(_ENDINGS) and not name.endswith((".min.js", ".d.ts")):
                    count += 1
                    if count > _MOST_FILES:
                        return
                    yield os.path.join(folder, name)


def of_text(text: str) -> list[Literal]:
    """What one source file compares with."""
    found: list[Literal] = []
    for pattern, how in ((_EQUAL, "=="), (_METHOD, "part")):
        for subject, double, single in pattern.findall(text):
            found.append(Literal(words(subject), double or single, how))
    for double, single, subject in _CONTAINS.findall(text):
        found.append(Literal(words(subject), double or single, "part"))
    for subject, inside in _AMONG.findall(text):
        found += [Literal(words(subject), double or single) for double, single in _ANY_TEXT.findall(inside)]
    found += [Literal((), double or single) for double, single in _CASE.findall(text)]
    for subject, sign, number in _NUMBER.findall(text):
        step = 1 if ">" in sign else -1 if "<" in sign else 0
        if not {"len", "length"} & set(words(subject)):
            found.append(Literal(words(subject), int(number) + step, sign))
        elif 0 < int(number) + step <= _LONGEST_TEXT:
            found.append(Literal(words(subject), ("alpha " * _LONGEST_TEXT)[: int(number) + step].replace(" ", "-"), "length"))
    for subject, divisor, rest in _REMAINDER.findall(text):
        found.append(Literal(words(subject), int(divisor) + int(rest), "%"))
    return found

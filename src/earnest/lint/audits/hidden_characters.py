"""Characters that do not show, reorder, or look like others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from earnest.core.visible import visible
from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import Tool

_MIXED: Final = re.compile(r"[A-Za-z][A-Za-z]*[\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][A-Za-z]")
_ESCAPE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_DEEP: Final = 6


def _check(seen: Seen) -> Iterator[Note]:
    told = _wrong(seen.server.instructions)
    if told:
        yield Note(f"its instructions to the model: the text {told[0]}", fix="take them out", severity=told[1])
    for tool in seen.server.tools:
        for where, text in _texts(tool):
            if text.isascii() and text.isprintable():
                continue
            told = _wrong(text)
            if told:
                yield Note(f"its {where} {told[0]}", tool, fix="take them out", severity=told[1])
                break


def _texts(tool: Tool) -> Iterator[tuple[str, str]]:
    yield "name", tool.name
    yield "title", tool.title
    yield "description", tool.description
    yield from _inside(tool.schema, "schema", _DEEP)


def _inside(value: Any, where: str, left: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif left and isinstance(value, Mapping):
        for key, inner in value.items():
            yield where, key
            yield from _inside(inner, where, left - 1)
    elif left and isinstance(value, list):
        for inner in value:
            yield from _inside(inner, where, left - 1)


def _wrong(text: str) -> tuple[str, Any] | None:
    escaped = _ESCAPE.search(text)
    if escaped:
        return f"has a control character ({visible(escaped.group())})", "error"
    for at, char in enumerate(text):
        if char < "\u0300" and char != "\u00ad":
            continue
        code = ord(char)
        if 0xE0000 <= code <= 0xE007F and not text[max(0, at - 8) : at].count("\U0001f3f4"):
            return "has tag characters, which no screen shows", "error"
        if code in (0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069):
            return f"has a character that reorders text ({visible(char)})", "error"
        if code in (0x200B, 0x2060, 0xFEFF, 0x00AD, 0x180E) or unicodedata.category(char) == "Co":
            return f"has a character that does not show ({visible(char)})", "warning"
    mixed = _MIXED.search(text) if not text.isascii() else None
    if mixed and not any(c in mixed.group() for c in "µμΔσαβγπλθΩ"):
        word = mixed.group()
        return f"mixes letters that look alike in one word ({word.encode('ascii', 'backslashreplace').decode()})", "warning"
    return None


AUDIT = Audit(
    id="hidden-characters",
    severity="error",
    confidence="high",
    what="Control, bidirectional, zero-width and tag characters, and words that mix Latin with Greek or Cyrillic "
    "letters, in names, titles, descriptions and schemas.",
    why="The model reads what the person who approved the tool could not see.",
    how="Take them out. Text from elsewhere is cleaned before it goes into a definition.",
    example="A byte order mark or a zero-width space, pasted into a description, is the harmless form.",
    check=_check,
)

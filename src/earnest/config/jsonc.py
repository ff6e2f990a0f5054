"""JSON as clients write it: comments, trailing commas, a byte order mark. Scanned, never printed.

Accepted beyond RFC 8259: `//` and `/* */` comments, one trailing comma in objects and arrays, a leading
byte order mark, any line endings. Refused: two equal keys in one object (E1011), since two readers could
take two meanings, and anything else that is not JSON (E1010), since a file that cannot be read must not
look like a file without servers.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from earnest.config.document import Member, Node, decode, place
from earnest.core.errors import EarnestError

MAX_DEPTH: Final = 128
"""Nesting beyond this is refused; no client's configuration comes near."""

_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})*"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = {"true": True, "false": False, "null": None}
_WORD: Final = re.compile(r"true|false|null")


def scan(path: str, data: bytes) -> Node:
    """The tree of a file. An empty file, or one of comments only, is an empty object.

    `path` is for messages. Raises E1010 (not JSON) and E1011 (a key twice), both with line and column.
    """
    return _Scanner(path, data).document()


class _Scanner:
    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        self._data = data
        self._text = data.decode("latin-1")

    def document(self) -> Node:
        if self._data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise EarnestError("E1010", f"{self._path}: UTF-16, not UTF-8", "save the file as UTF-8")
        decode(self._path, self._data, 0, len(self._data))
        at = self._skip(3 if self._data.startswith(b"\xef\xbb\xbf") else 0)
        if at == len(self._text):
            return Node(kind="object", start=at, end=at)
        node, at = self._value(at, 0)
        at = self._skip(at)
        if at != len(self._text):
            self._fail(at, "more text after the end of the document")
        return node

    def _fail(self, at: int, what: str) -> NoReturn:
        raise EarnestError(
            "E1010",
            f"{place(self._path, self._data, at)}: {what}",
            "correct the file by hand; nothing was changed in it",
        )

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        at = found.end() if found else at
        if self._text.startswith("/*", at):
            self._fail(at, "a comment is never closed")
        return at

    def _value(self, at: int, depth: int) -> tuple[Node, int]:
        if depth > MAX_DEPTH:
            self._fail(at, f"nested deeper than {MAX_DEPTH}")
        sign = self._text[at : at + 1]
        if sign == "{":
            return self._object(at, depth)
        if sign == "[":
            return self._array(at, depth)
        if sign == '"':
            value, end = self._string(at)
            return Node(kind="string", start=at, end=end, value=value), end
        word = _WORD.match(self._text, at)
        if word:
            return Node(kind="other", start=at, end=word.end(), value=_WORDS[word.group()]), word.end()
        number = _NUMBER.match(self._text, at)
        if number:
            value = json.loads(number.group())
            return Node(kind="other", start=at, end=number.end(), value=value), number.end()
        self._fail(at, "a value was expected")

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._text, at)
        if not found:
            self._fail(at, "a string that is not closed, or holds a bad escape or control character")
        value: str = json.loads(decode(self._path, self._data, at, found.end()))
        return value, found.end()

    def _object(self, start: int, depth: int) -> tuple[Node, int]:
        members: list[Member] = []
        seen: set[str] = set()
        at = self._skip(start + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                self._fail(at, 'a key in double quotes, or "}", was expected')
            key_start = at
            key, key_end = self._string(at)
            if key in seen:
                raise EarnestError(
                    "E1011",
                    f'{place(self._path, self._data, key_start)}: the key "{key}" stands here twice',
                    "remove one of the two; nothing was changed in the file",
                )
            seen.add(key)
            at = self._skip(key_end)
            if self._text[at : at + 1] != ":":
                self._fail(at, '":" was expected')
            node, at = self._value(self._skip(at + 1), depth + 1)
            members.append(Member(key=key, start=key_start, end=key_end, node=node))
            at = self._comma(at, "}")
        return Node(kind="object", start=start, end=at + 1, members=tuple(members)), at + 1

    def _array(self, start: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        at = self._skip(start + 1)
        while self._text[at : at + 1] != "]":
            node, at = self._value(at, depth + 1)
            items.append(node)
            at = self._comma(at, "]")
        return Node(kind="array", start=start, end=at + 1, items=tuple(items)), at + 1

    def _comma(self, at: int, close: str) -> int:
        """Past a comma and the space after it, or at the closing sign."""
        at = self._skip(at)
        sign = self._text[at : at + 1]
        if sign == ",":
            return self._skip(at + 1)
        if sign != close:
            self._fail(at, f'"," or "{close}" was expected')
        return at

"""TOML with byte ranges.

Theory. `tomllib` decides what a document means and whether it is one; it keeps no positions. After it has
accepted a document, finding the ranges needs no error handling: keys, headers and values are walked in
order, and each scalar's meaning is what `tomllib` makes of its slice. A property holds the two readings
equal.

A table made by a header or a dotted key is scattered over a file, so its node has the range of the header
or key that named it first and `inline` false. An array of tables is an array whose items are such nodes.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

from earnest.config.document import Member, Node, decode, place
from earnest.core.errors import EarnestError

_SPACE: Final = re.compile(r"[ \t]*")
_GAP: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_BASIC: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL: Final = re.compile(r"'[^']*'")
_BASIC_LONG: Final = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""(?:"{1,2})?', re.DOTALL)
_LITERAL_LONG: Final = re.compile(r"'''(?:[^']|'(?!''))*'''(?:'{1,2})?", re.DOTALL)
_SCALAR: Final = re.compile(r"[^,\]}#\r\n]*[^,\]}#\r\n \t]")
_LINE_COLUMN: Final = re.compile(r"\s*\(at line (\d+), column (\d+)\)\s*$")


def scan(path: str, data: bytes, code: str = "E1002") -> Node:
    """The tree of a TOML file; a leading byte order mark is passed over.

    Raises `code` (not TOML, with line and column) and E1010 (not UTF-8).
    """
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    text = decode(path, data, start, len(data))
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _LINE_COLUMN.search(message)
        where = f"{path}:{found[1]}:{found[2]}" if found else path
        message = _LINE_COLUMN.sub("", message).replace("(at end of document)", "at the end of the file")
        raise EarnestError(code, f"{where}: not TOML: {message}", "correct the file by hand") from None
    except RecursionError:
        raise EarnestError(code, f"{path}: nested too deep", "correct the file by hand") from None
    return _Scanner(path, data, start).document()


class _Table:
    """A table while it grows. `start`, `end`: where it was first named."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.members: dict[str, tuple[int, int, Node | _Table | list[_Table]]] = {}

    def freeze(self) -> Node:
        members = []
        for key, (start, end, value) in self.members.items():
            if isinstance(value, _Table):
                node = value.freeze()
            elif isinstance(value, list):
                items = tuple(table.freeze() for table in value)
                node = Node(kind="array", start=items[0].start, end=items[-1].end, items=items, inline=False)
            else:
                node = value
            members.append(Member(key=key, start=start, end=end, node=node))
        return Node(kind="object", start=self.start, end=self.end, members=tuple(members), inline=False)


class _Scanner:
    def __init__(self, path: str, data: bytes, start: int) -> None:
        self._path, self._data, self._at = path, data, start
        self._text = data.decode("latin-1")

    def document(self) -> Node:
        root = _Table(self._at, self._at)
        current = root
        while True:
            self._gap()
            if self._at >= len(self._text):
                return root.freeze()
            if self._text.startswith("[[", self._at):
                current = self._header(root, 2)
            elif self._text[self._at] == "[":
                current = self._header(root, 1)
            else:
                self._pair(current)

    def _gap(self) -> None:
        found = _GAP.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _header(self, root: _Table, brackets: int) -> _Table:
        start = self._at
        self._at += brackets
        self._space()
        keys = self._keys()
        self._at += brackets
        table = root
        for key, key_start, key_end in keys[:-1]:
            table = self._step(table, key, key_start, key_end)
        key, key_start, key_end = keys[-1]
        if brackets == 1:
            return self._step(table, key, key_start, key_end, header=(start, self._at))
        entry = table.members.setdefault(key, (key_start, key_end, []))[2]
        assert isinstance(entry, list)
        entry.append(_Table(start, self._at))
        return entry[-1]

    @staticmethod
    def _step(table: _Table, key: str, start: int, end: int, header: tuple[int, int] | None = None) -> _Table:
        """Into the table of that key, made where it is missing; of an array of tables, into the last."""
        if key not in table.members:
            table.members[key] = (start, end, _Table(*(header or (start, end))))
        value = table.members[key][2]
        if isinstance(value, list):
            return value[-1]
        assert isinstance(value, _Table)
        if header:
            value.start, value.end = header
        return value

    def _keys(self) -> list[tuple[str, int, int]]:
        """The parts of a dotted key with their ranges; leaves off past the space after it."""
        keys = []
        while True:
            start = self._at
            pattern = {'"': _BASIC, "'": _LITERAL}.get(self._text[start], _BARE_KEY)
            found = pattern.match(self._text, start)
            assert found is not None
            self._at = found.end()
            if pattern is _BARE_KEY:
                name = found.group()
            else:
                name = str(self._scalar(start, found.end()))
            keys.append((name, start, found.end()))
            self._space()
            if self._text[self._at] != ".":
                return keys
            self._at += 1
            self._space()

    def _pair(self, table: _Table) -> None:
        keys = self._keys()
        self._at += 1  # "="
        self._space()
        for key, start, end in keys[:-1]:
            table = self._step(table, key, start, end)
        key, _, end = keys[-1]
        # The whole dotted key is the range: an edit that adds a sibling has to repeat the prefix.
        table.members[key] = (keys[0][1], end, self._value())

    def _value(self) -> Node:
        start = self._at
        sign = self._text[start]
        if sign == "[":
            return self._array(start)
        if sign == "{":
            return self._inline(start)
        for long, opening in ((_BASIC_LONG, '"""'), (_LITERAL_LONG, "'''"), (_BASIC, '"'), (_LITERAL, "'")):
            if self._text.startswith(opening, start):
                found = long.match(self._text, start)
                assert found is not None
                self._at = found.end()
                return Node(kind="string", start=start, end=self._at, value=self._scalar(start, self._at))
        found = _SCALAR.match(self._text, start)
        assert found is not None
        self._at = found.end()
        return Node(kind="other", start=start, end=self._at, value=self._scalar(start, self._at))

    def _scalar(self, start: int, end: int) -> object:
        return tomllib.loads("x = " + decode(self._path, self._data, start, end))["x"]

    def _array(self, start: int) -> Node:
        items = []
        self._at += 1
        self._gap()
        while self._text[self._at] != "]":
            items.append(self._value())
            self._gap()
            if self._text[self._at] == ",":
                self._at += 1
                self._gap()
        self._at += 1
        return Node(kind="array", start=start, end=self._at, items=tuple(items))

    def _inline(self, start: int) -> Node:
        table = _Table(start, start)
        self._at += 1
        self._gap()
        while self._text[self._at] != "}":
            self._pair(table)
            self._gap()
            if self._text[self._at] == ",":
                self._at += 1
                self._gap()
        self._at += 1
        frozen = table.freeze()
        return Node(kind="object", start=start, end=self._at, members=frozen.members)


def where(path: str, data: bytes, node: Node) -> str:
    """`path:line:column` of a node."""
    return place(path, data, node.start)

"""Where things stand in a policy: line and column of keys, of values, and of single characters inside a
string."""

from __future__ import annotations

from typing import Any, TypeAlias

from earnest.config.document import Node

Path: TypeAlias = tuple[str | int, ...]

_ESCAPES = {"b": 1, "t": 1, "n": 1, "f": 1, "r": 1, '"': 1, "\\": 1, "e": 1, "x": 3, "u": 5, "U": 9}


def plain(node: Node) -> Any:
    """The value of a node as `tomllib` would give it."""
    if node.kind == "object":
        return {member.key: plain(member.node) for member in node.members}
    if node.kind == "array":
        return [plain(item) for item in node.items]
    return node.value


class Positions:
    """Places by path (`("rule", 0, "when")`) in the bytes a node was scanned from."""

    def __init__(self, node: Node, data: bytes) -> None:
        self._data = data
        self._keys: dict[Path, int] = {(): node.start}
        self._values: dict[Path, int] = {}
        self._note(node, ())

    def _note(self, node: Node, path: Path) -> None:
        self._values[path] = node.start
        for member in node.members:
            self._keys[(*path, member.key)] = member.start
            self._note(member.node, (*path, member.key))
        for number, item in enumerate(node.items):
            self._keys[(*path, number)] = item.start
            self._note(item, (*path, number))

    def key(self, path: Path) -> tuple[int, int]:
        """Line and column (1-based) of a key, or of the nearest thing around it."""
        while path not in self._keys:
            path = path[:-1]
        return self._place(self._keys[path])

    def value(self, path: Path) -> tuple[int, int]:
        """Line and column of a value, or of what is around it."""
        return self._place(self._values[path]) if path in self._values else self.key(path)

    def inside(self, path: Path, index: int) -> tuple[int, int]:
        """Line and column of one character of a string value, by its index in the decoded string."""
        if path not in self._values:
            return self.key(path)
        start = self._values[path]
        text = self._data[start:].decode()
        offsets = _offsets(text)
        within = offsets[min(index, len(offsets) - 1)]
        return self._place(start + len(text[:within].encode()))

    def _place(self, offset: int) -> tuple[int, int]:
        line = self._data.rfind(b"\n", 0, offset) + 1
        return self._data.count(b"\n", 0, offset) + 1, len(self._data[line:offset].decode()) + 1


def _offsets(text: str) -> list[int]:
    """The offset of each decoded character of the TOML string at the start of `text`, and of its closing
    quotes."""
    width = 3 if text[:3] in ('"""', "'''") else 1
    quote, at = text[:width], width
    if width == 3:
        at += 2 if text.startswith("\r\n", at) else text.startswith("\n", at)
    found: list[int] = []
    # Up to two quotes may stand right before the closing three, and belong to the text.
    while not text.startswith(quote, at) or (width == 3 and text.startswith(quote[0], at + 3)):
        if text[at] == "\\" and quote[0] == '"':
            if text[at + 1] in " \t\r\n":  # a line that goes on: nothing of it is text
                at += 1
                while text[at] in " \t\r\n":
                    at += 1
                continue
            found.append(at)
            at += 1 + _ESCAPES[text[at + 1]]
            continue
        found.append(at)
        at += 2 if text.startswith("\r\n", at) else 1
    return [*found, at]

"""A parsed configuration file that still knows where every value stands.

Theory. A client's configuration belongs to its owner: comments, order, line endings and unknown keys stay
as they are. So nothing here is ever printed from a tree. A file is scanned into nodes that carry byte
ranges, and a change is a handful of `Edit`s on the bytes it was scanned from. The scanners (`jsonc`,
`toml_ranges`) make the nodes, the clients decide the edits, `apply` does them.

Scanners work on the bytes read as Latin-1, so that an index is a byte offset; all structure of JSON and
TOML is ASCII, and a string is decoded as UTF-8 from its own slice.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from earnest.core.errors import EarnestError

Kind = Literal["object", "array", "string", "other"]


class Member(msgspec.Struct, frozen=True):
    """One key of an object. `start`, `end`: the byte range of the key as written, quotes and dotted prefix
    included."""

    key: str
    start: int
    end: int
    node: Node


class Node(msgspec.Struct, frozen=True):
    """One value and its byte range. `value` is set for scalars, `members` for objects, `items` for arrays.

    A TOML table made by a header or by dotted keys has the range of the header or key that first named it,
    and `inline` false; every other object holds its members between `start` and `end`.
    """

    kind: Kind
    start: int
    end: int
    value: object = None
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()
    inline: bool = True

    def member(self, key: str) -> Member | None:
        """The member of that key, or None; also for a node that is no object."""
        for member in self.members:
            if member.key == key:
                return member
        return None

    def get(self, *path: str) -> Node | None:
        """The node at a path of keys, or None."""
        node: Node = self
        for key in path:
            member = node.member(key)
            if member is None:
                return None
            node = member.node
        return node

    def plain(self) -> object:
        """The value as Python data."""
        if self.kind == "object":
            return {member.key: member.node.plain() for member in self.members}
        if self.kind == "array":
            return [item.plain() for item in self.items]
        return self.value

    def text(self, key: str) -> str:
        """The string under a key, or the empty string where there is none."""
        node = self.get(key)
        return node.value if node is not None and isinstance(node.value, str) else ""

    def texts(self, key: str) -> tuple[str, ...] | None:
        """The strings of the array under a key; None where the key is missing or anything in it is no
        string."""
        node = self.get(key)
        if node is None or node.kind != "array":
            return None
        values = tuple(item.value for item in node.items if isinstance(item.value, str))
        return values if len(values) == len(node.items) else None


class Edit(msgspec.Struct, frozen=True, order=True):
    """Replace the bytes from `start` to `end` by `new`; an insertion has both equal."""

    start: int
    end: int
    new: bytes


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes after all edits. Their ranges are of `data` and must not overlap (`ValueError`)."""
    out: list[bytes] = []
    at = 0
    for edit in sorted(edits):
        if edit.start < at or edit.end < edit.start or edit.end > len(data):
            raise ValueError("overlapping edits")
        out += (data[at : edit.start], edit.new)
        at = edit.end
    out.append(data[at:])
    return b"".join(out)


def position(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column of a byte offset, both from 1; the column counts characters."""
    head = data[:offset]
    line_start = head.rfind(b"\n") + 1
    return head.count(b"\n") + 1, len(head[line_start:].decode("utf-8", "replace")) + 1


def place(path: str, data: bytes, offset: int) -> str:
    """`path:line:column`, the form editors can jump to."""
    line, column = position(data, offset)
    return f"{path}:{line}:{column}"


def nearest(word: str, known: Sequence[str]) -> str:
    """`did you mean "x"?` for the closest known word, or the known words, or the empty string."""
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{close[0]}"?'
    return "known here: " + ", ".join(known) if known else ""


def decode(path: str, data: bytes, start: int, end: int) -> str:
    """A slice as UTF-8. Raises E1010 naming the place of the bad byte."""
    try:
        return data[start:end].decode("utf-8")
    except UnicodeDecodeError as error:
        raise EarnestError("E1010", f"{place(path, data, start + error.start)}: not UTF-8", "save the file as UTF-8") from None

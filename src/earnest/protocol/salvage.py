"""Whose a message is that cannot be read, so that nobody waits for it until a timeout.

Theory. A message may be well enough formed to see its members and yet not be one that two parsers read alike: a lone
surrogate, nesting without end, a result beside an error. Here its outermost members are told apart by quotes and brackets
alone, whatever stands inside. Nothing of the message is used but its id, and that only where it can be told in one way: one
whole object, exactly one member that any parser could take for the id, a plain token as its value. Else it is nobody's.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

import msgspec

from earnest.protocol.envelope import MAX_ID_BYTES

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+|\s+|"', re.DOTALL)
_INTEGER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)\Z")
_PLAIN: Final = re.compile(rb'"[^"\\]*"\Z')
_CLOSES: Final = {b"}": b"{", b"]": b"["}
_MAX_TOKENS: Final = 200_000
_ENVELOPE: Final = frozenset(("method", "result", "error", "id"))


class Salvaged(msgspec.Struct, frozen=True):
    """`id`: the raw token, never empty. `kind`: whether it asks or answers, by the members that are there."""

    kind: Literal["request", "response"]
    id: bytes


def salvage(data: bytes) -> Salvaged | None:
    """What can be told of a message that `envelope.parse` refused; None where that is not its id and kind for sure."""
    members = _members(data.strip())
    if members is None:
        return None
    named: dict[str, list[bytes]] = {}
    for name, value in members:
        folded = unicodedata.normalize("NFKC", name).casefold()
        if folded in _ENVELOPE:
            named.setdefault(folded, []).append(value if folded == name else b"")
    ids = named.get("id", [])
    if len(ids) != 1 or len(ids[0]) > MAX_ID_BYTES or not (_INTEGER.match(ids[0]) or _PLAIN.match(ids[0])):
        return None
    answers = "result" in named or "error" in named
    if answers == ("method" in named):
        return None
    return Salvaged("response" if answers else "request", ids[0])


def _members(data: bytes) -> list[tuple[str, bytes]] | None:
    """Names and values of the outermost object, a value being empty unless it is a single token."""
    open_: list[bytes] = []
    found: list[tuple[str, bytes]] = []
    outer: list[bytes] = []
    for count, match in enumerate(_TOKEN.finditer(data)):
        token = match[0]
        if count > _MAX_TOKENS or token == b'"' or (count and not open_):
            return None
        if token.isspace():
            continue
        if token in (b"{", b"["):
            if not open_ and token != b"{":
                return None
            open_.append(token)
            if len(open_) == 2:
                outer.append(b"")
        elif token in _CLOSES:
            if not open_ or open_.pop() != _CLOSES[token]:
                return None
        elif len(open_) == 1:
            if token != b",":
                outer.append(token)
            elif not _take(outer, found):
                return None
        elif not open_:
            return None
    if open_ or not (found or outer):
        return None
    return found if _take(outer, found) else None


def _take(outer: list[bytes], found: list[tuple[str, bytes]]) -> bool:
    """One member: a name, a colon, a value."""
    if len(outer) != 3 or outer[1] != b":" or outer[0][:1] != b'"':
        return False
    try:
        found.append((msgspec.json.decode(outer[0], type=str), outer[2]))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    outer.clear()
    return True

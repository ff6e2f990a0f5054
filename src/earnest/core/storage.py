"""What stores remember: where untrusted values were written, so that reading them back is untrusted, in every conversation.

Theory. A call that writes values nobody spoke for marks what it writes to: the objects named by its steering arguments and
those its result names by an id; where neither is known, the whole store (the server). Reading from a store in which
something is marked is
untrusted if the call's arguments or its result name a marked object, or if the result repeats a passage that was stored. The
memory is shared by all conversations of a principal, only grows, is bounded, and full means that every store is marked. A
person's
endorsement of a store takes its marks away.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from earnest.core.ledger import Ledger
from earnest.core.provenance import runs, winnowed
from earnest.core.results import scalar_key, scalar_tokens, unfolded
from earnest.core.roles import ArgumentRoles, Role
from earnest.core.values import leaves

_MOST: Final = 65_536
_MOST_PASSAGES: Final = 262_144


class Mark(msgspec.Struct, frozen=True):
    """One object of a store that holds untrusted values, and the receipt of the write."""

    server: str
    key: str
    receipt: str


class Memory:
    """The marks of one principal. Mutable; persisting them is the caller's."""

    __slots__ = ("_full", "_objects", "_passages", "_servers", "_whole")

    def __init__(self, marks: Iterable[Mark] = ()) -> None:
        self._objects: dict[tuple[str, str], str] = {}
        self._passages: dict[tuple[str, int], str] = {}
        self._whole: dict[str, str] = {}
        self._servers: set[str] = set()
        self._full = False
        for mark in marks:
            self._mark(mark)

    def speaks(self, server: str) -> bool:
        """Whether anything is marked in a store, so that reading from it is worth a look."""
        return self._full or server in self._servers

    def stored(self, server: str, objects: Iterable[str], keys: Iterable[tuple[str, ...]], receipt: str) -> list[Mark]:
        """A write of untrusted values. Returns the marks that are new, for whoever keeps them."""
        known = [key for key in objects if key]
        marks = [Mark(server, key, receipt) for key in known] or [Mark(server, "", receipt)]
        fresh = [mark for mark in marks if self._mark(mark)]
        for text in keys:
            for value in winnowed(text):
                if len(self._passages) < _MOST_PASSAGES:
                    self._passages.setdefault((server, value), receipt)
                else:
                    self._full = True
        return fresh

    def _mark(self, mark: Mark) -> bool:
        self._servers.add(mark.server)
        if not mark.key:
            fresh = mark.server not in self._whole
            self._whole.setdefault(mark.server, mark.receipt)
            return fresh
        if (mark.server, mark.key) in self._objects:
            return False
        if len(self._objects) >= _MOST:
            self._full = True
            return False
        self._objects[mark.server, mark.key] = mark.receipt
        return True

    def marked(self, server: str, objects: Iterable[str], texts: Iterable[tuple[str, ...]]) -> str | None:
        """The receipt of the write that makes this read untrusted, or None. `objects`: values that the call and its result
        name."""
        if self._full:
            return "unknown"
        if server in self._whole:
            return self._whole[server]
        for key in objects:
            found = self._objects.get((server, key))
            if found is not None:
                return found
        if self._passages:
            for text in texts:
                for value in runs(text):
                    found = self._passages.get((server, value))
                    if found is not None:
                        return found
        return None

    def endorse(self, server: str) -> None:
        """A person vouches for what the store holds now."""
        self._whole.pop(server, None)
        self._servers.discard(server)
        self._objects = {key: receipt for key, receipt in self._objects.items() if key[0] != server}
        self._passages = {key: receipt for key, receipt in self._passages.items() if key[0] != server}


def objects(roles: ArgumentRoles, arguments: Any, result: Any) -> set[str]:
    """What a call and its result name, by value."""
    found = {
        scalar_key(value)
        for path, value in leaves(arguments)
        if not isinstance(value, bool) and Role.CONTENT not in roles.of(path) and len(str(value)) <= 200
    }
    for path, value in leaves(unfolded(result)):
        last = path.replace("[]", "").rpartition(".")[2].casefold()
        named = last.rstrip("_").endswith(("id", "name", "path", "key", "uri", "url"))
        if named and not isinstance(value, bool) and len(str(value)) <= 200:
            found.add(scalar_key(value))
    return found - {""}


def texts(result: Any) -> list[tuple[str, ...]]:
    """The texts of a result, as `Memory.marked` compares them."""
    return [tuple(t.key for t in scalar_tokens(value)) for _, value in leaves(unfolded(result)) if isinstance(value, str)]


def unspoken(ledger: Ledger, arguments: Any) -> list[tuple[str, ...]]:
    """Values of a write that neither the user's words nor a trusted source hold."""
    found: list[tuple[str, ...]] = []
    for _, value in leaves(arguments):
        keys = tuple(token.key for token in scalar_tokens(value) if token.key != ".")
        if keys and not ledger.values.user.places(keys) and not ledger.values.trusted.places(keys):
            found.append(keys)
    return found

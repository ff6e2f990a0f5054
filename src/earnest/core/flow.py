"""What a conversation has touched: labels that only grow, on a tree of keys.

Theory. A key is a path: principal, host process, host session, handle; each node may be the narrowest one known for
a call. Labels are bits, written at that node. What a decision at a node sees is the union of

    the labels of the node itself,
    those of all nodes above it,
    those of all nodes below it,

and none of its siblings'. So a client that drops its handle is judged by all its handles, and one that makes up a new
handle gains nothing: a node that neither earnest minted nor a hook announced starts with everything its parent saw at
that moment. Labels are a join-semilattice: `raise_` only adds, and the order of two raises does not matter. Only `end`
takes away, and only a person, or an idle time that the operator named, calls it.

Folding one event costs constant time: the depth of a key is bounded (`MAX_DEPTH`) and each node keeps the union of
what is below it. The causes of a label (which receipts, which sources) are kept for explanation, the first
`MAX_CAUSES` of each label at each node, and a count of the rest; they never influence a decision.

This file knows no clock, no store and no server. Whoever persists it writes what `raise_` reports as new before the
call goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

PRIVATE: Final = 1
"""Private data was read."""
UNTRUSTED: Final = 2
"""Untrusted content was seen."""
LABEL_NAMES: Final = {PRIVATE: "private", UNTRUSTED: "untrusted"}

MAX_DEPTH: Final = 4
MAX_CAUSES: Final = 8

Key = tuple[str, ...]
"""A path from principal to the narrowest known node, e.g. `("user:1000", "process:4711.88123")`."""


class Cause(msgspec.Struct, frozen=True):
    """One reason why a label is set: the receipt of the call, what it read, and on what basis that counts."""

    receipt: str
    server: str
    subject: str
    basis: str = ""
    source: str = ""


class Causes(msgspec.Struct, frozen=True):
    """The first causes of a label at a node, and how many came after them."""

    first: tuple[Cause, ...] = ()
    more: int = 0

    def add(self, cause: Cause) -> Causes:
        """These and one more; bounded."""
        if len(self.first) < MAX_CAUSES:
            return Causes((*self.first, cause), self.more)
        return Causes(self.first, self.more + 1)


def names(bits: int) -> tuple[str, ...]:
    """The words for a set of labels, in a stable order."""
    return tuple(name for bit, name in LABEL_NAMES.items() if bits & bit)


class _Node:
    __slots__ = ("below", "causes", "children", "minted", "own", "parent")

    def __init__(self, parent: _Node | None, minted: bool) -> None:
        self.own = 0
        self.below = 0
        self.causes: dict[int, Causes] = {}
        self.children: dict[str, _Node] = {}
        self.parent = parent
        self.minted = minted

    def seen(self) -> int:
        bits = self.own | self.below
        node = self.parent
        while node is not None:
            bits |= node.own
            node = node.parent
        return bits


class FlowState:
    """The labels of all conversations of one daemon. Mutable; one thread."""

    def __init__(self) -> None:
        self._root = _Node(None, minted=True)
        self._index: dict[Key, _Node] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._index

    def keys(self) -> Iterator[Key]:
        """All known keys, parents before their children."""
        return iter(sorted(self._index, key=len))

    def open(self, key: Key, *, minted: bool) -> int:
        """Make `key` known and return the labels it starts with that are its own.

        `minted`: earnest minted the key itself, saw it in the kernel, or a hook announced it with a user's prompt. Any
        other starts with all that its parent sees at this moment. Opening a known key changes nothing. Unknown parents
        are opened on the way, as minted: they are derived from what the kernel or a token says.
        """
        if not 0 < len(key) <= MAX_DEPTH:
            raise ValueError(f"a key has 1 to {MAX_DEPTH} parts, not {len(key)}")
        node = self._index.get(key)
        if node is not None:
            return node.own
        parent = self._root
        for depth in range(1, len(key)):
            prefix = key[:depth]
            found = self._index.get(prefix)
            if found is None:
                found = _Node(parent, minted=True)
                parent.children[prefix[-1]] = found
                self._index[prefix] = found
            parent = found
        node = _Node(parent, minted)
        parent.children[key[-1]] = node
        self._index[key] = node
        if not minted and parent is not self._root:
            inherited = parent.seen()
            if inherited:
                told = self.causes(key[:-1])
                node.own = inherited
                node.causes = {bit: told.get(bit, Causes()) for bit in LABEL_NAMES if inherited & bit}
        return node.own

    def effective(self, key: Key) -> int:
        """The labels a decision at `key` uses. An unknown key is judged as one that was just made up."""
        node = self._index.get(key)
        if node is None:
            self.open(key, minted=False)
            node = self._index[key]
        return node.seen()

    def count(self, key: Key, bits: int, times: int = 1) -> bool:
        """Count so many more causes of labels that `key` carries itself and whose causes are not named any more. False where
        that cannot be said of all of them: nothing was counted, and `raise_` has to be called."""
        node = self._index.get(key)
        if node is None or bits & ~node.own:
            return False
        causes = node.causes
        for bit in LABEL_NAMES:
            if bits & bit and (bit not in causes or len(causes[bit].first) < MAX_CAUSES):
                return False
        for bit in LABEL_NAMES:
            if bits & bit:
                known = causes[bit]
                causes[bit] = Causes(known.first, known.more + times)
        return True

    def grounds(self, key: Key) -> list[tuple[str, object, object, object]] | None:
        """What it stands on that a decision at `key` finds the labels it finds: that the key is kept where it is, its own
        labels, then those below and above it. None for a key that is not known."""
        node = self._index.get(key)
        if node is None:
            return None
        found: list[tuple[str, object, object, object]] = [
            ("item", self._index, key, node),
            ("equals", node, "own", node.own),
            ("equals", node, "below", node.below),
        ]
        above = node.parent
        while above is not None:
            found.append(("equals", above, "own", above.own))
            above = above.parent
        return found

    def raise_(self, key: Key, bits: int, cause: Cause) -> int:
        """Add labels at `key`; returns those that are new at this node (what has to be persisted)."""
        node = self._index.get(key)
        if node is None:
            self.open(key, minted=False)
            node = self._index[key]
        for bit in LABEL_NAMES:
            if bits & bit:
                known = node.causes.get(bit)
                if known is None or len(known.first) < MAX_CAUSES:
                    node.causes[bit] = (known or Causes()).add(cause)
                else:
                    node.causes[bit] = Causes(known.first, known.more + 1)
        new = bits & ~node.own
        if new:
            node.own |= new
            above = node.parent
            while above is not None:
                above.below |= new
                above = above.parent
        return new

    def own(self, key: Key) -> int:
        """The labels written at exactly this node."""
        node = self._index.get(key)
        return node.own if node is not None else 0

    def causes(self, key: Key) -> dict[int, Causes]:
        """For each label in force at `key`, what set it: first at the node, then above it, then below it."""
        node = self._index.get(key)
        if node is None:
            return {}
        found: dict[int, Causes] = {}

        def take(other: _Node) -> None:
            for bit, causes in other.causes.items():
                have = found.get(bit)
                if have is None:
                    found[bit] = causes
                else:
                    known = {c.receipt for c in have.first}
                    fresh = [c for c in causes.first if c.receipt not in known]
                    room = MAX_CAUSES - len(have.first)
                    found[bit] = Causes((*have.first, *fresh[:room]), have.more + causes.more + max(0, len(fresh) - room))

        take(node)
        above = node.parent
        while above is not None:
            take(above)
            above = above.parent
        stack = list(node.children.values())
        while stack:
            child = stack.pop()
            take(child)
            stack.extend(child.children.values())
        return found

    def own_causes(self, key: Key) -> dict[int, Causes]:
        """What set the labels written at exactly this node."""
        node = self._index.get(key)
        return dict(node.causes) if node is not None else {}

    def restore(self, key: Key, bits: int, causes: dict[int, Causes], *, minted: bool) -> None:
        """Put back what was persisted. Unions with what is there, so that restoring never cleans."""
        if key not in self._index:
            self.open(key, minted=True)
            self._index[key].minted = minted
        node = self._index[key]
        for bit, found in causes.items():
            node.causes.setdefault(bit, found)
        node.own |= bits
        above = node.parent
        while above is not None:
            above.below |= bits | node.below
            above = above.parent

    def end(self, key: Key) -> tuple[Key, ...]:
        """A conversation is over, by a person's word or a named idle time: forget its node and all below it.

        Returns the keys that are gone. What is above keeps its own labels and forgets those that came only from here.
        """
        node = self._index.get(key)
        if node is None or node.parent is None:
            return ()
        gone = tuple(k for k in self._index if k[: len(key)] == key)
        for k in gone:
            del self._index[k]
        del node.parent.children[key[-1]]
        above: _Node | None = node.parent
        while above is not None:
            below = 0
            for child in above.children.values():
                below |= child.own | child.below
            above.below = below
            above = above.parent
        return gone

"""Conversations: which key a call belongs to, and labels that outlive the daemon.

The key of a call is built only of what earnest knows itself: the principal (user id of the socket's peer, or the person a
token stands for), the host process as the kernel tells it, a session a hook announced, a handle from the request. Client ids
and MCP session ids are the client's words and split nothing. What the operator sets for a client (`conversation = "principal"`)
only makes the key wider.

A process below another host's (`is_below`) does that host's bidding: what it sees, its host has seen, and so has whatever else
that host started. So its labels are written at its host's key as well, where all of them look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

import msgspec

from earnest.core.flow import LABEL_NAMES, PRIVATE, UNTRUSTED, Cause, Causes, FlowState, Key, names


class SavedLabels(msgspec.Struct, frozen=True):
    """The labels of one node as they are kept."""

    key: Key
    bits: int
    causes: dict[int, Causes]
    minted: bool
    touched_at: float


class LabelStore(Protocol):
    """Where labels outlive the daemon."""

    def load_labels(self) -> Iterable[SavedLabels]:
        """All nodes with labels."""

    def save_labels(self, saved: SavedLabels) -> None:
        """Write one node; durable against a crash of the daemon when it returns."""

    def delete_labels(self, keys: Iterable[Key]) -> None:
        """Forget nodes whose conversation has ended."""


def process_part(pid: int, started: str) -> str:
    """The part of a key for a host process: its id alone could be used again, with its start time it cannot."""
    return f"process:{pid}.{started}"


def session_part(id: str) -> str:
    """The part of a key for a session that a host's hook announced."""
    return f"session:{id}"


MAX_HANDLES: Final = 4096
"""Handles of one principal that are conversations of their own. Each is kept for as long as its labels are."""


def handle_part(handle: str) -> str:
    """The part of a key for a handle that a request named."""
    return f"{_HANDLE}{handle}"


_HANDLE: Final = "handle:"


def _unheard(_: tuple[Key, ...]) -> None:
    """The default of `Conversations.on_end`."""


def is_below(key: Key) -> bool:
    """Whether a key is that of a process that another host started, or below that."""
    return len(key) > 2 and key[2].startswith("process:")


class Conversations:
    """The labels of all conversations, persisted as they rise."""

    def __init__(self, store: LabelStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._state = FlowState()
        self._touched: dict[Key, float] = {}
        self._idle: dict[Key, float] = {}
        self._unsaved: set[Key] = set()
        self.on_end: Callable[[tuple[Key, ...]], None] = _unheard
        """Told which keys are gone when a conversation ends."""
        self.loss: Cause | None = None
        """That labels were lost: until a person has understood it, every conversation has all of them."""
        self._joined: dict[Key, set[Key]] = {}
        """Where labels of a key, and of all below it, are written as well."""
        self._handles: dict[str, int] = {}
        """How many handles each principal has."""
        for saved in store.load_labels():
            self._count(saved.key, 1)
            self._state.restore(saved.key, saved.bits, saved.causes, minted=saved.minted)
            self._touched[saved.key] = saved.touched_at

    def open(self, key: Key, *, minted: bool, idle_s: float = 0.0) -> None:
        """Make a key known; what an unminted one inherits is kept at once. `idle_s` > 0: the operator named an idle expiry.
        What is below another host's process is never minted."""
        minted = minted and not is_below(key)
        self._touched[key] = self._clock()
        if idle_s > 0:
            self._idle[key] = idle_s
        if key in self._state:
            return
        self._count(key, 1)
        if self._state.open(key, minted=minted):
            self._unsaved.add(key)
            self._save(key, minted)
            self._unsaved.discard(key)

    def narrowed(self, key: Key, handle: str) -> Key:
        """The key of a handle below a known one: a conversation of its own, which starts with all that its parent sees. Once a
        principal has `MAX_HANDLES` of them, further ones are none: what comes under those is judged by the labels of the key
        itself, with all above and all below it, and what it sees, all below see. Raises E14xx as `open` does."""
        narrow = (*key, handle_part(handle))
        if narrow in self._state:
            return narrow
        if self._handles.get(key[0], 0) >= MAX_HANDLES:
            return key
        self.open(narrow, minted=False)
        return narrow

    def _count(self, key: Key, by: int) -> None:
        if key[-1].startswith(_HANDLE):
            self._handles[key[0]] = self._handles.get(key[0], 0) + by

    def join(self, one: Key, other: Key) -> None:
        """Two known keys are one conversation from now on: what either has seen, and will see, both have."""
        for source, target in ((one, other), (other, one)):
            self._joined.setdefault(source, set()).add(target)
            self._carry(source, target)

    def _carry(self, source: Key, target: Key) -> None:
        missing = self._state.effective(source) & ~self._state.own(target)
        known = self._state.causes(source)
        for bit in LABEL_NAMES:
            for cause in known.get(bit, Causes()).first or (Cause("", "", ""),) if missing & bit else ():
                self.raise_(target, bit, cause)

    def below(self, own: Key) -> Key | None:
        """The key that a process has below a host's, if it is known under one; `own` is the one it would have by itself."""
        inner = (key for key in self._state.keys() if len(key) == 3 and is_below(key))  # noqa: SIM118
        return next((key for key in inner if (key[0], key[2]) == own), None)

    def _everywhere(self, key: Key) -> set[Key]:
        """All keys at which a label of this one is written."""
        found: set[Key] = set()
        todo = [key]
        while todo:
            one = todo.pop()
            if one in found:
                continue
            found.add(one)
            if is_below(one):
                todo.append(one[:2])
            for length in range(len(one), 0, -1) if self._joined else ():
                todo.extend(k for k in self._joined.get(one[:length], ()) if k in self._state)
        return found

    def keep(self, key: Key) -> None:
        """Remember a key that has no labels: one that is not known after a restart has an unknown past. Raises E14xx."""
        self._save(key, True)

    def touch(self, key: Key) -> None:
        """A call was made at this key: it is not idle."""
        self._touched[key] = self._clock()

    def labels(self, key: Key) -> int:
        """The labels a decision at this key uses. A key that is not known starts with what its parent sees, and that is kept:
        raises E14xx as `open` does."""
        if key not in self._state:
            self.open(key, minted=False)
        return self._seen(key)

    def _seen(self, key: Key) -> int:
        return self._state.effective(key) | (PRIVATE | UNTRUSTED if self.loss is not None else 0)

    def keys(self) -> list[Key]:
        """All keys that are known, parents before their children."""
        return list(self._state.keys())

    def own(self, key: Key) -> int:
        """The labels written at exactly this key."""
        return self._state.own(key)

    def count(self, key: Key, bits: int, times: int = 1) -> bool:
        """Count so many more causes of labels that are kept already, where causes are only counted by now; else False, and
        `raise_` has to be called."""
        if key in self._unsaved:
            return False
        if (self._joined or is_below(key)) and any(
            bits & ~self._state.own(one) or one in self._unsaved for one in self._everywhere(key)
        ):
            return False
        if not self._state.count(key, bits, times):
            return False
        self._touched[key] = self._clock()
        return True

    def grounds(self, key: Key, bits: int) -> list[tuple[str, object, object, object]] | None:
        """What it stands on (`net.tracks`) that a call at this key finds the labels it finds and, setting `bits`, adds nothing
        to them that would have to be kept. None where that is not so now."""
        known = self._state.grounds(key)
        if known is None or self._joined or self.loss is not None or (bits and not self.count(key, bits, 0)):
            return None
        known += [("equals", self, "_joined", {}), ("is", self, "loss", None)]
        for one in self._everywhere(key):
            known += self._state.grounds(one) or ()
            known.append(("lacks", self._unsaved, one, None))
        return known

    def own_grounds(self, key: Key) -> list[tuple[str, object, object, object]]:
        """What it stands on that this key has the labels that it has by itself."""
        return (self._state.grounds(key) or [])[:2]

    def raise_(self, key: Key, bits: int, cause: Cause) -> int:
        """Add labels. New ones are in the store before this returns; raises E14xx if they cannot be, and then the call must
        not go on."""
        if key not in self._state:
            self.open(key, minted=False)
        for other in self._everywhere(key) - {key} if self._joined or is_below(key) else ():
            self._raise(other, bits, cause)
        return self._raise(key, bits, cause)

    def _raise(self, key: Key, bits: int, cause: Cause) -> int:
        new = self._state.raise_(key, bits, cause)
        self._touched[key] = self._clock()
        if new or key in self._unsaved:
            # A label that could not be kept stays owed: the next call of this conversation must keep it or not run.
            self._unsaved.add(key)
            self._save(key, True)
            self._unsaved.discard(key)
        return new

    def causes(self, key: Key) -> dict[int, Causes]:
        """What set the labels in force at a key."""
        found = self._state.causes(key)
        if self.loss is not None:
            for bit in LABEL_NAMES:
                known = found.get(bit, Causes())
                found[bit] = Causes((self.loss, *known.first), known.more)
        return found

    def end(self, key: Key, connected: Collection[Key] = ()) -> tuple[Key, ...]:
        """A person said the conversation is over. Returns the keys that are gone; the caller writes the receipt. `connected`:
        keys of clients that are there still: they start anew, clean, with the idle expiry they had."""
        gone = self._state.end(key)
        self._store.delete_labels(gone)
        self.on_end(gone)
        for k in gone:
            self._count(k, -1)
            self._touched.pop(k, None)
            self._unsaved.discard(k)
            self._joined.pop(k, None)
            idle = self._idle.pop(k, 0.0)
            if k in connected:
                self.open(k, minted=True, idle_s=idle)
        return gone

    def expire(self, connected: Collection[Key] = (), busy: Collection[Key] = ()) -> tuple[Key, ...]:
        """End what was idle longer than the operator allowed; returns the keys that had labels and are gone. `connected` as in
        `end`; `busy`: keys with calls in flight, which are not idle however long those take."""
        now = self._clock()
        gone: list[Key] = []
        for key, idle in list(self._idle.items()):
            newest = max((t for k, t in self._touched.items() if k[: len(key)] == key), default=0.0)
            if now - newest < idle or any(k[: len(key)] == key for k in busy):
                continue
            labelled = bool(self._state.own(key)) or any(
                self._state.own(k) for k in self._state.keys() if k[: len(key)] == key  # noqa: SIM118
            )
            ended = self.end(key, connected)
            if labelled:
                gone.extend(ended)
        return tuple(gone)

    def list(self) -> list[dict[str, object]]:
        """All known conversations for a person: key, labels, when last touched."""
        return [
            {
                "key": list(key),
                "labels": list(names(self._seen(key))),
                "own": list(names(self._state.own(key))),
                "touched": self._touched.get(key, 0.0),
            }
            for key in self._state.keys()  # noqa: SIM118 (a FlowState is no dict: keys come parents first)
        ]

    def __contains__(self, key: Key) -> bool:
        return key in self._state

    def _save(self, key: Key, minted: bool) -> None:
        self._store.save_labels(
            SavedLabels(key, self._state.own(key), self._state.own_causes(key), minted, self._touched.get(key, self._clock()))
        )

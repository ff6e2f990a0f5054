"""What stands outside the store and tells that the store is not the one it was.

Theory. Whoever removes the store, empties it, takes its write-ahead log away or puts an old copy in its place would otherwise
get clean conversations, first contact with every server, and approvals and trust that a person has taken back. So a file beside
it, `epoch`, holds the store's epoch and how many changes of what may not be forgotten (labels, approvals, pins, trust, words of
the operator) the store has kept, and the last signed head of the receipts. The store counts those changes itself, by triggers
within the same transaction; the file is written after the commit, in place, by one write. So the file may lag behind the store
by what a kill or a power cut took from it, and it never leads: where it does, the store has lost something.

    the file                 the store               means
    same epoch, not ahead    -                       all is well
    same epoch, ahead        older                   lost: its log was removed, or an old copy put in its place
    another epoch            -                       lost: it was made anew
    none, unreadable         says that there is one  lost: with the file goes the proof
    none                     made just now           lost if there are receipts; else all of this is new
    none                     made before this file   all is well: the file is made

A loss is written into the store that is there, before the file follows it, and stands until a person says that it is
understood; who asks finds it by `loss_of`.
"""

from __future__ import annotations

import os
import re
from typing import Final

import msgspec

from earnest.core.receipt import Checkpoint
from earnest.store.base import Store

LOST: Final = "lost"
"""The store's note of a loss: JSON of `Loss`, empty for none."""
ANCHORED: Final = "anchored"
"""The store's note that there is a file."""
_LINE: Final = re.compile(rb"earnest 1 ([0-9a-f]{32}) (\d{20}) (\d{20}) ([0-9a-f]{64}|-{64})\n")


class Loss(msgspec.Struct, frozen=True):
    """That the store lost something. `at`: when it was found, seconds since the epoch; what the store kept before is not
    believed. `receipt`: of the event that tells it."""

    at: float
    text: str
    receipt: str = ""


class Anchor:
    """The file. `head`: seq and hash of the last signed head of the receipts, (0, "") for none."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.epoch = ""
        self.count = 0
        self.head: tuple[int, str] = (0, "")
        self.there = os.path.lexists(path)
        self._read()

    def _read(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
        with os.fdopen(fd, "rb") as file:
            found = _LINE.fullmatch(file.read(4096))
        if found:
            self.epoch, self.count = found[1].decode(), int(found[2])
            self.head = (int(found[3]), found[4].decode().strip("-"))

    def compare(self, epoch: str, count: int, *, made: bool, anchored: bool, receipts: bool) -> str:
        """What a store has lost, in words for a person; empty where it has lost nothing."""
        if self.epoch and self.epoch != epoch:
            return "the store of this instance is gone; the one that is there was made anew"
        if self.epoch and self.count > count:
            return f"the last {self.count - count} changes that the store had kept are gone from it"
        if self.epoch:
            return ""
        if anchored or self.there:
            return f"{self.path}, which proves that the store is whole, is gone or damaged"
        return "the store of this instance is gone; there are receipts of an earlier one" if made and receipts else ""

    def follow(self, epoch: str, count: int) -> None:
        """Hold for a store from now on; on disk when this returns. Raises `OSError`."""
        self.epoch, self.count, self.there = epoch, count, True
        fresh = f"{self.path}.new"
        fd = os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(self._line())
            file.flush()
            os.fsync(fd)
        os.replace(fresh, self.path)

    def kept(self, count: int) -> None:
        """The store has kept so many changes. Where that cannot be written the file lags, which is allowed."""
        self.count = count
        self._write()

    def signed(self, seq: int, head: str) -> None:
        """The receipts were signed up to here."""
        self.head = (seq, head)
        self._write()

    def checkpoint(self, writer: str = "gateway") -> Checkpoint | None:
        """The head of the receipts as a checkpoint; None where none is known."""
        seq, head = self.head
        return Checkpoint(writer, seq, head, 0.0) if seq and head else None

    def _line(self) -> bytes:
        seq, head = self.head
        return f"earnest 1 {self.epoch} {self.count:020d} {seq:020d} {head or '-' * 64}\n".encode()

    def _write(self) -> None:
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # nobody's to make again: its absence is found at the next start
        try:
            os.pwrite(fd, self._line(), 0)
        except OSError:
            pass
        finally:
            os.close(fd)


def loss_of(store: Store) -> Loss | None:
    """The loss that no person has understood yet."""
    text = store.meta(LOST)
    return msgspec.json.decode(text, type=Loss) if text else None


def note_loss(store: Store, loss: Loss | None) -> None:
    """Keep a loss, or that it is understood."""
    store.set_meta(LOST, msgspec.json.encode(loss).decode() if loss is not None else "")

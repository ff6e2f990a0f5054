"""What must survive a killed daemon, in memory that the shim owns and the daemon maps.

Layout, all numbers 4 bytes in native order, each written by one store (a kill falls before or after it):

    0        cells: magic, half-written, count of delivered lines (the shim reads it), stage, read position,
             epoch, length of the opening, high-water mark of the input, (unused), whether all of the answers
             that are leaving stands in the passage (`passage.py`)
    4096     1024 slots of 128 bytes for ids in flight: length (0: free; + 256: its answer is leaving), the id's
             raw JSON token
    256 KiB  the client's `initialize` line
    1 MiB    input: bytes are read *into* this page, so there is no moment in which one is read and forgotten

JSON lines hold no NUL, so the first NUL after the read position is the end of the input. Rules, each against
a storm of kills: the id goes in, then the line is taken from the input, then the call goes out; an id comes
out only when its answer has left, and at once then; half-written is set before a write that may tear, and cleared after it.
"""

import fcntl
import mmap
import os
import sys
from collections.abc import Iterator
from enum import IntEnum

from earnest.core.errors import EarnestError
from earnest.net.tracks import MappedJournal
from earnest.shim.handover import JOURNAL_BYTES, PROGRESS_AT

ID_SLOTS = 1024
ID_BYTES = 124
OPENING_BYTES = 256 << 10
LINE_BYTES = 4 << 20
"""Longest line taken from a client, in bytes."""

_MAGIC = 0x324E4A45
_MAGIC_CELL, _HALF, _PROGRESS, _STAGE, _READ, _EPOCH, _OPENING, _HIGH, _, _WHOLE = range(10)
_IDS_AT, _SLOT = 4096, 128
_LEAVING = 256
_OPENING_AT = 256 << 10
_INPUT_AT = 1 << 20
_INPUT_BYTES = JOURNAL_BYTES - _INPUT_AT
_CHUNK = 64 << 10
_ZEROS = bytes(_CHUNK)

assert _PROGRESS * 4 == PROGRESS_AT


class Stage(IntEnum):
    """How far the opening of a legacy session got; modern clients stay at NONE."""

    NONE = 0
    OPENING = 1
    """`initialize` is in flight."""
    OPENED = 2
    """Its answer has left."""
    READY = 3
    """The client's `notifications/initialized` was passed on."""


class Journal(MappedJournal):
    """One client's journal. `epoch` counts the daemons that held it, from 1."""

    def __init__(self, fd: int) -> None:
        """Takes over the descriptor; raises `EarnestError` E1507 if it cannot be a journal."""
        try:
            if hasattr(fcntl, "F_ADD_SEALS"):
                # Without the seal the other side could cut the file, and the daemon would die of SIGBUS.
                try:
                    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
                except OSError as e:
                    raise EarnestError("E1507", f"the journal cannot be sealed: {e.strerror}.") from None
            if os.fstat(fd).st_size != JOURNAL_BYTES:
                raise EarnestError("E1507", "the journal has another size than this version's.")
            self._map = mmap.mmap(fd, JOURNAL_BYTES)
        finally:
            os.close(fd)
        self._view = memoryview(self._map)
        self._cells = self._view[:64].cast("I")
        if self._cells[_MAGIC_CELL] not in (0, _MAGIC):
            raise EarnestError("E1507", "this is no journal.")
        self._cells[_MAGIC_CELL] = _MAGIC
        self._cells[_EPOCH] += 1
        self.epoch: int = self._cells[_EPOCH]
        self._slots: dict[bytes, int] = {}
        self._free: list[int] = []
        for slot in range(ID_SLOTS - 1, -1, -1):
            at = _IDS_AT + slot * _SLOT
            length = int.from_bytes(self._view[at : at + 4], sys.byteorder) & ~_LEAVING
            if 0 < length <= ID_BYTES:
                self._slots[bytes(self._view[at + 4 : at + 4 + length])] = slot
            else:
                self._free.append(slot)
        self._read = min(self._cells[_READ], _INPUT_BYTES)
        self._scan = self._read
        end = self._map.find(b"\0", _INPUT_AT + self._read)
        self._write = (JOURNAL_BYTES if end < 0 else end) - _INPUT_AT
        # what an interrupted move left behind
        self._zero(self._write, min(self._cells[_HIGH], _INPUT_BYTES))
        self._pin(
            self._map,
            cells=(_READ, _WHOLE, _PROGRESS, _HIGH),
            slots=(_IDS_AT, _SLOT, ID_BYTES),
            input=(_INPUT_AT, _INPUT_BYTES, LINE_BYTES, _CHUNK),
            leaving=_LEAVING,
        )

    def close(self) -> None:
        """Unmaps; the shim's copy stays."""
        self._unpin()
        self._cells.release()
        self._view.release()
        try:
            self._map.close()
        except BufferError:
            pass  # a read into it is under way up the stack; it is unmapped with its last view

    # ids in flight

    @property
    def in_flight(self) -> tuple[bytes, ...]:
        """The ids whose answers have not left, oldest first as far as this daemon knows."""
        return tuple(self._slots)

    def __contains__(self, id: bytes) -> bool:
        return id in self._slots

    def __iter__(self) -> Iterator[bytes]:
        return iter(tuple(self._slots))

    def begin(self, id: bytes) -> None:
        """Notes an id before its call goes out; raises `EarnestError` E1701 (too many) or E1702 (too
        long)."""
        if id in self._slots:
            return
        if len(id) > ID_BYTES:
            raise EarnestError("E1702", f"a request id of {len(id)} bytes; the limit is {ID_BYTES}.")
        if not self._free:
            raise EarnestError("E1701", f"{ID_SLOTS} calls of one client are in flight; that is the limit.")
        slot = self._free.pop()
        at = _IDS_AT + slot * _SLOT
        self._view[at + 4 : at + 4 + len(id)] = id
        self._mark(slot, len(id))
        self._slots[id] = slot

    def finish(self, id: bytes) -> None:
        """Forgets an id: its answer has left."""
        slot = self._slots.pop(id, -1)
        if slot >= 0:
            self._mark(slot, 0)
            self._free.append(slot)

    # the answers that are leaving

    def stage_answer(self, id: bytes) -> None:
        """Notes whose answer goes into the passage next."""
        self._cells[_WHOLE] = 0
        self._mark(self._slots[id], len(id) | _LEAVING)

    def answer_staged(self) -> None:
        """Notes that all of it stands there."""
        self._cells[_WHOLE] = 1

    def forget_staged(self) -> None:
        """Notes that all of them have left; their ids are out."""
        self._cells[_WHOLE] = 0

    def drop_staged(self) -> None:
        """Notes that none is leaving."""
        self._cells[_WHOLE] = 0
        for id in self._leaving():
            self._mark(self._slots[id], len(id))

    @property
    def staged(self) -> tuple[tuple[bytes, ...], bool]:
        """The ids whose answers are leaving and have not all left, and whether all of them stood there."""
        return self._leaving(), self._cells[_WHOLE] != 0

    def _leaving(self) -> tuple[bytes, ...]:
        ats = {id: _IDS_AT + slot * _SLOT for id, slot in self._slots.items()}
        return tuple(id for id, at in ats.items() if int.from_bytes(self._view[at : at + 4], sys.byteorder) & _LEAVING)

    def _mark(self, slot: int, value: int) -> None:
        at = _IDS_AT + slot * _SLOT
        self._view[at : at + 4] = value.to_bytes(4, sys.byteorder)

    def delivered(self) -> None:
        """Counts one line that left, for the shim's patience."""
        self._cells[_PROGRESS] = (self._cells[_PROGRESS] + 1) & 0xFFFFFFFF

    # opening

    @property
    def stage(self) -> Stage:
        """How far the opening got."""
        return Stage(min(self._cells[_STAGE], 3))

    @stage.setter
    def stage(self, stage: Stage) -> None:
        self._cells[_STAGE] = stage

    @property
    def opening(self) -> bytes:
        """The client's `initialize` line; empty if there was none."""
        return bytes(self._view[_OPENING_AT : _OPENING_AT + min(self._cells[_OPENING], OPENING_BYTES)])

    @opening.setter
    def opening(self, line: bytes) -> None:
        if len(line) > OPENING_BYTES:
            raise EarnestError("E1702", f"an `initialize` of {len(line)} bytes; the limit is {OPENING_BYTES}.")
        self._cells[_OPENING] = 0
        self._view[_OPENING_AT : _OPENING_AT + len(line)] = line
        self._cells[_OPENING] = len(line)

    # output

    @property
    def half(self) -> bool:
        """Whether the last write may have left half a line."""
        return self._cells[_HALF] != 0

    @half.setter
    def half(self, half: bool) -> None:
        self._cells[_HALF] = half

    # input

    def space(self) -> memoryview:
        """Where the next read goes; empty if a line is longer than `LINE_BYTES`."""
        if self._write - self._read > LINE_BYTES and self._scan == self._write:
            return self._view[:0]
        if self._write + _CHUNK > _INPUT_BYTES:
            self._move()
        if self._cells[_HIGH] < self._write + _CHUNK:
            self._cells[_HIGH] = self._write + _CHUNK
        at = _INPUT_AT + self._write
        return self._view[at : min(at + _CHUNK, JOURNAL_BYTES)]

    def landed(self, count: int) -> bool:
        """That many bytes were read into the space; False if a NUL is among them, which no JSON has."""
        start = self._write
        self._write += count
        return self._map.find(b"\0", _INPUT_AT + start, _INPUT_AT + self._write) < 0

    def line(self) -> bytes | None:
        """The next whole line, without its end; it stays until `consume`."""
        end = self._map.find(b"\n", _INPUT_AT + self._scan, _INPUT_AT + self._write)
        if end < 0:
            self._scan = self._write
            return None
        self._scan = end - _INPUT_AT
        return self._map[_INPUT_AT + self._read : end]

    def consume(self) -> None:
        """Takes the line that `line` returned out of the input."""
        self._advance(self._scan + 1)

    def rest(self) -> bytes:
        """What stands in the input without an end of line."""
        return self._map[_INPUT_AT + self._read : _INPUT_AT + self._write]

    def discard(self) -> None:
        """Empties the input."""
        self._advance(self._write)

    def _advance(self, to: int) -> None:
        self._read = self._scan = self._cells[_READ] = to
        if to == self._write:
            self._zero(0, to)
            self._read = self._scan = self._write = self._cells[_READ] = 0

    def _move(self) -> None:
        """Moves the rest to the front. At each moment the read position leads to the whole rest and a NUL."""
        length = self._write - self._read
        if length >= self._read:
            return
        self._zero(0, self._read)
        start = _INPUT_AT + self._read
        self._view[_INPUT_AT : _INPUT_AT + length] = self._view[start : start + length]
        self._cells[_READ] = 0
        self._zero(self._read, self._write)
        self._scan -= self._read
        self._read, self._write = 0, length

    def _zero(self, start: int, end: int) -> None:
        while start < end:
            count = min(_CHUNK, end - start)
            self._view[_INPUT_AT + start : _INPUT_AT + start + count] = _ZEROS[:count]
            start += count

"""The log of receipts: one chain of one writer, on disk.

Theory. `append` makes the line and its hash in memory; `flush`, called once for each tick of the loop
before calls go out, hands all of them to the operating system in one write. From then on they survive the
end of the process; in strict mode `flush` waits for the disk too. When the write fails, `flush` raises, and
whoever called it lets no call of that tick go out. What was not written stays in memory and goes first the
next time, so nothing that has an id is lost; beyond `HELD_BYTES` of that, `append` refuses.

A writer that was killed in mid-write leaves half a line. The next start sets it aside in a file of its own,
cuts it off and says so in a `repair` record: never silently. If the log ends before the last head that the
store knows, records were taken away; the chain goes on from that head, so that the gap stays visible for
ever.

Errors: E1410 the disk is full, E1411 the log cannot be written, E1412 another process writes this log.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.receipt import Chain, Checkpoint, Record, Repair, encode
from earnest.store import segments

SEGMENT_BYTES: Final = 64 << 20
CHECKPOINT_RECORDS: Final = 1000
CHECKPOINT_PAUSE_S: Final = 0.25
"""Seconds between two checkpoints, unless ten times as many records came."""
HELD_BYTES: Final = 8 << 20

_WRITER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_sync: Final = getattr(os, "fdatasync", os.fsync)


class Signs(Protocol):
    """What signs a checkpoint (`signing.Signer`)."""

    def sign(self, payload: bytes) -> str:
        """JWS compact."""
        ...


class ReceiptLog:
    """Appends to one chain. `seq` and `head` are those of the last record appended; `problem` is why the last
    checkpoint could not be made, or None."""

    def __init__(
        self,
        folder: str,
        writer: str,
        signer: Signs | None,
        clock: Callable[[], float],
        *,
        known: Checkpoint | None = None,
        on_checkpoint: Callable[[Checkpoint, str], None] | None = None,
        strict: bool = False,
        segment_bytes: int = SEGMENT_BYTES,
        checkpoint_records: int = CHECKPOINT_RECORDS,
        chain: Chain | None = None,
    ) -> None:
        """Open the chain of `writer` in `folder` and mend its end if need be. `known` is the last head that
        was noted elsewhere; `on_checkpoint` notes the next ones (checkpoint and signature); `chain`: an
        empty one of this writer. Raises E1410 to E1412."""
        if not _WRITER.fullmatch(writer):
            raise ValueError("a writer is 1 to 64 ASCII letters, digits and hyphens")
        self.folder, self.writer, self.strict = folder, writer, strict
        self._signer, self._clock, self._on_checkpoint = signer, clock, on_checkpoint
        self._segment_bytes, self._every = segment_bytes, checkpoint_records
        self.chain = chain or Chain(writer)
        """The chain's end in memory."""
        self._lend = getattr(self.chain, "lend", None)
        self.failing = False
        """The last write failed; what is in the chain and was not written comes first in the next."""
        self.problem: EarnestError | None = None
        self._fd = self._lock = -1
        self._number, self._size = 0, 0
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._lock = os.open(
                os.path.join(folder, f"{writer}.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600
            )
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            repairs = self._recover(known)
        except BlockingIOError:
            self._release()
            raise EarnestError(
                "E1412", f"another process writes the receipts of {writer} in {folder}"
            ) from None
        except OSError as error:
            self._release()
            raise self._explain(error) from None
        self._signed, self._signed_at = known.seq if known else 0, 0.0
        if self._lend is not None:
            self._lend(-1, self._size, 0, 0)
        for repair in repairs:
            self.append(repair)
        self.flush()

    @property
    def seq(self) -> int:
        """The number of the last record appended."""
        return self.chain.seq

    @property
    def head(self) -> str:
        """The hash of the last record appended."""
        return self.chain.head.decode()

    def append(self, record: Record) -> str:
        """Add a record to the chain, in memory, and return its id. Raises E1410 or E1411 where the log has
        not been writable for long and nothing more can be held."""
        if self.failing and self.chain.held_bytes > HELD_BYTES:
            self.flush()
        return f"{self.writer}.{self.chain.append(encode(record))}"

    def flush(self) -> None:
        """Hand what was appended to the operating system in one write; in strict mode, to the disk. Raises
        E1410 or E1411; nothing is lost then, and no call of this tick may go out."""
        if self._lend is None:
            self._flush()
            return
        # The compiled chain writes by itself, where calls along tracks want it, until something is due here.
        self._size = self.chain.size  # type: ignore[attr-defined]
        try:
            self._flush()
        finally:
            due = max(self._signed + self._every, self.seq + self._every // 10 + 1)
            self._lend(-1 if self.strict or self.failing else self._fd, self._size, self._segment_bytes, due)

    def _flush(self) -> None:
        chain = self.chain
        if not chain.held:
            return
        chain.held.append(b"")
        data = b"\n".join(chain.held)
        chain.held.pop()
        written = 0
        try:
            if self._fd < 0 or self._size >= self._segment_bytes:
                self._next_segment()
            while written < len(data):
                written += os.write(self._fd, data[written:] if written else data)
            if self.strict:
                _sync(self._fd)
        except OSError as error:
            self.failing = True
            if written:
                self._take_back()
            raise self._explain(error) from None
        self.failing = False
        self._size += len(data)
        chain.held.clear()
        chain.held_bytes = 0
        since = self.seq - self._signed
        if since >= self._every and (since > 9 * self._every or not 0 <= self._clock() - self._signed_at < CHECKPOINT_PAUSE_S):
            self.checkpoint()

    def _take_back(self) -> None:
        """Half a batch must not stay, because the next attempt writes all of it again."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._size = self._segment_bytes  # then at least it goes into a segment of its own

    def checkpoint(self) -> Checkpoint | None:
        """Sign where the chain is, if it has grown since, and note it in the folder and through
        `on_checkpoint`. A failure is kept in `problem` and tried again; the records themselves are safe by
        then."""
        if self._signer is None or self.chain.held or self.seq == self._signed:
            return None
        made = Checkpoint(self.writer, self.seq, self.head, self._clock())
        try:
            signature = self._signer.sign(msgspec.json.encode(made))
            path = segments.checkpoints(self.folder, self.writer)
            fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, signature.encode() + b"\n")
            finally:
                os.close(fd)
            if self._on_checkpoint:
                self._on_checkpoint(made, signature)
        except OSError as error:
            self.problem = self._explain(error)
            return None
        except EarnestError as error:
            self.problem = error
            return None
        self.problem = None
        self._signed, self._signed_at = made.seq, made.time
        return made

    def close(self) -> None:
        """Write what is left, sign the end and let the log go. Raises as `flush` does, and closes all the
        same."""
        if self._lock < 0:
            return
        try:
            self.flush()
            self.checkpoint()
        finally:
            self._release()

    def _release(self) -> None:
        if self._lend is not None:
            self._lend(-1, self._size, 0, 0)
        for fd in (self._fd, self._lock):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock = -1

    def _next_segment(self) -> None:
        fd = self._create(self._number + 1)
        if self._fd >= 0:
            _sync(self._fd)
            os.close(self._fd)
        self._fd, self._size, self._number = fd, 0, self._number + 1

    def _create(self, number: int) -> int:
        flags = os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC
        return os.open(segments.segment(self.folder, self.writer, number), flags, 0o600)

    def _recover(self, known: Checkpoint | None) -> list[Repair]:
        """Find the end of the chain; the repairs that were made on the way, to be put on record."""
        repairs = []
        paths = segments.segments(self.folder, self.writer)
        if paths:
            self._number = segments.number(paths[-1])
            self._fd = os.open(paths[-1], os.O_APPEND | os.O_RDWR | os.O_CLOEXEC)
            end = segments.tail(paths[-1])
            self._size = end.size
            torn = os.path.getsize(paths[-1]) - end.size
            if torn:
                repairs.append(self._set_aside(paths[-1], end.size, torn))
            for path in reversed(paths[:-1]):
                if end.line is not None:
                    break
                end = segments.tail(path)
            if end.line is not None:
                self.chain.seq, self.chain.head = end.line.seq, end.head.encode()
        if known is not None and known.writer == self.writer and known.seq > self.seq:
            first = self.seq + 1
            text = f"records {first} to {known.seq} were there once and are gone"
            repairs.append(Repair(self._clock(), text, first=first, last=known.seq))
            self.chain.seq, self.chain.head = known.seq, known.head.encode()
        return repairs

    def _set_aside(self, path: str, size: int, torn: int) -> Repair:
        lost = os.pread(self._fd, torn, size)
        count = 1
        while os.path.exists(f"{path}.torn-{count}"):
            count += 1
        kept = f"{path}.torn-{count}"
        fd = os.open(kept, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(lost)
        os.ftruncate(self._fd, size)
        text = f"{torn} bytes at the end of {os.path.basename(path)} were no whole record and are set aside"
        return Repair(self._clock(), text, torn, hashlib.sha256(lost).hexdigest(), os.path.basename(kept))

    def _explain(self, error: OSError) -> EarnestError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "Free some space; calls wait until receipts can be written."
            return EarnestError(
                "E1410", f"the disk is full: no receipt can be written in {self.folder}", remedy
            )
        return EarnestError("E1411", f"receipts cannot be written in {self.folder}: {error.strerror}")

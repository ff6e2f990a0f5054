"""The way an answer leaves, so that no kill can fall between its leaving and the note that it left.

Theory. After a write the kernel may run the reader first, and a kill then finds an answer that left and an id that still stands
in the journal: the next daemon would answer it a second time. No order of a write and a note closes that gap; the kernel must
do both at once. It does where bytes are moved from one pipe to another (`splice`): they are in the one or in the other. So an
answer goes into a pipe that the shim owns, which outlives the daemon, and from there to the client:

    note the id     the pipe is empty: a kill leaves an id whose answer never began to leave
    fill            a kill leaves part of an answer in the pipe; it is thrown away
    note it full    from here on the pipe tells how much has left: all of it once it is empty
    move            a kill leaves the rest; the next daemon moves it on
    take the id out, forget the note

Several answers of one moment go together: the same steps, with all of their ids (`_pipes.pxi` has them compiled). Of a longer
answer the last `MOST_BYTES` go this way, since it is the end that counts. It is for clients that read from a pipe or a socket
with room enough; files and terminals take the plain way, as everything does where there is no `splice` (macOS).
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from typing import Final

from earnest.gateway.process.descriptors import Kind, Sink
from earnest.gateway.process.journal import Journal

MOST_BYTES: Final = 32 * 1024
"""Longest piece that is sure to fit into an empty pipe (64 KiB), wherever its pages begin."""
_ROOM: Final = 4 * MOST_BYTES


class Passage:
    """The pipe of one client, and what the journal says of it. It owns both ends."""

    def __init__(self, read_fd: int, write_fd: int, sink: Sink, journal: Journal) -> None:
        self._in, self._out = write_fd, read_fd
        self._sink = sink
        self._journal = journal
        self._closed = False
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)
        self.usable = hasattr(os, "splice") and _takes(sink)

    def before(self, id: bytes, line: memoryview) -> int:
        """How many bytes of what is left of the line that answers this id go the plain way first; the end goes this one."""
        return max(0, len(line) - MOST_BYTES) if self.usable and id in self._journal else len(line)

    def fill(self, id: bytes, line: memoryview) -> None:
        """Put a line, or its end, into the pipe, which is empty. Raises `OSError` where it does not fit, which is a defect."""
        self._journal.stage_answer(id)
        if os.write(self._in, line) != len(line):
            raise OSError("an answer did not fit into an empty pipe")
        self._journal.answer_staged()

    def move(self) -> bool:
        """Move on what stands in the pipe; whether all of it has left. Raises `OSError` when nobody reads any more."""
        while self.waiting():
            if self._sink.kind is Kind.SOCKET and not self._sink.writable():
                return False  # a splice would wait
            try:
                os.splice(self._out, self._sink.fileno(), MOST_BYTES, flags=os.SPLICE_F_NONBLOCK)
            except (BlockingIOError, InterruptedError):
                return False
        return True

    def waiting(self) -> int:
        """Bytes in the pipe."""
        found: int = struct.unpack("i", fcntl.ioctl(self._out, termios.FIONREAD, b"\0\0\0\0"))[0]
        return found

    def forget(self) -> None:
        """The answer has left and its id is out of the journal."""
        if not self._closed:  # the last answer may end the client
            self._journal.forget_staged()

    def left_over(self) -> tuple[bytes, ...]:
        """The ids whose answers an earlier daemon put into the pipe whole, to be moved on from where they are; else none, and
        the pipe is empty."""
        ids, whole = self._journal.staged
        if ids and whole:
            return ids
        while self.waiting():
            os.read(self._out, MOST_BYTES)
        self._journal.drop_staged()
        return ()

    def ends(self) -> tuple[int, int]:
        """Where answers are put in and where they are moved on from."""
        return self._in, self._out

    def close(self) -> None:
        """Close both ends; the shim's stay."""
        self._closed = True
        os.close(self._in)
        os.close(self._out)


def _takes(sink: Sink) -> bool:
    if sink.kind is Kind.PIPE:
        return True
    if sink.kind is not Kind.SOCKET:
        return False
    # One that says it can be written to has three quarters of its room free, so that no splice waits for more.
    with socket.socket(fileno=os.dup(sink.fileno())) as one:
        return one.family == socket.AF_UNIX and one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= _ROOM

"""Descriptors that a client gave its server, whatever they are: pipes, sockets, terminals, files, /dev/null.

Each is looked at first. A poller handed a regular file or /dev/null refuses it, and uvloop's pipe transports
abort the whole process on one. O_NONBLOCK sits on the open file description, which a wrapper (`sh -c`, npx)
on the same end shares: it would meet EAGAIN where it never did. So pipes and terminals are opened once more,
sockets are read and written with MSG_DONTWAIT and watched through an epoll of their own, and files are read
as they are.
"""

import asyncio
import os
import select
import socket
import stat
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Protocol


class Kind(Enum):
    """What a descriptor is, as far as reading and writing differ."""

    PIPE = "pipe"
    SOCKET = "socket"
    TERMINAL = "terminal"
    PLAIN = "plain"
    """A regular file, /dev/null and the like: always ready, cannot be polled."""


def kind(fd: int) -> Kind:
    """What this descriptor is."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode):
        return Kind.PIPE
    if stat.S_ISSOCK(mode):
        return Kind.SOCKET
    if stat.S_ISCHR(mode) and os.isatty(fd):
        return Kind.TERMINAL
    return Kind.PLAIN


class _Watched:
    """Common to both directions: owns the descriptor, watches it without touching its flags where that is
    possible."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, *, write: bool) -> None:
        self.kind = kind(fd)
        self._loop = loop
        self._write = write
        self._fd = self._own(fd)
        self._socket = socket.socket(fileno=self._fd) if self.kind is Kind.SOCKET else None
        self._epoll: select.epoll | None = None
        self._watching = False
        self._soon: asyncio.Handle | None = None
        self.closed = False

    def _own(self, fd: int) -> int:
        if self.kind in (Kind.PIPE, Kind.TERMINAL):
            flags = (os.O_WRONLY if self._write else os.O_RDONLY) | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            try:
                again = os.open(f"/proc/self/fd/{fd}", flags)
            except OSError:
                # no /proc, or a pipe of another user: this end's flag changes, which only wrappers on it
                # notice
                os.set_blocking(fd, False)
            else:
                os.close(fd)
                return again
        return fd

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def _watch(self, callback: Callable[[], None]) -> None:
        if self._watching or self.closed:
            return
        self._watching = True
        if self.kind is Kind.PLAIN:
            self._soon = self._loop.call_soon(self._ready, callback)
        elif self._socket is not None and hasattr(select, "epoll"):
            # An epoll is ready when what it watches is. The loop sets O_NONBLOCK on what it is given: on the
            # epoll.
            if self._epoll is None:
                self._epoll = select.epoll(1)
                self._epoll.register(self._fd, select.EPOLLOUT if self._write else select.EPOLLIN)
            self._loop.add_reader(self._epoll.fileno(), callback)
        elif self._write:
            self._loop.add_writer(self._fd, callback)
        else:
            self._loop.add_reader(self._fd, callback)

    def _ready(self, callback: Callable[[], None]) -> None:
        self._watching = False
        callback()

    def _unwatch(self) -> None:
        if not self._watching:
            return
        self._watching = False
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        elif self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
        elif self._write:
            self._loop.remove_writer(self._fd)
        else:
            self._loop.remove_reader(self._fd)

    def close(self) -> None:
        """Stops watching and closes; may be called twice."""
        if self.closed:
            return
        self._unwatch()
        self.closed = True
        if self._epoll is not None:
            self._epoll.close()
        if self._socket is not None:
            self._socket.close()
        else:
            os.close(self._fd)


class Source(_Watched):
    """A descriptor to read from. `on_ready` is called whenever a read may give something, until `pause`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, on_ready: Callable[[], None]) -> None:
        super().__init__(loop, fd, write=False)
        self._on_ready = on_ready
        self._wanted = False

    def resume(self) -> None:
        """Starts, or goes on."""
        self._wanted = True
        self._watch(self._fire if self.kind is Kind.PLAIN else self._on_ready)

    def pause(self) -> None:
        """No more calls until `resume`."""
        self._wanted = False
        self._unwatch()

    def _fire(self) -> None:
        self._on_ready()
        if self._wanted and not self.closed:
            self._watch(self._fire)

    def read_into(self, space: memoryview) -> int | None:
        """Bytes read, 0 at the end, None if there is nothing now."""
        try:
            if self._socket is not None:
                return self._socket.recv_into(space, 0, socket.MSG_DONTWAIT)
            return os.readv(self._fd, [space])
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return 0  # reset, or the terminal hung up


class Sink(_Watched):
    """A descriptor to write to."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        super().__init__(loop, fd, write=True)

    def write(self, data: memoryview) -> int:
        """Bytes written, 0 if it would block; raises `OSError` when nobody reads any more."""
        try:
            if self._socket is not None:
                return self._socket.send(data, socket.MSG_DONTWAIT | getattr(socket, "MSG_NOSIGNAL", 0))
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0

    def writable(self) -> bool:
        """Whether a write would go now, asked without writing."""
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(0))

    def hung_up(self) -> bool:
        """Whether nobody can read any more, asked without writing. Files and /dev/null never hang up."""
        poll = select.poll()
        poll.register(self._fd, 0)
        return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))

    def may_tear(self, length: int) -> bool:
        """Whether a write of this length may be cut by a kill; a pipe takes up to PIPE_BUF whole or not at
        all."""
        return self.kind is not Kind.PIPE or length > select.PIPE_BUF

    def wait(self, callback: Callable[[], None]) -> None:
        """Calls back when a write may succeed, until `unwait`."""
        self._watch(callback)

    def unwait(self) -> None:
        """No more calls."""
        self._unwatch()


HIGH_BYTES = 1 << 20
LOW_BYTES = 256 << 10
LIMIT_BYTES = 64 << 20
"""Queued bytes at which the queue asks for a pause, for more, and at which it gives the client up."""


class Way(Protocol):
    """What a writer needs of a passage (`passage.py`)."""

    def before(self, id: bytes, line: memoryview) -> int: ...
    def fill(self, id: bytes, line: memoryview) -> None: ...
    def move(self) -> bool: ...
    def forget(self) -> None: ...


class Writer:
    """A bounded queue in front of a sink. Lines that answer an id go by `passage`, where there is one that takes them.

    `left` of a line is called when its last byte is in the kernel, not when it was queued.
    `on_pressure(True)` asks to produce less, `on_pressure(False)` takes that back. `on_failed(text)` says
    that no more can be delivered. `tearing` is told before a write that a kill may cut, and after its line
    is whole.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        tearing: Callable[[bool], None],
        on_pressure: Callable[[bool], None],
        on_failed: Callable[[str], None],
        passage: Way | None = None,
    ) -> None:
        self._sink = sink
        self._passage = passage
        self._filled = False
        """The first line of the queue stands in the passage."""
        self._tearing = tearing
        self._on_pressure = on_pressure
        self._on_failed = on_failed
        self.queue: deque[tuple[memoryview, Callable[[], None] | None, bytes]] = deque()
        """What has not gone yet."""
        self._torn = False
        self._pressed = False
        self._failed = False
        self.queued_bytes = 0

    def go_on(self, left: Callable[[], None]) -> None:
        """Moves on answers that stand in the passage; nothing else waits."""
        self.queue.append((memoryview(b""), left, b""))
        self._filled = True
        self._flush()

    def send(self, line: bytes, left: Callable[[], None] | None = None, answers: bytes = b"") -> None:
        """Queues a line (its end included), and writes what goes at once. `answers`: the id that is owed it."""
        if self._failed:
            return
        self.queue.append((memoryview(line), left, answers))
        self.queued_bytes += len(line)
        if len(self.queue) == 1:
            self._flush()
        if self.queued_bytes > LIMIT_BYTES:
            self._fail(f"the client does not read: {self.queued_bytes} bytes wait for it (limit {LIMIT_BYTES})")
        elif self.queued_bytes > HIGH_BYTES and not self._pressed:
            self._pressed = True
            self._on_pressure(True)

    def _flush(self) -> None:
        while self.queue:
            data, left, answers = self.queue[0]
            plain = self._passage.before(answers, data) if answers and self._passage is not None else len(data)
            if self._filled or plain == 0 < len(data):
                if not self._pass(answers, data, left):
                    break
                continue
            if not self._torn and self._sink.may_tear(len(data)):
                self._torn = True
                self._tearing(True)
            try:
                count = self._sink.write(data[:plain])
            except OSError as e:
                self._fail(f"the client is gone: {e.strerror}")
                return
            self.queued_bytes -= count
            if count < len(data):
                self.queue[0] = (data[count:], left, answers)
                if count == 0:
                    self._sink.wait(self._flush)
                    break
                continue
            self.queue.popleft()
            if left is not None:
                left()
            if self._torn:
                self._torn = False
                self._tearing(False)
        else:
            self._sink.unwait()
        if self._pressed and self.queued_bytes < LOW_BYTES:
            self._pressed = False
            self._on_pressure(False)

    def _pass(self, answers: bytes, data: memoryview, left: Callable[[], None] | None) -> bool:
        """Sends the first line by the passage; whether it has left."""
        assert self._passage is not None
        try:
            if not self._filled:
                self._passage.fill(answers, data)
                self._filled = True
            if not self._passage.move():
                self._sink.wait(self._flush)
                return False
        except OSError as e:
            self._fail(f"the client is gone: {e.strerror}")
            return False
        self._filled = False
        self.queued_bytes -= len(data)
        self.queue.popleft()
        if left is not None:
            left()
        if self._torn:
            self._torn = False
            self._tearing(False)
        self._passage.forget()
        return True

    def close(self) -> None:
        """Drops what is queued and closes the sink."""
        self._failed = True
        self.queue.clear()
        self._sink.close()

    def _fail(self, text: str) -> None:
        self._failed = True
        self.queue.clear()
        self.queued_bytes = 0
        self._sink.unwait()
        self._on_failed(text)


def writer_to(loop: asyncio.AbstractEventLoop, fd: int, on_failed: Callable[[str], None]) -> Writer:
    """A writer without a journal behind it."""
    return Writer(Sink(loop, fd), tearing=_ignore, on_pressure=_ignore, on_failed=on_failed)


def _ignore(_: bool) -> None:
    """Nobody wants to know."""

"""What the application sees of a host's hook: `HookPeer`, for one question."""

import asyncio
import os
from collections.abc import Callable
from functools import partial

from earnest.core.errors import EarnestError
from earnest.gateway.process.arrivals import Arrival
from earnest.gateway.process.descriptors import Source, Writer, writer_to
from earnest.gateway.process.handover import LINGER_S
from earnest.gateway.process.link import ShimLink, caller

_HOOK_BYTES = 16 << 20


class HookPeer:
    """One question of a host's hook; `event` is all of its standard input."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        arrival: Arrival,
        on_event: Callable[["HookPeer"], None],
        on_end: Callable[["HookPeer"], None],
    ) -> None:
        """Raises `EarnestError` if the descriptors are not what a shim sends."""
        if len(arrival.fds) != 3:
            raise EarnestError("E1508", f"{len(arrival.fds)} descriptors came, 3 were expected.")
        self.who = caller(arrival)
        self.event = b""
        self.too_long = False
        """The event was longer than is read; it counts as refused."""
        self.on_closed: Callable[[str], None] = _unheard
        self.closed = False
        self._on_event = on_event
        self._on_end = on_end
        self._parts = bytearray()
        self._space = memoryview(bytearray(1 << 16))
        self._stderr = arrival.fds.pop()
        self._stdout = arrival.fds.pop()
        self._source = Source(loop, arrival.fds.pop(), self._pump)
        self._loop = loop
        self._writers: list[Writer] = []
        self._link = ShimLink(loop, arrival.sock, partial(self._end, -1, "the host ended its hook"))

    def start(self) -> None:
        """Takes over and reads the event."""
        self._link.take()
        self._source.resume()

    def _pump(self) -> None:
        count = self._source.read_into(self._space)
        if count is None:
            return
        self._parts += self._space[:count]
        if len(self._parts) > _HOOK_BYTES:
            self._source.pause()
            self._parts.clear()
            self.too_long = True
            self._on_event(self)
        elif count == 0:
            self._source.pause()
            self.event = bytes(self._parts)
            self._on_event(self)

    def finish(self, stdout: bytes, stderr: bytes, code: int) -> None:
        """Answers: what goes to the hook's outputs, and its exit code."""
        if self.closed or self._writers:
            return
        end = partial(self._end, code, "")
        failed = partial(self._lost, code)
        out, err = (writer_to(self._loop, fd, failed) for fd in (self._stdout, self._stderr))
        self._writers = [out, err]
        self._stdout = self._stderr = -1
        self._loop.call_later(LINGER_S, end)
        out.send(stdout, partial(err.send, stderr, end))

    def _lost(self, code: int, text: str) -> None:
        self._loop.call_soon(self._end, code, "")

    def _end(self, code: int, text: str) -> None:
        if self.closed:
            return
        self.closed = True
        self._source.close()
        for writer in self._writers:
            writer.close()
        for fd in (self._stdout, self._stderr):
            if fd >= 0:
                os.close(fd)
        if code < 0:
            self._link.drop()
        else:
            self._link.end(code, text)
        self.on_closed(text)
        self._on_end(self)


def _unheard(_: str) -> None:
    """The default of `on_closed`."""

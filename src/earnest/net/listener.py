"""The HTTP/1.1 listener: a listening socket and the connections it accepted (`connection.py` says how they work).

One timer for each listener sweeps all connections; a timer for each request would cost more than the request's parsing.
"""

from __future__ import annotations

import asyncio
import errno
import ssl as tls
from collections.abc import Callable
from typing import TYPE_CHECKING

from earnest.core.errors import EarnestError
from earnest.net.connection import Connection
from earnest.net.home import Handler
from earnest.net.limits import ServerLimits
from earnest.net.message import Head
from earnest.net.tracks import Known

if TYPE_CHECKING:
    from earnest.net._tracks import Trip


class Listener:
    """A listening socket and its connections; `address` is `(host, port)` as bound."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handler: Handler, limits: ServerLimits) -> None:
        self.loop = loop
        self.handler = handler
        self.limits = limits
        self.connections: set[Connection] = set()
        self.heads: dict[bytes, Head] = {}
        self.begin: Callable[[Known, bytes, Connection], Trip | None] | None = None
        self.closing = False
        self.address: tuple[str, int] = ("", 0)
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None
        shortest = min(limits.head_s, limits.body_s, limits.keep_alive_s, limits.comment_s, limits.stalled_s)
        self._interval = min(1.0, shortest / 4)

    async def open(self, host: str, port: int, ssl: tls.SSLContext | None) -> None:
        """Bind and listen. Raises E1540 when the address cannot be had."""
        try:
            self._server = await self.loop.create_server(
                lambda: Connection(self), host, port, ssl=ssl, backlog=512, reuse_address=True
            )
        except OSError as error:
            raise _cannot_listen(host, port, error) from error
        name = self._server.sockets[0].getsockname()
        self.address = (name[0], name[1])
        self._sweep()

    def _sweep(self) -> None:
        now = self.loop.time()
        for connection in tuple(self.connections):
            connection.sweep(now)
        self._sweeper = self.loop.call_later(self._interval, self._sweep)

    def report(self, what: str, error: Exception) -> None:
        """Hand a defect to the loop's exception handler; the listener goes on."""
        self.loop.call_exception_handler({"message": what, "exception": error})

    def connection_closed(self) -> None:
        """Told by a connection that it is gone."""
        if self._empty is not None and not self.connections and not self._empty.done():
            self._empty.set_result(None)

    async def close(self, grace_s: float = 0.0) -> None:
        """Stop listening, let answers under way end for `grace_s`, then cut what is left."""
        self.closing = True
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.connections):
            connection.shut()
        for wait in (grace_s, 1.0):
            if self.connections:
                self._empty = self.loop.create_future()
                await asyncio.wait([self._empty], timeout=wait)
                for connection in tuple(self.connections):
                    connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()


def _cannot_listen(host: str, port: int, error: OSError) -> EarnestError:
    if error.errno == errno.EADDRINUSE or "address already in use" in str(error):
        return EarnestError(
            "E1540",
            f"cannot listen on {host}:{port}: the port is in use",
            "Stop what uses it, or choose another port.",
        )
    return EarnestError("E1540", f"cannot listen on {host}:{port}: {error.strerror or error}")


async def serve(
    loop: asyncio.AbstractEventLoop,
    host: str,
    port: int,
    handler: Handler,
    limits: ServerLimits,
    ssl: tls.SSLContext | None = None,
) -> Listener:
    """Listen on `host` and `port` (0: any) and call `handler` with each complete request. Raises E1540."""
    listener = Listener(loop, handler, limits)
    await listener.open(host, port, ssl)
    return listener

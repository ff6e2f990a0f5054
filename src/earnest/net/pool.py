"""The client side: HTTP/1.1 requests over kept connections, told by callbacks.

Theory. A request waits until a connection to its origin is free or dialled, is written in one piece, and
owns the connection until its answer is complete. From the moment of writing, bytes may have reached the
server, and a request that may have had effect is never sent again: if the connection dies, the handler
hears `lost(error, sent=True)`. Only a request that the caller calls `safe` is written once more, when a
*kept* connection died without a byte of an answer. A connection is given to the next request after
everything that was read has been parsed, so that bytes behind an answer can never be taken for the next
answer; such a connection is closed.

Callbacks never run inside `request` or `cancel`. Sources: RFC 9112 (6, 9.3), RFC 9110 (9.2.2).
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final

from earnest.core.errors import EarnestError
from earnest.net.client import NEVER, ClientConnection, Handle, KnownHead, ResponseHandler, failed
from earnest.net.dial import Dialer, Direct, TlsSettings, client_context, explain
from earnest.net.limits import ClientLimits
from earnest.net.message import HeaderFields, fields
from earnest.net.url import Origin

_TARGET: Final = re.compile(r"[\x21-\x7e]+\Z")


class Lead:
    """The head of a request up to its length, made once for requests that differ in their bodies alone."""

    __slots__ = ("bodiless", "origin", "raw")

    def __init__(self, origin: Origin, raw: bytes, bodiless: bool) -> None:
        """`bodiless`: a request of this method without a body announces none."""
        self.origin = origin
        self.raw = raw
        self.bodiless = bodiless


class Pool:
    """Kept connections to any number of origins, all with one set of limits and TLS files."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: ClientLimits | None = None,
        tls: TlsSettings | None = None,
        dialer: Dialer | None = None,
    ) -> None:
        self.loop = loop
        self.now: Callable[[], float] = loop.time
        self.limits = limits or ClientLimits()
        self._tls = tls or TlsSettings()
        self._context: ssl.SSLContext | None = None
        self._dialer: Dialer = dialer or Direct(loop)
        self.heads: dict[bytes, KnownHead] = {}
        self.answers: dict[bytes, float] | None = None
        self.streams: dict[bytes, float] | None = None
        """Where shapes of heads are kept that calls along tracks may be answered with, as JSON and as event streams, each with
        the seconds for which its connection may be kept idle."""
        self._idle: dict[Origin, list[ClientConnection]] = {}
        self._waiting: dict[Origin, deque[Handle]] = {}
        self._open: dict[Origin, int] = {}
        self._dialling: dict[Origin, int] = {}
        self._all: set[ClientConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def request(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: HeaderFields | bytes,
        body: bytes,
        handler: ResponseHandler,
        *,
        safe: bool = False,
        head_s: float | None = None,
        max_body: int = 64 * 1024 * 1024,
    ) -> Handle:
        """Send a request. Host, Content-Length and Accept-Encoding are set here; `headers` may be what
        `fields` returns.

        `safe` allows one more try as told above. `head_s` bounds the wait for the answer's head (0: none),
        `max_body` the whole body in bytes. Raises ValueError for a method, target or field that could end
        its line.
        """
        return self.send(self.lead(origin, method, target, headers), body, handler, safe=safe, head_s=head_s, max_body=max_body)

    def lead(self, origin: Origin, method: str, target: str, headers: HeaderFields | bytes) -> Lead:
        """The head of requests that `send` can send any number of times. Raises ValueError as `request` does."""
        if not _TARGET.match(target) or not method.isalpha() or not method.isascii():
            raise ValueError("not a valid request line")
        extra = headers if isinstance(headers, bytes) else fields(headers)
        authority = origin.authority.encode()
        head = (method.encode(), target.encode(), authority, extra)
        raw = b"%b %b HTTP/1.1\r\nHost: %b\r\nAccept-Encoding: identity\r\n%b" % head
        return Lead(origin, raw, method in ("GET", "DELETE", "HEAD"))

    def send(
        self,
        lead: Lead,
        body: bytes,
        handler: ResponseHandler,
        *,
        safe: bool = False,
        head_s: float | None = None,
        max_body: int = 64 * 1024 * 1024,
    ) -> Handle:
        """As `request`, with a head that was made before."""
        origin = lead.origin
        if body or not lead.bodiless:
            payload = b"%bContent-Length: %d\r\n\r\n%b" % (lead.raw, len(body), body)
        else:
            payload = lead.raw + b"\r\n"
        head_s = self.limits.head_s if head_s is None else head_s
        deadline = self.loop.time() + head_s if head_s > 0 else NEVER
        handle = Handle(origin, payload, handler, safe, max_body, deadline)
        if self._timer is None:
            self._arm()
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if not connection.dead and not connection.transport.is_closing():
                connection.start(handle)
                return handle
        self.enqueue(handle)
        return handle

    def idle(self, origin: Origin) -> list[ClientConnection]:
        """The free connections to an origin; the same list for as long as the pool is there."""
        return self._idle.setdefault(origin, [])

    def waiting(self, origin: Origin) -> deque[Handle]:
        """Requests that wait for a connection to an origin; the same deque for as long as the pool is there."""
        return self._waiting.setdefault(origin, deque())

    def settle(self) -> None:
        """Make ordinary requests of those that go along tracks."""
        for connection in tuple(self._all):
            if connection.trip is not None:
                connection.trip.become()

    def enqueue(self, handle: Handle) -> None:
        """Let a request wait for a connection, and dial one if there may be one more."""
        waiting = self.waiting(handle.origin)
        if self._closed or len(waiting) >= self.limits.waiting:
            why = "the pool is closed" if self._closed else f"{len(waiting)} requests wait for it already"
            self._later_lost(handle, failed("E1228", f"no connection to {handle.origin}: {why}", "Try again later."))
            return
        waiting.append(handle)
        self._dial_for(handle.origin)

    def _later_lost(self, handle: Handle, error: EarnestError) -> None:
        def tell() -> None:
            if not handle.done:
                handle.done = True
                handle.handler.lost(error, False)

        self.loop.call_soon(tell)

    def _dial_for(self, origin: Origin) -> None:
        dialling = self._dialling.get(origin, 0)
        room = self.limits.connections - self._open.get(origin, 0) - dialling
        if room > 0 and len(self._waiting.get(origin, ())) > dialling and not self._closed:
            self._dialling[origin] = dialling + 1
            task = self.loop.create_task(self._dial(origin))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _dial(self, origin: Origin) -> None:
        connection: ClientConnection | None = None
        error: EarnestError | None = None
        try:
            async with asyncio.timeout(self.limits.connect_s):
                context = self._secure() if origin.scheme == "https" else None
                _, connection = await self._dialer(origin, lambda: ClientConnection(self, origin), context)
        except (OSError, EarnestError, ssl.SSLError, ValueError, RuntimeError) as failure:
            error = explain(origin, failure, self.limits.connect_s)
        finally:
            self._dialling[origin] -= 1
        if connection is not None and connection.dead:
            error = failed("E1224", f"{origin} accepted the connection and closed it at once", "Try again.")
        if connection is not None and error is None:
            self.release(connection)
        elif error is not None:
            handle = self._next(origin)
            if handle is not None:
                handle.done = True
                try:
                    handle.handler.lost(error, False)
                except Exception as defect:
                    self.report(defect)
        self._dial_for(origin)

    def _secure(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = client_context(self._tls)
        return self._context

    def _next(self, origin: Origin) -> Handle | None:
        waiting = self._waiting.get(origin)
        while waiting:
            handle = waiting.popleft()
            if not handle.done:
                return handle
        return None

    def release(self, connection: ClientConnection) -> None:
        """A connection is free: it serves who waits longest, or is kept."""
        if self._closed or connection.dead or connection.transport.is_closing():
            connection.cut()
            return
        handle = self._next(connection.origin)
        if handle is not None:
            connection.start(handle)
            return
        idle_s = connection.idle_s
        if idle_s <= 0:
            connection.cut()
            return
        connection.idle_until = self.loop.time() + idle_s
        self._idle.setdefault(connection.origin, []).append(connection)

    def joined(self, connection: ClientConnection) -> None:
        """Told by a connection that it is open."""
        self._all.add(connection)
        self._open[connection.origin] = self._open.get(connection.origin, 0) + 1

    def left(self, connection: ClientConnection) -> None:
        """Told by a connection that it is gone."""
        self._all.discard(connection)
        self._open[connection.origin] -= 1
        idle = self._idle.get(connection.origin)
        if idle and connection in idle:
            idle.remove(connection)
        self._dial_for(connection.origin)

    def report(self, error: Exception) -> None:
        """Hand a defect of ours, or of a handler, to the loop's exception handler."""
        self.loop.call_exception_handler({"message": "an HTTP call failed in earnest itself", "exception": error})

    def _arm(self) -> None:
        self._timer = self.loop.call_later(min(0.5, self.limits.idle_s / 4 or 0.5), self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = self.loop.time()
        for connection in tuple(self._all):
            handle = connection.handle
            if handle is not None and now > handle.deadline:
                connection.expire()
            elif now > connection.idle_until:
                connection.cut()
        for origin, waiting in self._waiting.items():
            for handle in [h for h in waiting if now > h.deadline and not h.done]:
                waiting.remove(handle)
                late = failed("E1227", f"no connection to {origin} became free in time", "Try again later.")
                self._later_lost(handle, late)
        if not self._closed and (self._all or self._tasks or any(self._waiting.values())):
            self._arm()

    async def close(self) -> None:
        """Cut every connection; requests under way hear `lost`. Returns when nothing is left running."""
        self._closed = True
        self.settle()
        if self._timer is not None:
            self._timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closed = failed("E1228", "the connection pool was closed", "")
        for connection in tuple(self._all):
            if connection.handle is not None:
                connection.fail(closed)
            else:
                connection.cut()
        for waiting in self._waiting.values():
            while waiting:
                self._later_lost(waiting.popleft(), closed)
        await asyncio.sleep(0)

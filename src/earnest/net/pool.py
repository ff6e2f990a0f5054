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
from typing import Any, Final, Protocol

import httptools

from earnest.core.errors import EarnestError
from earnest.net.dial import Dialer, Direct, TlsSettings, client_context, explain
from earnest.net.limits import ClientLimits
from earnest.net.message import HeaderFields, Headers, RawHeaders, fields
from earnest.net.url import Origin

_TARGET: Final = re.compile(r"[\x21-\x7e]+\Z")
_TIMEOUT: Final = re.compile(r"timeout=(\d{1,6})")
_NEVER: Final = float("inf")


class ResponseHandler(Protocol):
    """What hears of one answer: `head`, any number of `data`, then `end`; or `lost` at any point. Nothing
    after those."""

    def head(self, status: int, headers: Headers) -> None: ...
    def data(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def lost(self, error: EarnestError, sent: bool) -> None: ...


class Handle:
    """One request under way."""

    __slots__ = (
        "conn",
        "deadline",
        "done",
        "handler",
        "max_body",
        "origin",
        "payload",
        "retried",
        "safe",
        "sent",
    )

    def __init__(
        self,
        origin: Origin,
        payload: bytes,
        handler: ResponseHandler,
        safe: bool,
        max_body: int,
        deadline: float,
    ) -> None:
        self.origin = origin
        self.payload = payload
        self.handler = handler
        self.safe = safe
        self.max_body = max_body
        self.deadline = deadline
        self.conn: _Connection | None = None
        self.sent = False
        self.retried = False
        self.done = False

    def cancel(self) -> None:
        """Stop: the handler hears nothing more, and the connection is closed, which tells the server."""
        if not self.done:
            self.done = True
            if self.conn is not None:
                self.conn.cut()

    def pause(self) -> None:
        """Stop reading the answer until `resume`; what was read already may still arrive."""
        if self.conn is not None and not self.done:
            self.conn.transport.pause_reading()

    def resume(self) -> None:
        """Go on reading."""
        if self.conn is not None and not self.done:
            self.conn.transport.resume_reading()


class _Broken(Exception):
    """Leaves the parser; the error is kept on the connection."""


class _Connection(asyncio.Protocol):
    """One connection; `handle` is the request that owns it, None while it is idle."""

    def __init__(self, pool: Pool, origin: Origin) -> None:
        self.pool = pool
        self.origin = origin
        self.transport: Any = None
        self.handle: Handle | None = None
        self.fresh = True
        self.dead = False
        self.idle_until = _NEVER
        self.idle_s = pool.limits.idle_s
        self._parser = httptools.HttpResponseParser(self)
        self._error: EarnestError | None = None
        self._reset()

    def _reset(self) -> None:
        self._raw: RawHeaders = []
        self._head_bytes = 0
        self._head_fed = 0
        self._body_fed = 0
        self._status = 0
        self._heard = False
        self._in_body = False
        self._framed = False
        self._keep = False
        self._body_bytes = 0
        self._complete = False

    def start(self, handle: Handle) -> None:
        self.handle = handle
        handle.conn = self
        self._reset()
        self.idle_until = _NEVER
        handle.sent = True
        self.transport.write(handle.payload)

    def cut(self) -> None:
        """Close at once; whoever owned the connection hears nothing of it."""
        self.handle = None
        self.dead = True
        self.transport.abort()

    # The transport's side.

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.pool.joined(self)

    def data_received(self, data: bytes) -> None:
        if self.handle is None:
            self.cut()  # nobody asked: whatever this is, it is no answer to the next request
            return
        self._heard = True
        was_body = self._in_body
        try:
            self._parser.feed_data(data)
            if not self._complete:
                self._bound(was_body, len(data))
        except httptools.HttpParserUpgrade:
            self._error = self._error or self._protocol("it switched protocols unasked")
        except httptools.HttpParserError as error:
            self._error = self._error or self._protocol(str(error))
        except _Broken:
            pass
        if self.handle is None:
            return
        if self._complete:
            self._finish(reuse=self._keep and self._error is None)
        elif self._error is not None:
            self._fail(self._error)

    def _bound(self, was_body: bool, size: int) -> None:
        """A line that never ends reaches no callback, so the bytes that were fed are bounded instead."""
        limit = self.pool.limits.header_bytes
        if self._in_body and was_body:
            self._body_fed += size
            over = self._body_fed > 9 * self._body_bytes + limit + size
        else:
            self._head_fed += size
            over = not self._in_body and self._head_fed > limit
        if over:
            self._break("E1226", "its head or chunk lines are too large")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.dead = True
        self.pool.left(self)
        handle = self.handle
        if handle is None:
            return
        if self._in_body and not self._framed and exc is None:
            self._finish(reuse=False)
            return
        self.handle = None
        if handle.safe and not self.fresh and not self._heard and not handle.retried:
            handle.retried = True
            handle.sent = False
            handle.conn = None
            self.pool.enqueue(handle)
            return
        when = "before it answered" if not self._in_body else "in the middle of its answer"
        handle.done = True
        self._tell_lost(handle, _failed("E1224", f"{self.origin} closed the connection {when}", "Try again."))

    def _finish(self, reuse: bool) -> None:
        handle = self.handle
        assert handle is not None
        self.handle = None
        handle.done = True
        if reuse and not self.dead:
            self.transport.resume_reading()
            self.fresh = False
            self.pool.release(self)
        else:
            self.dead = True
            self.transport.close()
        try:
            handle.handler.end()
        except Exception as error:
            self.pool.report(error)

    def _fail(self, error: EarnestError) -> None:
        handle = self.handle
        self.cut()
        if handle is not None and not handle.done:
            handle.done = True
            self._tell_lost(handle, error)

    def expire(self) -> None:
        """The head did not come in time."""
        self._fail(_failed("E1227", f"{self.origin} did not answer in time", "Raise the server's `timeout`."))

    def _tell_lost(self, handle: Handle, error: EarnestError) -> None:
        try:
            handle.handler.lost(error, handle.sent)
        except Exception as defect:
            self.pool.report(defect)

    # The parser's side.

    def on_message_begin(self) -> None:
        if self._complete:
            self._break("E1225", "it sent more than one answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            return  # trailers change nothing here
        self._raw.append((name, value))
        self._head_bytes += len(name) + len(value) + 4
        limits = self.pool.limits
        if len(self._raw) > limits.headers or self._head_bytes > limits.header_bytes:
            self._break("E1226", "its answer has too many or too large headers")

    def on_headers_complete(self) -> None:
        status = self._status = self._parser.get_status_code()
        if 100 <= status < 200:
            if status == 101:
                self._break("E1225", "it switched protocols unasked")
            self._raw = []
            return
        if self._parser.get_http_version() not in ("1.0", "1.1") or status < 200:
            self._break("E1225", "it does not speak HTTP/1.1")
        headers = Headers(self._raw)
        coding = headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            self._break("E1225", "it uses a transfer coding that was not asked for")
        if (headers.get("content-encoding") or "identity").lower() != "identity":
            self._break("E1225", "it compressed its answer though that was not asked for")
        length = headers.get("content-length")
        self._framed = coding is not None or length is not None or status in (204, 304)
        one_one = self._parser.get_http_version() == "1.1"
        connection = (headers.get("connection") or "").lower()
        self._keep = self._framed and "close" not in connection and (one_one or "keep-alive" in connection)
        self._in_body = True
        handle = self.handle
        if handle is None:
            raise _Broken
        if length is not None and int(length) > handle.max_body and status not in (204, 304):
            self._break("E1226", f"its answer is larger than {handle.max_body} bytes")
        hint = _TIMEOUT.search(headers.get("keep-alive") or "")
        self.idle_s = min(self.pool.limits.idle_s, float(hint.group(1)) - 1 if hint else _NEVER)
        handle.deadline = _NEVER
        try:
            handle.handler.head(status, headers)
        except Exception as error:
            self._defect(error)

    def on_body(self, body: bytes) -> None:
        handle = self.handle
        if handle is None:
            raise _Broken
        self._body_bytes += len(body)
        if self._body_bytes > handle.max_body:
            self._break("E1226", f"its answer is larger than {handle.max_body} bytes")
        try:
            handle.handler.data(body)
        except Exception as error:
            self._defect(error)

    def on_message_complete(self) -> None:
        if self._in_body:
            self._complete = True

    def _defect(self, error: Exception) -> None:
        self.pool.report(error)
        self._break("E1225", "its answer could not be handled")

    def _break(self, code: str, why: str) -> None:
        self._error = _failed(code, f"the answer of {self.origin} is refused: {why}", "")
        raise _Broken

    def _protocol(self, why: str) -> EarnestError:
        return _failed("E1225", f"the answer of {self.origin} is not valid HTTP: {why}", "Is the URL right?")


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
        self.limits = limits or ClientLimits()
        self._tls = tls or TlsSettings()
        self._context: ssl.SSLContext | None = None
        self._dialer: Dialer = dialer or Direct(loop)
        self._idle: dict[Origin, list[_Connection]] = {}
        self._waiting: dict[Origin, deque[Handle]] = {}
        self._open: dict[Origin, int] = {}
        self._dialling: dict[Origin, int] = {}
        self._all: set[_Connection] = set()
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
        if not _TARGET.match(target) or not method.isalpha() or not method.isascii():
            raise ValueError("not a valid request line")
        extra = headers if isinstance(headers, bytes) else fields(headers)
        payload = b"%b %b HTTP/1.1\r\nHost: %b\r\nAccept-Encoding: identity\r\n%b" % (
            method.encode(),
            target.encode(),
            origin.authority.encode(),
            extra,
        )
        if body or method not in ("GET", "DELETE", "HEAD"):
            payload += b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        else:
            payload += b"\r\n"
        head_s = self.limits.head_s if head_s is None else head_s
        deadline = self.loop.time() + head_s if head_s > 0 else _NEVER
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

    def enqueue(self, handle: Handle) -> None:
        """Let a request wait for a connection, and dial one if there may be one more."""
        waiting = self._waiting.setdefault(handle.origin, deque())
        if self._closed or len(waiting) >= self.limits.waiting:
            why = "the pool is closed" if self._closed else f"{len(waiting)} requests wait for it already"
            self._later_lost(handle, _failed("E1228", f"no connection to {handle.origin}: {why}", "Try again later."))
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
        connection: _Connection | None = None
        error: EarnestError | None = None
        try:
            async with asyncio.timeout(self.limits.connect_s):
                context = self._secure() if origin.scheme == "https" else None
                _, connection = await self._dialer(origin, lambda: _Connection(self, origin), context)
        except (OSError, EarnestError, ssl.SSLError, ValueError, RuntimeError) as failure:
            error = explain(origin, failure, self.limits.connect_s)
        finally:
            self._dialling[origin] -= 1
        if connection is not None and connection.dead:
            error = _failed("E1224", f"{origin} accepted the connection and closed it at once", "Try again.")
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

    def release(self, connection: _Connection) -> None:
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

    def joined(self, connection: _Connection) -> None:
        """Told by a connection that it is open."""
        self._all.add(connection)
        self._open[connection.origin] = self._open.get(connection.origin, 0) + 1

    def left(self, connection: _Connection) -> None:
        """Told by a connection that it is gone."""
        self._all.discard(connection)
        self._open[connection.origin] -= 1
        idle = self._idle.get(connection.origin)
        if idle and connection in idle:
            idle.remove(connection)
        self._dial_for(connection.origin)

    def report(self, error: Exception) -> None:
        """Hand a defect of a handler to the loop's exception handler."""
        self.loop.call_exception_handler({"message": "a handler of an HTTP answer failed", "exception": error})

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
                late = _failed("E1227", f"no connection to {origin} became free in time", "Try again later.")
                self._later_lost(handle, late)
        if not self._closed and (self._all or self._tasks or any(self._waiting.values())):
            self._arm()

    async def close(self) -> None:
        """Cut every connection; requests under way hear `lost`. Returns when nothing is left running."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closed = _failed("E1228", "the connection pool was closed", "")
        for connection in tuple(self._all):
            if connection.handle is not None:
                connection._fail(closed)
            else:
                connection.cut()
        for waiting in self._waiting.values():
            while waiting:
                self._later_lost(waiting.popleft(), closed)
        await asyncio.sleep(0)


def _failed(code: str, message: str, remedy: str) -> EarnestError:
    return EarnestError(code, message, remedy, exit_code=3)

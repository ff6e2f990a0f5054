"""One connection to a server, and the one request at a time that owns it (`pool.py` says how they are used)."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, Protocol

import httptools

from earnest.core.errors import EarnestError
from earnest.net.limits import ClientLimits
from earnest.net.message import Headers, RawHeaders
from earnest.net.tracks import Carrier, compiled
from earnest.net.url import Origin

_KEPT_HEADS: Final = 256
_KEPT_HEAD_BYTES: Final = 2048
"""Heads of answers that a pool keeps by their bytes, and how long each may be."""
_TIMEOUT: Final = re.compile(r"timeout=(\d{1,6})")
NEVER: Final = float("inf")


class ResponseHandler(Protocol):
    """What hears of one answer: `head`, any number of `data`, then `end`; or `lost` at any point. Nothing
    after those."""

    def head(self, status: int, headers: Headers) -> None: ...
    def data(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def lost(self, error: EarnestError, sent: bool) -> None: ...


class PoolHome(Protocol):
    """What a connection needs of its pool."""

    limits: ClientLimits
    heads: dict[bytes, KnownHead]
    answers: dict[bytes, float] | None
    streams: dict[bytes, float] | None

    def joined(self, connection: ClientConnection) -> None: ...
    def left(self, connection: ClientConnection) -> None: ...
    def release(self, connection: ClientConnection) -> None: ...
    def enqueue(self, handle: Handle) -> None: ...
    def report(self, error: Exception) -> None: ...


class KnownHead:
    """The head of an answer that was read and found good, and how the connection goes on behind it. Answers whose heads are the
    same bytes share one (see `connection.py`: same bytes, same reading)."""

    __slots__ = ("headers", "idle_s", "length", "status")

    def __init__(self, status: int, headers: Headers, length: int, idle_s: float) -> None:
        self.status = status
        self.headers = headers
        self.length = length
        self.idle_s = idle_s


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
        self.conn: ClientConnection | None = None
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


_OVER: Final = httptools.HttpResponseParser(object())
"""The parser of connections that are gone."""


class ClientConnection(Carrier, asyncio.Protocol):
    """One connection; `handle` is the request that owns it, or `trip` the call that goes along a track (`tracks.py`); both are
    None while it is idle."""

    def __init__(self, pool: PoolHome, origin: Origin) -> None:
        self.pool: PoolHome = pool
        self.origin = origin
        self.transport = None
        self.handle: Handle | None = None
        self.trip = None
        self.fresh = True
        self.dead = False
        self.idle_until = NEVER
        self.idle_s = pool.limits.idle_s
        self._parser = httptools.HttpResponseParser(self)
        self._error: EarnestError | None = None
        self._reset()

    def _reset(self) -> None:
        self._raw: RawHeaders = []
        self._raw_head = b""
        self._fed = 0
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
        self.idle_until = NEVER
        handle.sent = True
        self.transport.write(handle.payload)

    def adopt(self, handler: ResponseHandler, max_body: int) -> Handle:
        """Let a request that was sent along a track go on as any other's."""
        self._reset()
        handle = Handle(self.origin, b"", handler, False, max_body, NEVER)
        handle.sent = True
        handle.conn = self
        self.trip, self.handle = None, handle
        return handle

    def cut(self) -> None:
        """Close at once; whoever owned the connection hears nothing of it."""
        self.handle = None
        self.dead = True
        self.transport.abort()

    # The transport's side.

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.pool.joined(self)

    def received(self, data: bytes) -> None:
        """Take in what is no answer to a call along a track."""
        if self.handle is None:
            self.cut()  # nobody asked: whatever this is, it is no answer to the next request
            return
        self._fed += len(data)
        if not self._heard:
            end = data.find(b"\r\n\r\n") + 4
            self._raw_head = data[:end]
            known = self.pool.heads.get(self._raw_head)
            if known is not None and end + known.length == len(data) and known.length <= self.handle.max_body:
                self._whole(self.handle, known, data[end:])
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
            raw = self._raw_head
            if raw and self._keep and self._error is None:
                if len(raw) + self._body_bytes == self._fed:
                    self._remember(raw)
                elif raw.startswith(b"HTTP/1.1 200 "):
                    self._remember_stream(raw)
            self._finish(reuse=self._keep and self._error is None)
        elif self._error is not None:
            self.fail(self._error)

    def _whole(self, handle: Handle, known: KnownHead, body: bytes) -> None:
        """An answer whose head is known, whole in what was read, on a connection that stands at the beginning of one."""
        self._heard = self._in_body = self._framed = True
        self.idle_s = known.idle_s
        handle.deadline = NEVER
        handler = handle.handler
        try:
            handler.head(known.status, known.headers)
            if body and self.handle is handle:
                handler.data(body)
        except Exception as error:
            self.pool.report(error)
            self.fail(failed("E1225", f"the answer of {self.origin} is refused: its answer could not be handled", ""))
        if self.handle is handle:
            self._finish(reuse=True)

    def _remember(self, raw: bytes) -> None:
        """Keep the head of an answer whose body, framed by its length alone, was all that was read behind it."""
        headers = Headers(self._raw)
        if headers.get("content-length") is None or self._status in (204, 304) or len(raw) > _KEPT_HEAD_BYTES:
            return
        if any(name in headers for name in ("transfer-encoding", "upgrade", "trailer")):
            return
        heads = self.pool.heads
        if len(heads) >= _KEPT_HEADS:
            heads.clear()
        heads[raw] = KnownHead(self._status, headers, self._body_bytes, self.idle_s)
        answers = self.pool.answers
        if answers is not None and self._status == 200 and headers.media_type == "application/json":
            if len(answers) >= _KEPT_HEADS:
                answers.clear()
            if (shape := compiled.shape(raw)) is not None:
                answers[shape] = self.idle_s

    def _remember_stream(self, raw: bytes) -> None:
        """Keep the head of a chunked event stream for calls along tracks."""
        headers, streams = Headers(self._raw), self.pool.streams
        if streams is None or headers.media_type != "text/event-stream" or "transfer-encoding" not in headers:
            return
        if len(streams) >= _KEPT_HEADS:
            streams.clear()
        if "upgrade" not in headers and "trailer" not in headers and (shape := compiled.stream_shape(raw)) is not None:
            streams[shape] = self.idle_s

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
        if self.trip is not None:
            self.trip.become()
        self.dead = True
        self._parser = _OVER  # the one there was held this connection, as this connection held it
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
        self._tell_lost(handle, failed("E1224", f"{self.origin} closed the connection {when}", "Try again."))

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

    def fail(self, error: EarnestError) -> None:
        """End the request that owns the connection with `error`, and the connection."""
        handle = self.handle
        self.cut()
        if handle is not None and not handle.done:
            handle.done = True
            self._tell_lost(handle, error)

    def expire(self) -> None:
        """The head did not come in time."""
        self.fail(failed("E1227", f"{self.origin} did not answer in time", "Raise the server's `timeout`."))

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
        self.idle_s = min(self.pool.limits.idle_s, float(hint.group(1)) - 1 if hint else NEVER)
        handle.deadline = NEVER
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
        self._error = failed(code, f"the answer of {self.origin} is refused: {why}", "")
        raise _Broken

    def _protocol(self, why: str) -> EarnestError:
        return failed("E1225", f"the answer of {self.origin} is not valid HTTP: {why}", "Is the URL right?")


def failed(code: str, message: str, remedy: str) -> EarnestError:
    """The error of a server that failed."""
    return EarnestError(code, message, remedy, exit_code=3)

"""Answers of a listener: JSON or an event stream, nothing else, and never a header that lets a browser
guess."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

import msgspec

from earnest.net import sse
from earnest.net.checks import Refusal
from earnest.net.message import HeaderFields, fields

_SAFE = (
    b"X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; sandbox\r\nCache-Control: no-store\r\n"
)
_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus if status >= 200}
_HEADS = {status: line + _SAFE + b"Content-Type: application/json\r\n" for status, line in _LINES.items()}
JSON_HEAD = _HEADS[200]
"""What an answer of JSON begins with, up to its length."""
_STREAM = _SAFE + b"Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n"
_CLOSE = b"Connection: close\r\n"
_APART = 128 * 1024
"""From this size on a body is written by itself: a second system call costs less than copying it."""


class Wire(Protocol):
    """What a responder needs of its connection."""

    def write(self, data: bytes) -> None: ...
    def answer(self, data: bytes, close: bool) -> None: ...
    def answered(self, close: bool) -> None: ...
    def queued(self) -> int: ...
    def abort(self) -> None: ...


class Responder:
    """Answers one request, once. After the client has gone every method does nothing.

    A second answer raises RuntimeError: it would reach the client as the answer to its next request.
    """

    __slots__ = ("_close", "_head_only", "_http10", "_limit", "_wire", "gone", "started", "stream_open")

    def __init__(self, wire: Wire, keep_alive: bool, http10: bool, head_only: bool, queue_limit: int) -> None:
        self._wire = wire
        self._close = not keep_alive
        self._http10 = http10
        self._head_only = head_only
        self._limit = queue_limit
        self.started = False
        self.gone = False
        self.stream_open: EventStream | None = None

    def _begin(self) -> bool:
        if self.started:
            raise RuntimeError("this request was answered before")
        self.started = True
        return not self.gone

    def json(self, status: int, body: bytes, headers: HeaderFields = ()) -> None:
        """Answer with `body`, which is JSON."""
        extra = fields(headers) if headers else b""
        if self._close:
            extra += _CLOSE
        if not self._begin():
            return
        head = b"%b%bContent-Length: %d\r\n\r\n" % (_HEADS[status], extra, len(body))
        if len(body) > _APART and not self._head_only:
            self._wire.write(head)
            self._wire.answer(body, self._close)
        else:
            self._wire.answer(head if self._head_only else head + body, self._close)

    def empty(self, status: int, headers: HeaderFields = ()) -> None:
        """Answer without a body."""
        extra = fields(headers) if headers else b""
        if not self._begin():
            return
        length = b"" if status in (204, 304) else b"Content-Length: 0\r\n"
        self._wire.write(_LINES[status] + _SAFE + extra + (_CLOSE if self._close else b"") + length + b"\r\n")
        self._wire.answered(self._close)

    def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal's status, headers and message."""
        self.json(refusal.status, msgspec.json.encode({"error": refusal.message}), refusal.headers)

    def stream(self, status: int = 200, headers: HeaderFields = ()) -> EventStream:
        """Answer with an event stream, which stays open until it is closed or the client goes away."""
        extra = fields(headers) if headers else b""
        alive = self._begin()
        self._close = self._close or self._http10
        stream = EventStream(self._wire, self._limit, chunked=not self._http10, close=self._close)
        if not alive:
            stream.gone = True
            return stream
        framing = b"" if self._http10 else b"Transfer-Encoding: chunked\r\n"
        self._wire.write(_LINES[status] + _STREAM + extra + framing + (_CLOSE if self._close else b"") + b"\r\n")
        self.stream_open = stream
        if self._head_only:
            stream.close()
        return stream


class EventStream:
    """Server-sent events to one client.

    `writable` is False while the client reads slower than events come; `on_writable` is called when that
    ends. What is written nevertheless waits, up to the listener's `queued_bytes`; the event after that
    disconnects the client.
    """

    __slots__ = ("_chunked", "_close", "_limit", "_wire", "gone", "on_writable", "quiet_since", "writable")

    def __init__(self, wire: Wire, limit: int, *, chunked: bool, close: bool) -> None:
        self._wire = wire
        self._limit = limit
        self._chunked = chunked
        self._close = close
        self.gone = False
        self.writable = True
        self.on_writable: Callable[[], None] | None = None
        self.quiet_since = -1.0
        """Kept by the listener's sweep: since when nothing was written, -1 after each write."""

    def event(self, data: bytes, event_id: str | None = None, retry_ms: int | None = None) -> None:
        """Send one event. Nothing happens once the stream is closed or the client gone."""
        self._send(sse.encode(data, event_id, retry_ms=retry_ms))

    def comment(self) -> None:
        """Send a comment, which clients ignore."""
        self._send(sse.COMMENT)

    def close(self) -> None:
        """End the stream; the connection serves its next request."""
        if not self.gone:
            self.gone = True
            if self._chunked:
                self._wire.write(b"0\r\n\r\n")
            self._wire.answered(self._close)

    def _send(self, payload: bytes) -> None:
        if self.gone:
            return
        if self._wire.queued() > self._limit:
            self._wire.abort()
            return
        self.quiet_since = -1.0
        self._wire.write(b"%x\r\n%b\r\n" % (len(payload), payload) if self._chunked else payload)

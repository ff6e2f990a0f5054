"""One client's connection: an `asyncio.Protocol` over httptools, one handler, no framework between.

Theory. A connection reads requests and answers them one at a time, in order. Its reading side is `idle`
(between requests), `head`, `body` or `refused`; its answering side is free or busy with one responder. A
request that is complete while another is being answered waits in the queue, which is bounded by count and
bytes. A refusal (400, 413, 408 …) is the last word on its connection: it takes its place behind the answers
that are owed, then the connection closes after a short time in which what still arrives is thrown away,
because a close with unread bytes would reset the connection and lose the answer.

httptools (llhttp, no leniencies) refuses Content-Length beside Transfer-Encoding, a second or malformed
Content-Length, bare LF and CR, folded lines, spaces before a colon and malformed chunks; tests hold each.
What it lets pass and we do not: other transfer codings, Transfer-Encoding in HTTP/1.0, trailers, a target
that is no path, fields that must be single twice, versions other than 1.0 and 1.1.

Same bytes, same reading: clients send one head again and again, so heads that were read and found good are kept by
their bytes, a bounded number for each listener. One is believed only where a request stands alone and whole in
what was read, at the beginning of a message; everything else goes through the parser. The look-up is by a keyed
hash of all bytes, so its time tells nothing about a token in them.

One timer for each listener sweeps all connections; a timer for each request would cost more than the
request's parsing. Sources: RFC 9112 (3.2, 5.1, 6, 9.3), RFC 9110 (10.1.1).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

import httptools

from earnest.net.checks import Refusal
from earnest.net.message import Head, Headers, RawHeaders, Request
from earnest.net.responder import EventStream, Responder
from earnest.net.tracks import Port

if TYPE_CHECKING:
    from earnest.net.home import Home

_SINGLE: Final = frozenset((b"host", b"content-length", b"content-type", b"authorization", b"origin", b"expect"))
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_HIGH_WATER: Final = 256 * 1024
_CHUNK_OVERHEAD: Final = 8
"""Bytes of chunk framing allowed for each byte of body: a byte a chunk costs six."""

_IDLE, _HEAD, _BODY, _REFUSED = range(4)
_KEPT_HEADS: Final = 512
_KEPT_HEAD_BYTES: Final = 4096
"""Heads that a listener keeps by their bytes, and how long each may be."""
_NEVER: Final = float("inf")


class _Stop(Exception):
    """Leaves the parser; the refusal is kept on the connection."""


_OVER: Final = httptools.HttpRequestParser(object())
"""The parser of connections that are gone."""


class Connection(Port, asyncio.Protocol):
    """One client's connection. `state` is for the handler, `peer` the client's address, `tracks` what the handler laid for
    calls like those that came before (`tracks.py`)."""

    def __init__(self, listener: Home) -> None:
        self._listener = listener
        self._limits = listener.limits
        self._loop = listener.loop
        self._now = listener.loop.time
        self._keep_alive_s = listener.limits.keep_alive_s
        self._transport = None
        self._parser = httptools.HttpRequestParser(self)
        self._phase = _IDLE
        self._deadline = _NEVER
        self._queue: deque[tuple[Request, Responder] | Refusal] = deque()
        self._busy = None  # a request and its responder, or a trip
        self._refusal: Refusal | None = None
        self._queued_body = 0
        self._paused = False
        self._closing = False
        self._stalled: tuple[int, float] | None = None
        self._replaying = False
        self._raw_head = b""
        self._raw_size = 0
        self._reset()
        self.state: dict[str, Any] = {}
        self.peer: Any = None
        self.tracks = None

    def _reset(self) -> None:
        self._target = b""
        self._raw: RawHeaders = []
        self._head_bytes = 0
        self._head_fed = 0
        self._headers: Headers | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._wire_bytes = 0
        self._continue = False
        self._upgrading = False
        self._method = ""
        self._http10 = False
        self._keep_alive = False

    # The transport's side.

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.peer = transport.get_extra_info("peername")
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._deadline = self._loop.time() + self._limits.head_s
        self._listener.connections.add(self)
        if len(self._listener.connections) > self._limits.connections:
            many = f"too many connections ([limits] connections = {self._limits.connections})"
            self._refuse(Refusal(503, many, (("Retry-After", "1"),)))

    def received(self, data: bytes) -> None:
        """Take in what is no call along a track."""
        before = self._phase
        if before == _IDLE and self._busy is None and not self._queue:
            end = data.find(b"\r\n\r\n") + 4
            raw = data[:end]
            head = self._listener.heads.get(raw)
            if head is not None and end + head.length == len(data):
                self._deadline = _NEVER
                self._handle(Request(head, data[end:], self), Responder(self, True, False, False, self._limits.queued_bytes))
                return
            self._raw_head, self._raw_size = raw, len(data)
        elif before == _REFUSED:
            return
        else:
            self._raw_head = b""
        if before == _HEAD:
            self._head_fed += len(data)
        self._feed(data)
        if self._refusal is None:
            self._bound_what_no_callback_sees(before, len(data))
        if self._refusal is not None and self._phase != _REFUSED:
            self._refuse(self._refusal)

    def take_up(self, body: bytes, head: Head) -> tuple[Request, Responder]:
        """The call that is under way goes on as an ordinary request: that request, and who answers it."""
        request = Request(head, body, self)
        responder = Responder(self, True, False, False, self._limits.queued_bytes)
        self._busy = request, responder
        return request, responder

    def _feed(self, data: bytes | memoryview) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._upgrading and self._headers is not None:
                self._go_on_without_upgrade(memoryview(data)[upgrade.args[0] :])
            elif self._refusal is None:
                self._refusal = Refusal(400, "only paths are served here")
        except httptools.HttpParserError as error:
            if self._refusal is None:
                self._refusal = Refusal(400, f"malformed request: {error}")
                if isinstance(error.__context__, Exception) and not isinstance(error.__context__, httptools.HttpParserUpgrade):
                    self._listener.report("reading a request failed", error.__context__)

    def _go_on_without_upgrade(self, rest: memoryview) -> None:
        """Ignore an `Upgrade` (RFC 9110 7.8 allows it; some clients offer h2c with each request).

        llhttp stops at the end of such a head, so a fresh parser is given a head with the same framing and end.
        """
        headers = self._headers
        assert headers is not None
        length = headers.get("content-length")
        framing = b"Content-Length: %b\r\n" % length.encode() if length is not None else b""
        if "transfer-encoding" in headers:
            framing = b"Transfer-Encoding: chunked\r\n"
        if not self._keep_alive:
            framing += b"Connection: close\r\n"  # what comes after it is not read
        self._upgrading = False
        self._parser = httptools.HttpRequestParser(self)
        self._replaying = True
        self._feed(b"POST / HTTP/1.1\r\n" + framing + b"\r\n")
        self._replaying = False
        if len(rest) and self._refusal is None:
            self._feed(rest)

    def _bound_what_no_callback_sees(self, before: int, size: int) -> None:
        """A field or chunk line that never ends reaches no callback; it is bounded by the bytes that were
        fed."""
        if self._phase == _HEAD:
            if self._head_fed > self._limits.header_bytes:
                self._refusal = Refusal(431, "the request's head is too large")
        elif self._phase == _BODY and before == _BODY:
            self._wire_bytes += size
            if self._wire_bytes > _CHUNK_OVERHEAD * self._body_bytes + self._limits.header_bytes + size:
                self._refusal = Refusal(400, "malformed request: more framing than body")

    def eof_received(self) -> bool:
        return False  # a client that sends no more wants no more: closing is how streams are cancelled

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.connections.discard(self)
        self._phase = _REFUSED
        self._closing = True
        if self._busy is not None and not isinstance(self._busy, tuple):
            self._busy.become()
        waiting, busy = self._queue, cast("tuple[Request, Responder] | None", self._busy)
        self._queue, self._busy = deque(), None
        if busy is not None:
            self._leave(*busy)
        for entry in waiting:
            if not isinstance(entry, Refusal):
                self._leave(*entry)
        # Whoever laid tracks here still knows each by its place; what they stand on must not live for as long as that.
        for tracks in (self.tracks or {}).values():
            tracks.clear()
        self._parser = _OVER  # the one there was held this connection, as this connection held it
        self._listener.connection_closed()

    def _leave(self, request: Request, responder: Responder) -> None:
        responder.gone = True
        if responder.stream_open is not None:
            responder.stream_open.gone = True
        try:
            request.disconnected()
        except Exception as error:
            self._listener.report("a disconnect callback failed", error)

    def pause_writing(self) -> None:
        self._stalled = (self.queued(), self._loop.time())
        if (stream := self._stream()) is not None:
            stream.writable = False

    def resume_writing(self) -> None:
        self._stalled = None
        stream = self._stream()
        if stream is not None and not stream.writable:
            stream.writable = True
            if stream.on_writable is not None:
                stream.on_writable()

    def _stream(self) -> EventStream | None:
        """The event stream that is being written."""
        return self._busy[1].stream_open if isinstance(self._busy, tuple) else None

    # The parser's side. Exceptions of these leave through `HttpParserError`, so what matters stays on `self`.

    def on_message_begin(self) -> None:
        if self._replaying:
            return
        self._reset()
        self._phase = _HEAD
        self._deadline = self._loop.time() + self._limits.head_s

    def on_url(self, url: bytes) -> None:
        if self._replaying:
            return
        self._target += url
        if len(self._target) > self._limits.target:
            self._stop(414, "the request's target is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._replaying:
            return
        if self._headers is not None:
            self._stop(400, "trailers are not accepted")
        self._raw.append((name, value))
        self._head_bytes += len(name) + len(value) + 4
        if len(self._raw) > self._limits.headers or self._head_bytes > self._limits.header_bytes:
            self._stop(431, "the request has too many or too large headers")

    def on_headers_complete(self) -> None:
        if self._replaying:
            return
        headers = self._headers = Headers(self._raw)
        self._phase = _BODY
        self._deadline = self._loop.time() + self._limits.body_s
        if len(headers) != len(self._raw):
            self._check_duplicates()
        self._check_head(headers)
        self._upgrading = self._parser.should_upgrade()

    def _check_duplicates(self) -> None:
        seen: set[bytes] = set()
        for name, _ in self._raw:
            lower = name.lower()
            if lower in seen and (lower in _SINGLE or lower.startswith(b"mcp-")):
                self._stop(400, f"the header {lower.decode('latin-1')} came twice")
            seen.add(lower)

    def _check_head(self, headers: Headers) -> None:
        version = self._parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._stop(505, "only HTTP/1.1 is spoken here")
        self._http10 = version == "1.0"
        self._method = self._parser.get_method().decode("ascii")
        if self._method not in _METHODS:
            self._stop(501, "this method is not known here")
        if not self._target.startswith(b"/") or b"#" in self._target or not self._target.isascii():
            self._stop(400, "only paths are served here")
        if not self._http10 and "host" not in headers:
            self._stop(400, "the header host is missing")
        coding = headers.get("transfer-encoding")
        if coding is not None:
            if self._http10:
                self._stop(400, "HTTP/1.0 has no transfer codings")
            if coding.lower() != "chunked":
                self._stop(501, "no transfer coding but chunked is accepted")
        length = headers.get("content-length")
        if length is not None and (len(length) > 18 or int(length) > self._limits.body):
            self._stop(413, f"the body is larger than {self._limits.body} bytes")
        self._keep_alive = not self._http10 and "close" not in (headers.get("connection") or "").lower()
        expect = headers.get("expect")
        if expect is not None:
            if expect.lower() != "100-continue":
                self._stop(417, "this expectation cannot be met")
            self._continue = not self._http10 and bool(coding or (length and int(length)))
            if self._busy is None:
                self._say_continue()

    def _say_continue(self) -> None:
        if self._continue and self._phase == _BODY and not self._body_bytes:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._continue = False

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body:
            self._stop(413, f"the body is larger than {self._limits.body} bytes")
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._upgrading or self._headers is None:
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        keep = self._keep_alive
        length = -1 if self._headers.get("content-length") is None else len(body)
        head = Head(
            self._method, self._target.decode("ascii"), self._headers, keep_alive=keep, http10=self._http10, length=length
        )
        if self._raw_head and keep and length >= 0:
            self._keep(head, body)
        request = Request(head, body, self)
        responder = Responder(self, keep, self._http10, self._method == "HEAD", self._limits.queued_bytes)
        self._phase = _IDLE
        self._deadline = _NEVER
        self._reset()
        if self._busy is None and not self._queue:
            self._handle(request, responder)
            return
        if len(self._queue) >= self._limits.pipelined:
            self._stop(503, "too many requests wait on this connection")
        self._queue.append((request, responder))
        self._queued_body += len(body)
        # Not before there is reason to: a client that goes away is not noticed while reading pauses.
        if len(self._queue) * 2 >= self._limits.pipelined or self._queued_body > self._limits.body:
            self._pause()

    def _keep(self, head: Head, body: bytes) -> None:
        """Keep a head by its bytes, if it and its body were all that was read: then what stands before the body is what the
        parser took for a whole head. Not where something was said or done for this request alone."""
        raw, headers = self._raw_head, head.headers
        self._raw_head = b""
        if len(raw) + len(body) != self._raw_size or len(raw) > _KEPT_HEAD_BYTES or head.method == "HEAD":
            return
        if any(name in headers for name in ("expect", "upgrade", "transfer-encoding")):
            return
        heads = self._listener.heads
        if len(heads) >= _KEPT_HEADS:
            heads.clear()
        head.raw = raw
        heads[raw] = head

    def _stop(self, status: int, message: str) -> None:
        self._refusal = Refusal(status, message)
        raise _Stop

    # The answering side.

    def _handle(self, request: Request, responder: Responder) -> None:
        self._busy = (request, responder)
        try:
            self._listener.handler(request, responder)
        except Exception as error:
            self._listener.report("a request's handler failed", error)
            if responder.stream_open is not None or responder.started:
                if isinstance(self._busy, tuple) and self._busy[1] is responder:
                    self._transport.abort()
            else:
                responder.json(500, b'{"error":"internal error"}')

    def write(self, data: bytes) -> None:
        """Write a piece of the answer."""
        self._transport.write(data)

    def queued(self) -> int:
        """Bytes that were written and wait for the client."""
        size: int = self._transport.get_write_buffer_size()
        return size

    def answered(self, close: bool) -> None:
        """The answer is complete: serve the next request, or close."""
        if self._busy is not None:
            if isinstance(self._busy, tuple):
                self._busy[0].finished()
            self._busy = None
        if close or self._listener.closing:
            self._phase = _REFUSED
            self._queue.clear()
            self._end()
        elif self._queue:
            self._loop.call_soon(self._next)
        else:
            if self._phase == _IDLE:
                self._deadline = self._loop.time() + self._limits.keep_alive_s
            elif self._continue:
                self._say_continue()
            if self._paused:
                self._read_on()

    def _next(self) -> None:
        if self._closing or self._busy is not None or not self._queue:
            return
        entry = self._queue.popleft()
        if isinstance(entry, Refusal):
            self._last_word(entry)
        else:
            self._queued_body -= len(entry[0].body)
            self._handle(*entry)

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _read_on(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _refuse(self, refusal: Refusal) -> None:
        self._phase = _REFUSED
        self._body = []
        if self._busy is not None or self._queue:
            self._queue.append(refusal)
        else:
            self._last_word(refusal)

    def _last_word(self, refusal: Refusal) -> None:
        Responder(self, False, False, False, 0).refuse(refusal)

    def _end(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._deadline = self._loop.time() + self._limits.linger_s
        if self._transport.can_write_eof():
            self._transport.write_eof()
            self._read_on()
        else:
            self._transport.close()

    # The sweep.

    def sweep(self, now: float) -> None:
        """Called about once a second: time-outs, slow readers, silence on streams."""
        if self._stalled is not None:
            size, since = self._stalled
            if self.queued() != size:
                self._stalled = (self.queued(), now)
            elif now - since > self._limits.stalled_s:
                self._transport.abort()
                return
        if now > self._deadline:
            self._deadline = _NEVER
            if self._closing:
                self._transport.abort()
            elif self._phase in (_HEAD, _BODY):
                self._refuse(Refusal(408, "the request did not arrive in time"))
            else:
                self._transport.close()
            return
        stream = self._stream()
        if stream is not None:
            if stream.quiet_since < 0:
                stream.quiet_since = now
            elif now - stream.quiet_since >= self._limits.comment_s:
                stream.comment()

    def shut(self) -> None:
        """Close if nothing is under way; otherwise the answer under way is the last."""
        if self._busy is None and not self._queue:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

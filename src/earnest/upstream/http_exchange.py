"""One request over Streamable HTTP and whatever comes in answer to it.

Theory. A POST is answered with one JSON message or with an event stream that belongs to that request alone.
What may come on such a stream before the answer: progress with the request's own token, log messages, other
notifications that no server sends of its own accord; in the legacy era also requests of the server.
Everything else (an answer to another id, a request in the modern era, anything behind the answer) is
reported and dropped: a stream must not smuggle.

A legacy server may close the stream early and let the client come back with `Last-Event-ID`; that is a GET
and repeats nothing. In the modern era a stream that ends without an answer is lost.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from earnest.core.errors import EarnestError
from earnest.net.client import Handle
from earnest.net.message import Headers
from earnest.net.sse import Parser
from earnest.protocol import envelope
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.salvage import salvage
from earnest.upstream.base import ExchangeHandler, Reply, unreadable
from earnest.upstream.http_wire import MESSAGE_LIMIT, PARSE_LIMITS, WIDE, status_error
from earnest.upstream.opening import progress_token

MAX_RESUMES: Final = 10
"""How often a legacy stream may end without having said anything before its request is given up."""
_LINGER_S: Final = 1.0
_ERROR_BODY: Final = 64 * 1024
_JSON, _STREAM, _OTHER = range(3)


class Owner(Protocol):
    """What an exchange needs of its link."""

    name: str
    loop: asyncio.AbstractEventLoop

    def report(self, text: str) -> None: ...
    def excerpt(self, body: bytes) -> str: ...
    def wide(self, message: Message) -> None: ...
    def answer(self, message: bytes) -> None: ...
    def session_lost(self, error: EarnestError) -> None: ...
    def finished(self, exchange: HttpExchange) -> None: ...
    def cancelled(self, exchange: HttpExchange, reason: str) -> None: ...
    def resume(self, exchange: HttpExchange, last_id: bytes) -> Handle: ...
    @property
    def in_session(self) -> bool: ...


class HttpExchange:
    """An `Exchange`, and the handler of its HTTP answer."""

    def __init__(self, owner: Owner, id: bytes, method: str, handler: ExchangeHandler, *, modern: bool) -> None:
        self.id = id
        self.method = method
        self.modern = modern
        self.handle: Handle | None = None
        self.status = 0
        self.headers: Headers | None = None
        self._owner = owner
        self._handler = handler
        self._mode = _OTHER
        self._body: list[bytes] = []
        self._size = 0
        self._parser: Parser | None = None
        self._resumes = 0
        self._timer: asyncio.TimerHandle | None = None
        self.done = False

    # What the link's user does.

    def cancel(self, reason: str = "") -> None:
        """Tell the server that the answer is no longer wanted: closing its stream, and in the legacy era a
        word."""
        if self.done:
            return
        self._end()
        self._owner.cancelled(self, reason)
        if self.handle is not None:
            self.handle.cancel()

    def asked(self, message: Message) -> bool:
        """A request of the server that came elsewhere and can only belong to this call. Returns whether it was taken."""
        return not self.done and not self.modern and self._handler.request(message)

    # The HTTP answer.

    def head(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers
        kind = headers.media_type
        if kind == "text/event-stream" and 200 <= status < 300:
            self._mode = _STREAM
            last_id = self._parser.last_id if self._parser is not None else b""
            self._parser = Parser(MESSAGE_LIMIT)
            self._parser.last_id = last_id
        else:
            self._mode = _JSON if kind == "application/json" or kind.endswith("+json") else _OTHER
            self._body, self._size = [], 0

    def data(self, chunk: bytes) -> None:
        if self._mode == _STREAM:
            assert self._parser is not None
            try:
                events = self._parser.feed(chunk)
            except EarnestError as error:
                self._give_up(error)
                return
            for event in events:
                if event.data:
                    self._message(event.data)
            return
        self._size += len(chunk)
        if self._size > MESSAGE_LIMIT:
            self._give_up(self._error("E1226", f"sent a message of more than {MESSAGE_LIMIT} bytes"))
        elif self._mode == _JSON or self._size <= _ERROR_BODY:
            self._body.append(chunk)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.done:
            self._ended()
        if self.done:
            self.handle = None  # which holds this exchange

    def _ended(self) -> None:
        if self._mode == _STREAM:
            self._stream_ended()
            return
        body = b"".join(self._body)
        self._body = []
        if self.status == 404 and self._owner.in_session:
            self.lose(self._error("E1232", "does not know this session any more"), False)
            self._owner.session_lost(self._error("E1232", "does not know this session any more"))
            return
        if self.status in (401, 403) or 300 <= self.status < 400:
            self.lose(status_error(self._owner.name, self.status, ""), True)
            return
        message = self._parsed(body) if self._mode == _JSON else None
        ok = 200 <= self.status < 300
        if message is not None and self._answers(message, ok):
            self._reply(message)
            return
        if ok and message is None and self._mode == _JSON and self._is_mine(body):
            self.lose(unreadable(self._owner.name), True)
        elif ok:
            what = "its body is no answer to the request" if self._mode == _JSON else "its body is no JSON"
            self.lose(self._error("E1233", f"answered HTTP {self.status}, but {what}", self._owner.excerpt(body)), True)
        else:
            self.lose(status_error(self._owner.name, self.status, self._owner.excerpt(body)), True)

    def lost(self, error: EarnestError, sent: bool) -> None:
        """The connection is gone. A legacy stream that gave event ids can be taken up again."""
        if self._mode == _STREAM and self._may_resume():
            self._stream_ended(polite=False)
            return
        self.lose(error, sent or self._resumes > 0)

    # Messages.

    def _answers(self, message: Message, ok: bool) -> bool:
        if message.kind == "response":
            return ok and message.id == self.id
        # Before a server has read the id it answers with null (JSON-RPC 2.0, section 5).
        return message.kind == "error" and (message.id == self.id or (not message.id and not ok))

    def _parsed(self, data: bytes) -> Message | None:
        try:
            return envelope.parse(data, PARSE_LIMITS)
        except WireError as error:
            self._owner.report(f"sent {len(data)} bytes that are no message: {error.message}")
            return None

    def _is_mine(self, data: bytes) -> bool:
        """Whether what cannot be read is the answer to this request, as far as can be told."""
        whose = salvage(data)
        return whose is not None and whose.kind == "response" and whose.id == self.id

    def _message(self, data: bytes) -> None:
        message = self._parsed(data)
        if message is None:
            if not self.done and self._is_mine(data):
                self._give_up(unreadable(self._owner.name))
            return
        if self.done:
            self._drop(message, "behind the answer")
        elif message.kind in ("response", "error"):
            if message.id == self.id:
                self._reply(message)
                if self.handle is not None:
                    # The server should end the stream now, which keeps the connection; it gets a moment to.
                    self._timer = self._owner.loop.call_later(_LINGER_S, self.handle.cancel)
            else:
                self._drop(message, "an answer to another request")
        elif message.kind == "notification":
            self._notified(message)
        else:
            self._requested(message)
        self._resumes = 0

    def _notified(self, message: Message) -> None:
        listening = self.method == "subscriptions/listen"
        if message.method in WIDE and not listening:
            if self.modern:
                self._drop(message, "a notification that belongs to no request")
            else:
                self._owner.wide(message)
        elif message.method == "notifications/progress" and progress_token(message.params) != self.id:
            self._drop(message, "progress of another request")
        elif message.method == "notifications/message" and listening:
            self._drop(message, "a log on a subscription")
        else:
            self._handler.message(message)

    def _requested(self, message: Message) -> None:
        if self.modern:
            self._drop(message, "a request, which servers of this era do not send")
        elif message.method == "ping":
            self._owner.answer(envelope.result(message.id, b"{}"))
        elif not self._handler.request(message):
            self._owner.answer(envelope.error(message.id, envelope.METHOD_NOT_FOUND, "this request is declined"))

    def _drop(self, message: Message, why: str) -> None:
        what = f"{message.kind} {message.method}".strip()
        self._owner.report(f"E1236: dropped on the stream of request {self.id.decode()}: {why} ({what[:200]})")

    # The end.

    def _may_resume(self) -> bool:
        return not self.modern and not self.done and self._parser is not None and bool(self._parser.last_id)

    def _stream_ended(self, polite: bool = True) -> None:
        """The stream is over, and perhaps to be taken up again. `polite`: the server ended it, it did not break off."""
        parser = self._parser
        if not self._may_resume() or parser is None or self._resumes >= MAX_RESUMES:
            self.lose(self._error("E1235", "ended its answer's stream without an answer"), True)
            return
        wait_ms = 1000 if parser.retry_ms is None else parser.retry_ms
        self._resumes += 1
        if polite:
            self._handler.parted()
        self._timer = self._owner.loop.call_later(min(max(wait_ms, 50), 30_000) / 1000, self._resume)

    def _resume(self) -> None:
        if not self.done and self._parser is not None:
            self.handle = self._owner.resume(self, self._parser.last_id)

    def _reply(self, message: Message) -> None:
        self._end()
        self._handler.reply(Reply(message.result, message.error))

    def _give_up(self, error: EarnestError) -> None:
        if self.handle is not None:
            self.handle.cancel()
        self.lose(error, True)

    def lose(self, error: EarnestError, sent: bool) -> None:
        """Tell the handler, once, that no answer will come."""
        if not self.done:
            self._end()
            self._handler.lost(error, sent)

    def _end(self) -> None:
        self.done = True
        if self._timer is not None:
            self._timer.cancel()
        self._owner.finished(self)

    def _error(self, code: str, what: str, said: str = "") -> EarnestError:
        return EarnestError(code, f"server {self._owner.name!r} {what}", exit_code=3, said=said)

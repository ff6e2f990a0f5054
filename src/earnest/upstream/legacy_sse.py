"""A link to a server over HTTP+SSE, the transport of 2024-11-05.

One GET stream carries everything the server says; its first event, `endpoint`, names where to POST. That
address must have the origin of the stream: another one would let a server send earnest, with the operator's
headers, anywhere. Messages are told apart as on a pipe: answers by id, progress by token, a server's request
only if one call is in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from earnest.core.errors import EarnestError
from earnest.net.client import Handle
from earnest.net.message import Headers
from earnest.net.pool import Pool
from earnest.net.sse import Event, Parser
from earnest.net.url import join, split
from earnest.protocol import envelope
from earnest.protocol.calls import string
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.salvage import salvage
from earnest.upstream.base import Exchange, ExchangeHandler, Reply, ServerHello, unreadable
from earnest.upstream.http_wire import MESSAGE_LIMIT, PARSE_LIMITS, status_error
from earnest.upstream.opening import ClientHello, how_answered, initialize_params, initialized, progress_token
from earnest.upstream.waiter import Waiter

_NO_LIMIT: Final = 1 << 62


class _Exchange(Exchange):
    """A request whose answer comes on the common stream; also hears of its own POST."""

    def __init__(self, link: LegacySseLink, id: bytes, handler: ExchangeHandler) -> None:
        self.link = link
        self.id = id
        self.handler = handler
        self.post: Handle | None = None
        self._status = 0
        self._body = b""

    def cancel(self, reason: str = "") -> None:
        self.link.cancel(self.id, reason)

    def head(self, status: int, headers: Headers) -> None:
        self._status = status

    def data(self, chunk: bytes) -> None:
        if len(self._body) < 4096:
            self._body += chunk[:4096]

    def end(self) -> None:
        if self._status >= 300:
            link = self.link
            link.failed(self.id, status_error(link.name, self._status, link.excerpt(self._body)), True)

    def lost(self, error: EarnestError, sent: bool) -> None:
        self.link.failed(self.id, error, sent)


class _Post:
    """Hears of the POST of a notification or an answer."""

    def __init__(self, link: LegacySseLink) -> None:
        self._link = link

    def head(self, status: int, headers: Headers) -> None:
        if status >= 300:
            self._link.report(f"answered HTTP {status} to a notification")

    def data(self, chunk: bytes) -> None:
        pass

    def end(self) -> None:
        pass

    def lost(self, error: EarnestError, sent: bool) -> None:
        self._link.report(f"a notification was lost: {error.message}")


class LegacySseLink:
    """See `earnest.upstream.base.Link`. The stream is the session: when it ends, the link is lost."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        client: ClientHello,
        log: Callable[[str], None],
        extra: bytes,
        excerpt: Callable[[bytes], str],
        pool: Pool,
        open_timeout: float = 30.0,
    ) -> None:
        """`extra` are the operator's headers, encoded; `excerpt` shortens and redacts what a server said."""
        self.name = name
        self.hello = ServerHello(modern=False, version="")
        self.on_notification: Callable[[Message], None] = lambda message: None
        self.on_lost: Callable[[EarnestError], None] = lambda error: None
        self.excerpt = excerpt
        self._origin, self._target = split(url)
        self._url = url
        self._endpoint = ""
        self._client = client
        self._log = log
        self._extra = extra
        self._pool = pool
        self._open_timeout = open_timeout
        self._loop = pool.loop
        self._named: asyncio.Future[None] = pool.loop.create_future()
        self._named.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._parser = Parser(MESSAGE_LIMIT)
        self._stream: Handle | None = None
        self._exchanges: dict[bytes, _Exchange] = {}
        self._next = 0
        self._status = 0
        self._lost: EarnestError | None = None
        self._closing = False

    async def open(self) -> ServerHello:
        """Open the stream, learn the endpoint, initialize. Raises E1237 for an endpoint elsewhere, else
        E12xx."""
        try:
            async with asyncio.timeout(self._open_timeout):
                headers = b"Accept: text/event-stream\r\nCache-Control: no-cache\r\n" + self._extra
                self._stream = self._pool.request(self._origin, "GET", self._target, headers, b"", self, max_body=_NO_LIMIT)
                await self._named
                waiter = Waiter(self._loop)
                self.call("initialize", initialize_params(self._client), waiter)
                reply = await waiter.future
        except TimeoutError:
            await self.close()
            raise self._error("E1206", f"said nothing within {self._open_timeout:g} s") from None
        except BaseException:
            await self.close()
            raise
        hello = initialized(reply.result) if reply.result else None
        if hello is None:
            await self.close()
            raise self._error("E1207", f"could not be opened: {how_answered(reply)}", self.excerpt(reply.error or reply.result))
        self.hello = hello
        self.notify("notifications/initialized", b"")
        return hello

    @property
    def alive(self) -> bool:
        return bool(self._endpoint) and self._lost is None and not self._closing

    async def close(self) -> None:
        if not self._closing:
            self._fail(self._error("E1204", "was closed"), quietly=True)
            self._closing = True
            if self._stream is not None:
                self._stream.cancel()

    # The stream.

    def head(self, status: int, headers: Headers) -> None:
        kind = (headers.get("content-type") or "").partition(";")[0].strip().lower()
        if status != 200:
            self._fail(status_error(self.name, status, ""))
        elif kind != "text/event-stream":
            self._fail(self._error("E1233", "answered with something else than an event stream"))

    def data(self, chunk: bytes) -> None:
        if self._lost is not None:
            return
        try:
            events = self._parser.feed(chunk)
        except EarnestError as error:
            self._fail(error)
            return
        for event in events:
            if self._lost is None:
                self._event(event)

    def end(self) -> None:
        self._fail(self._error("E1235", "ended its event stream"))

    def lost(self, error: EarnestError, sent: bool) -> None:
        self._fail(error)

    def _event(self, event: Event) -> None:
        if event.type == b"endpoint":
            self._learn(event.data)
        elif event.type == b"message" and event.data:
            try:
                message = envelope.parse(event.data, PARSE_LIMITS)
            except WireError as error:
                self.report(f"sent {len(event.data)} bytes that are no message: {error.message}")
                whose = salvage(event.data)
                if whose is not None and whose.kind == "response":
                    self.failed(whose.id, unreadable(self.name), True)
                return
            self._message(message)

    def _learn(self, data: bytes) -> None:
        if self._endpoint:
            self.report("E1236: a second endpoint was dropped")
            return
        reference = data.decode("utf-8", "replace").strip()
        try:
            origin, target = split(join(self._url, reference))
        except (EarnestError, ValueError):
            self._fail(self._error("E1237", "named an endpoint that is no address"))
            return
        if origin != self._origin:
            self._fail(self._error("E1237", "named an endpoint of another origin, which is not used", str(origin)))
            return
        self._endpoint = target
        if not self._named.done():
            self._named.set_result(None)

    def _message(self, message: Message) -> None:
        if message.kind in ("response", "error"):
            exchange = self._exchanges.pop(message.id, None)
            if exchange is None:
                self.report(f"E1236: dropped an answer to id {message.id[:50].decode()}, which nobody waits for")
            else:
                exchange.handler.reply(Reply(message.result, message.error))
        elif message.kind == "notification":
            self._notified(message)
        elif message.method == "ping":
            self._post(envelope.result(message.id, b"{}"))
        elif len(self._exchanges) != 1 or not next(iter(self._exchanges.values())).handler.request(message):
            why = "no call in flight that this request could belong to"
            self._post(envelope.error(message.id, envelope.METHOD_NOT_FOUND, why))

    def _notified(self, message: Message) -> None:
        if message.method == "notifications/progress":
            exchange = self._exchanges.get(progress_token(message.params))
            if exchange is not None:
                exchange.handler.message(message)
        elif message.method == "notifications/message" and len(self._exchanges) == 1:
            next(iter(self._exchanges.values())).handler.message(message)
        else:
            self.on_notification(message)

    # What is said to the server.

    def reserve(self) -> int:
        self._next += 1
        return self._next

    def call(
        self,
        method: str,
        params: bytes,
        handler: ExchangeHandler,
        *,
        id: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        named: str = "",
    ) -> Exchange:
        token = b"%d" % (self.reserve() if id is None else id)
        exchange = _Exchange(self, token, handler)
        if not self.alive:
            self._loop.call_soon(handler.lost, self._lost or self._error("E1204", "is not open"), False)
            return exchange
        self._exchanges[token] = exchange
        exchange.post = self._pool.request(
            self._origin,
            "POST",
            self._endpoint,
            b"Content-Type: application/json\r\n" + self._extra,
            envelope.request(token, method, params),
            exchange,
        )
        return exchange

    async def ask(self, method: str, params: bytes = b"{}", timeout: float = 30.0) -> Reply:
        waiter = Waiter(self._loop)
        late = self._error("E1206", f"did not answer {method!r} within {timeout:g} s")
        return await waiter.within(self.call(method, params, waiter), timeout, late)

    def notify(self, method: str, params: bytes) -> None:
        self._post(envelope.notification(method, params))

    def respond(self, id: bytes, reply: Reply) -> None:
        self._post(envelope.result(id, reply.result) if reply.result else envelope.error_raw(id, reply.error))

    def _post(self, body: bytes) -> None:
        if self.alive:
            headers = b"Content-Type: application/json\r\n" + self._extra
            self._pool.request(self._origin, "POST", self._endpoint, headers, body, _Post(self))

    def cancel(self, id: bytes, reason: str) -> None:
        """Told by an exchange: its answer is no longer wanted."""
        if self._exchanges.pop(id, None) is not None:
            words = b',"reason":%b' % string(reason) if reason else b""
            self.notify("notifications/cancelled", b'{"requestId":%b%b}' % (id, words))

    def failed(self, id: bytes, error: EarnestError, sent: bool) -> None:
        """Told by an exchange: its POST was refused or lost."""
        exchange = self._exchanges.pop(id, None)
        if exchange is not None:
            exchange.handler.lost(error, sent)

    def report(self, text: str) -> None:
        """A line for the log."""
        self._log(f"[{self.name}] {text}")

    def _error(self, code: str, what: str, said: str = "") -> EarnestError:
        return EarnestError(code, f"server {self.name!r} {what}", exit_code=3, said=said)

    def _fail(self, error: EarnestError, quietly: bool = False) -> None:
        if self._lost is not None or self._closing:
            return
        self._lost = error
        opened = bool(self.hello.version)
        if self._stream is not None:
            self._stream.cancel()
        if not self._named.done():
            self._named.set_exception(error)
        exchanges, self._exchanges = self._exchanges, {}
        for exchange in exchanges.values():
            exchange.handler.lost(error, exchange.post is not None and exchange.post.sent)
        if opened and not quietly:
            self.on_lost(error)

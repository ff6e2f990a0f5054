"""A link to a server over Streamable HTTP, of either era; over HTTP+SSE where a server knows nothing newer.

The era is settled at `open`, per address. For a modern client `server/discover` is tried first: a
`DiscoverResult` is modern, an error that only a modern server sends keeps the link from falling back,
anything else leads to `initialize`; a legacy client begins with `initialize`. What answers neither with a
message but with 400, 404 or 405 may be an HTTP+SSE server of 2024-11-05, and is tried as one. No single
error code decides.

Sources: MCP 2025-11-25 and 2026-07-28, "Transports" and "Versioning".
"""

from __future__ import annotations

import asyncio
import itertools
import random as randomness
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from earnest.core.canonical import members
from earnest.core.errors import EarnestError
from earnest.net.client import ClientConnection, Handle, ResponseHandler
from earnest.net.dial import TlsSettings
from earnest.net.limits import ClientLimits
from earnest.net.message import fields
from earnest.net.pool import Lead, Pool
from earnest.net.url import Origin, split
from earnest.protocol import envelope
from earnest.protocol.envelope import Message
from earnest.protocol.eras import MODERN_ERRORS, UNSUPPORTED_VERSION
from earnest.protocol.headers import generate
from earnest.protocol.methods import lookup
from earnest.upstream.base import Exchange, ExchangeHandler, Reply, ServerHello
from earnest.upstream.http_exchange import HttpExchange
from earnest.upstream.http_quiet import Farewell, Quiet
from earnest.upstream.http_stream import StandingStream
from earnest.upstream.http_wire import ACCEPT, UNREACHABLE, WIDE, Redactor, configured, parameters, session_id
from earnest.upstream.legacy_sse import LegacySseLink
from earnest.upstream.opening import (
    IN_LOG,
    MODERN,
    PROBE_S,
    ClientHello,
    discovered,
    how_answered,
    initialize_params,
    initialized,
    list_changes,
    no_common_version,
    offers_modern,
    own_meta,
    string,
)
from earnest.upstream.waiter import Waiter

_NO_LIMIT: Final = 1 << 62
_LEADS: Final = 512
"""Request heads that a link keeps, one for each object that was called."""


class HttpLink:
    """See `earnest.upstream.base.Link`. `headers` are the operator's and never logged.

    `legacy_sse` is the link behind this one where the server speaks HTTP+SSE only.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        client: ClientHello,
        log: Callable[[str], None],
        headers: Mapping[str, str] | None = None,
        tls: TlsSettings | None = None,
        limits: ClientLimits | None = None,
        pool: Pool | None = None,
        open_timeout: float = 30.0,
        random: Callable[[], float] = randomness.random,
        scrub: Callable[[str], str] = lambda text: text,
    ) -> None:
        """Raises E1229 for a URL that cannot be used, E1238 for a header that cannot be sent.

        A `pool` that is given is shared and not closed; sessions to one server may share its connections. `scrub` takes
        secrets out of what the server said, where that is quoted.
        """
        self.name = name
        self.hello = ServerHello(modern=False, version="")
        self.on_notification: Callable[[Message], None] = lambda message: None
        self.on_lost: Callable[[EarnestError], None] = lambda error: None
        self.legacy_sse: LegacySseLink | None = None
        self.random = random
        self.loop: asyncio.AbstractEventLoop
        self._url = url
        self._origin, self._target = split(url)
        self._client = client
        self._log = log
        self._extra = configured(name, headers or {})
        self.excerpt: Callable[[bytes], str] = Redactor(headers or {}, scrub)
        self._tls = tls
        self._limits = limits
        self._pool_given = pool
        self._pool: Pool
        self._open_timeout = open_timeout
        self._session: str | None = None
        self._base = ACCEPT + self._extra
        self._leads: dict[tuple[str, str], Lead] = {}
        self._exchanges: set[HttpExchange] = set()
        self._standing: StandingStream | None = None
        self.numbers = itertools.count(1)
        """The ids of requests."""
        self._opened = False
        self._lost: EarnestError | None = None
        self._closing = False

    # Opening and closing.

    async def open(self) -> ServerHello:
        self.loop = asyncio.get_running_loop()
        self._pool = self._pool_given or Pool(self.loop, self._limits, self._tls)
        try:
            async with asyncio.timeout(self._open_timeout):
                self.hello = await self._settle()
        except TimeoutError:
            await self.close()
            raise self.error("E1206", f"said nothing within {self._open_timeout:g} s") from None
        except BaseException:
            await self.close()
            raise
        self._opened = True
        if self.legacy_sse is None:
            self._start_standing()
        return self.hello

    async def _settle(self) -> ServerHello:
        failures: list[str] = []
        bare: ServerHello | None = None
        said: list[str] = []
        statuses: set[int] = set()
        order = ["server/discover", "initialize"] if self._client.prefer_modern else ["initialize", "server/discover"]
        again = True
        while order:
            method = order.pop(0)
            outcome = await self._say(method)
            if isinstance(outcome, ServerHello):
                return outcome
            exchange, reply, error = outcome
            if error is not None:
                if error.code in UNREACHABLE:
                    raise error
                failures.append(f"{method}: {error.message}")
                said += [f"{method}: {error.said}"] if error.said else []
                if method == "initialize":
                    statuses.add(exchange.status)
                continue
            assert reply is not None
            failures.append(f"{method}: {how_answered(reply)}")
            said.append(f"{method}: {self.excerpt(reply.error or reply.result)}")
            if method == "server/discover" and again and offers_modern(reply):
                order.insert(0, method)  # refused, and yet it names the version it was asked with: once more, and no more
                again = False
                continue
            code = envelope.failure(reply.error).code if reply.error else 0
            hopeless = code in MODERN_ERRORS - {UNSUPPORTED_VERSION} or no_common_version(reply)
            if method == "server/discover" and hopeless:
                what = f"speaks none of the versions earnest knows ({'; '.join(failures)})"
                raise self.error("E1207", what, "; ".join(said))
            if method == "server/discover" and code == -32601 and exchange.status == 404:
                bare = ServerHello(modern=True, version=MODERN, capabilities=b'{"tools":{}}')
            if method == "initialize":
                statuses.add(exchange.status)
        if bare is not None:
            self._settle_modern()
            return bare
        if statuses & {400, 404, 405}:
            try:
                return await self._open_legacy_sse()
            except EarnestError as error:
                failures.append(f"HTTP+SSE: {error.message}")
                said += [f"HTTP+SSE: {error.said}"] if error.said else []
        unopened = self.error("E1207", f"could not be opened ({'; '.join(failures)})", "; ".join(said))
        unopened.remedy = IN_LOG if said else ""
        raise unopened

    async def _say(self, method: str) -> ServerHello | tuple[HttpExchange, Reply | None, EarnestError | None]:
        modern = method == "server/discover"
        waiter = Waiter(self.loop)
        params = own_meta(b"{}", self._client, MODERN) if modern else initialize_params(self._client)
        exchange = self._send(method, params, waiter, modern=modern)
        try:
            reply = await asyncio.wait_for(waiter.future, PROBE_S if modern else None)
        except EarnestError as error:
            return exchange, None, error
        except TimeoutError:
            exchange.cancel()
            return exchange, None, self.error("E1206", "did not answer the probe")
        hello = None
        if reply.result:
            hello = discovered(reply.result) if modern else initialized(reply.result)
        if hello is None:
            return exchange, reply, None
        if modern:
            self._settle_modern()
        else:
            await self._settle_legacy(hello, exchange)
        return hello

    def _settle_modern(self) -> None:
        self._base = ACCEPT + self._extra
        self._leads.clear()

    async def _settle_legacy(self, hello: ServerHello, exchange: HttpExchange) -> None:
        given = exchange.headers.get("mcp-session-id") if exchange.headers is not None else None
        self._session = session_id(given)
        if given is not None and self._session is None:
            raise self.error("E1233", "sent a session id that is not visible ASCII")
        own = [("MCP-Protocol-Version", hello.version)]
        if self._session is not None:
            own.append(("Mcp-Session-Id", self._session))
        self._base = ACCEPT + self._extra + fields(own)
        done: asyncio.Future[None] = self.loop.create_future()
        self._post(self._base, envelope.notification("notifications/initialized"), Quiet(self, done))
        await asyncio.wait((done,), timeout=PROBE_S)

    async def _open_legacy_sse(self) -> ServerHello:
        link = LegacySseLink(
            self.name,
            self._url,
            client=self._client,
            log=self._log,
            extra=self._extra,
            excerpt=self.excerpt,
            pool=self._pool,
            open_timeout=self._open_timeout,
        )
        link.on_notification = lambda message: self.on_notification(message)
        link.on_lost = lambda error: self.on_lost(error)
        hello = await link.open()
        self.legacy_sse = link
        return hello

    def _start_standing(self) -> None:
        if not self.hello.modern:
            self._standing = StandingStream(self, self._get, self._standing_legacy, gone=self._standing_gone)
        else:
            wanted = list_changes(self.hello.capabilities)
            if not wanted:
                return
            params = b'{"notifications":%b}' % msgspec.json.encode(dict.fromkeys(wanted, True))
            params = own_meta(params, self._client, self.hello.version)
            self._standing = StandingStream(self, lambda stream, last_id: self._listen(stream, params), self._standing_modern)
        self._standing.start()

    def _get(self, stream: ResponseHandler, last_id: bytes) -> Handle:
        headers = self._base.replace(ACCEPT, b"Accept: text/event-stream\r\n", 1)
        if last_id:
            headers += self._last_event_id(last_id)
        return self._pool.request(self._origin, "GET", self._target, headers, b"", stream, safe=True, max_body=_NO_LIMIT)

    def _last_event_id(self, last_id: bytes) -> bytes:
        try:
            return fields((("Last-Event-ID", last_id.decode("latin-1")),))
        except ValueError:
            return b""

    def _listen(self, stream: ResponseHandler, params: bytes) -> Handle:
        body = envelope.request(b"%d" % self.reserve(), "subscriptions/listen", params)
        return self._post(self._headers("subscriptions/listen", params), body, stream)

    def _standing_gone(self) -> None:
        if self.in_session:
            self.session_lost(self.error("E1232", "does not know this session any more"))

    def _standing_modern(self, message: Message) -> None:
        if message.kind == "notification" and message.method in WIDE:
            self.on_notification(message)
        elif message.method != "notifications/subscriptions/acknowledged" and message.kind != "response":
            self._drop(message)

    def _standing_legacy(self, message: Message) -> None:
        """Nothing on this stream says which call it belongs to: only a single call in flight can own a server's request."""
        if message.kind == "notification" and message.method != "notifications/progress":
            self.on_notification(message)
        elif message.kind == "request" and message.method == "ping":
            self.answer(envelope.result(message.id, b"{}"))
        elif message.kind == "request":
            if len(self._exchanges) == 1 and next(iter(self._exchanges)).asked(message):
                return
            why = "no call in flight that this request could belong to"
            self.answer(envelope.error(message.id, envelope.METHOD_NOT_FOUND, why))
        else:
            self._drop(message)

    def _drop(self, message: Message) -> None:
        self.report(f"E1236: dropped on the standing stream: {message.kind} {message.method[:100]}")

    @property
    def alive(self) -> bool:
        if self.legacy_sse is not None:
            return self.legacy_sse.alive
        return self._opened and self._lost is None and not self._closing

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._pool.settle()
        if self._standing is not None:
            self._standing.stop()
        if self.legacy_sse is not None:
            await self.legacy_sse.close()
        self._end_exchanges(self.error("E1204", "was closed"))
        if self._session is not None and self._lost is None:
            await self._delete()
        if self._pool_given is None:
            await self._pool.close()

    async def _delete(self) -> None:
        """End the session on the server (405 is its right); its answer is awaited for a moment only."""
        self._session, base = None, self._base
        done: asyncio.Future[None] = self.loop.create_future()
        self._pool.request(self._origin, "DELETE", self._target, base, b"", Farewell(done), head_s=2.0)
        await asyncio.wait((done,), timeout=2.0)

    # What is said to the server.

    def reserve(self) -> int:
        if self.legacy_sse is not None:
            return self.legacy_sse.reserve()
        return next(self.numbers)

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
        if self.legacy_sse is not None:
            return self.legacy_sse.call(method, params, handler, id=id)
        return self._send(method, params, handler, modern=self.hello.modern, id=id, headers=headers, named=named)

    def _send(
        self,
        method: str,
        params: bytes,
        handler: ExchangeHandler,
        *,
        modern: bool,
        id: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        named: str = "",
    ) -> HttpExchange:
        token = b"%d" % (self.reserve() if id is None else id)
        exchange = HttpExchange(self, token, method, handler, modern=modern)
        if self._lost is not None or self._closing:
            error = self._lost or self.error("E1204", "is not open")
            self.loop.call_soon(exchange.lose, error, False)
            return exchange
        try:
            lead = self._lead(method, named, params, headers) if modern else self._posting(self._base)
        except (EarnestError, ValueError) as reason:
            # A name or URI that no header can carry: nothing was sent.
            error = reason if isinstance(reason, EarnestError) else self.error("E1239", f"cannot be told: {reason}")
            self.loop.call_soon(exchange.lose, error, False)
            return exchange
        self._exchanges.add(exchange)
        body = envelope.request(token, method, params)
        exchange.handle = self._pool.send(lead, body, exchange, max_body=_NO_LIMIT)
        return exchange

    def _lead(self, method: str, named: str, params: bytes, headers: tuple[tuple[str, str], ...]) -> Lead:
        """The head of a modern request up to its length; calls of one object share theirs."""
        if headers or not named:
            return self._posting(self._headers(method, params, headers))
        key = (method, named)
        known = self._leads.get(key)
        if known is None:
            known = self._posting(self._headers(method, params))
            if len(self._leads) >= _LEADS:
                self._leads.clear()
            self._leads[key] = known
        return known

    def _posting(self, headers: bytes) -> Lead:
        return self._pool.lead(self._origin, "POST", self._target, headers)

    def _headers(self, method: str, params: bytes, headers: tuple[tuple[str, str], ...] = ()) -> bytes:
        row = lookup(method, "modern")
        parts = members(params) if params and row is not None and row.mcp_name else {}
        version = self.hello.version or MODERN
        return self._base + fields(generate(row, method, parts, version, forward=parameters(headers)))

    def _post(self, headers: bytes, body: bytes, handler: ResponseHandler) -> Handle:
        return self._pool.send(self._posting(headers), body, handler, max_body=_NO_LIMIT)

    async def ask(self, method: str, params: bytes = b"{}", timeout: float = 30.0) -> Reply:
        if self.legacy_sse is not None:
            return await self.legacy_sse.ask(method, params, timeout)
        if self.hello.modern:
            params = own_meta(params, self._client, self.hello.version)
        waiter = Waiter(self.loop)
        late = self.error("E1206", f"did not answer {method!r} within {timeout:g} s")
        return await waiter.within(self.call(method, params, waiter), timeout, late)

    def along(self, named: str, params: bytes) -> tuple[list[tuple[str, object, object, object]], bytes, Pool, Origin] | None:
        """For calls of one tool along a track (`net.tracks`): what it stands on that they go out as they do, the head of their
        requests up to its length, and where connections for them are. None where each needs a look."""
        if self.legacy_sse is not None or not self.hello.modern or not self.alive:
            return None
        grounds: list[tuple[str, object, object, object]] = [("is", self, "_lost", None), ("is", self, "_closing", False)]
        return grounds, self._lead("tools/call", named, params, ()).raw, self._pool, self._origin

    def adopt(self, number: int, handler: ExchangeHandler, connection: ClientConnection) -> HttpExchange:
        """A call of this number that went along a track goes on as an exchange like others."""
        exchange = HttpExchange(self, b"%d" % number, "tools/call", handler, modern=True)
        exchange.handle = connection.adopt(exchange, _NO_LIMIT)
        self._exchanges.add(exchange)
        return exchange

    def notify(self, method: str, params: bytes) -> None:
        if self.legacy_sse is not None:
            self.legacy_sse.notify(method, params)
        elif self.alive:
            try:
                encoded = self._headers(method, params) if self.hello.modern else self._base
            except (EarnestError, ValueError):
                return
            self._post(encoded, envelope.notification(method, params), Quiet(self))

    def respond(self, id: bytes, reply: Reply) -> None:
        if self.legacy_sse is not None:
            self.legacy_sse.respond(id, reply)
        else:
            self.answer(envelope.result(id, reply.result) if reply.result else envelope.error_raw(id, reply.error))

    # What exchanges need of their link.

    def answer(self, message: bytes) -> None:
        """Send an answer to a server's request; the modern era has none."""
        if self.alive and not self.hello.modern:
            self._post(self._base, message, Quiet(self))

    def finished(self, exchange: HttpExchange) -> None:
        """Told by an exchange that it is over."""
        self._exchanges.discard(exchange)

    def cancelled(self, exchange: HttpExchange, reason: str) -> None:
        """Told by an exchange that it was cancelled; in the modern era closing the stream says so."""
        if not exchange.modern and self.alive:
            words = b',"reason":%b' % string(reason) if reason else b""
            self.notify("notifications/cancelled", b'{"requestId":%b%b}' % (exchange.id, words))

    def resume(self, exchange: HttpExchange, last_id: bytes) -> Handle:
        """Take up the stream of an exchange where it broke off."""
        return self._get(exchange, last_id)

    def wide(self, message: Message) -> None:
        """A notification that belongs to no request came on a request's stream."""
        self.on_notification(message)

    def report(self, text: str) -> None:
        """A line for the log."""
        self._log(f"[{self.name}] {text}")

    def error(self, code: str, what: str, said: str = "") -> EarnestError:
        """An error of this server; `said`: in its own words."""
        return EarnestError(code, f"server {self.name!r} {what}", exit_code=3, said=said)

    @property
    def in_session(self) -> bool:
        """Whether a session id was given, so that 404 means that it is gone."""
        return self._session is not None

    def session_lost(self, error: EarnestError) -> None:
        """The server forgot the session: this link is over; its owner opens a new one."""
        if self._lost is None and not self._closing:
            self._lost = error
            if self._standing is not None:
                self._standing.stop()
            self._end_exchanges(error)
            self.on_lost(error)

    def _end_exchanges(self, error: EarnestError) -> None:
        for exchange in tuple(self._exchanges):
            if exchange.handle is not None:
                exchange.handle.cancel()
            exchange.lose(error, exchange.handle is not None and exchange.handle.sent)

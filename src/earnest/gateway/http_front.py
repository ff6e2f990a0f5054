"""Clients over HTTP: `/s/NAME/mcp`, `/mcp`, `/v/VIEW/mcp`, in both eras.

Every request is checked first (Host, Origin, token), then routed, then read. A modern request stands alone: its session is
found by who asks and where. A legacy one names the session that `initialize` made; the id is a lookup key and nothing else.
Answers are JSON as long as nothing has to be said before them, and an event stream from the first such message on.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from earnest.core.errors import EarnestError
from earnest.gateway.client import Client, Route
from earnest.gateway.session import Session
from earnest.net.checks import Refusal, check_host, check_origin, check_token
from earnest.net.message import Request
from earnest.net.responder import EventStream, Responder
from earnest.protocol import envelope, eras
from earnest.protocol.calls import read_params
from earnest.protocol.envelope import Limits, Message, WireError

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway

_PATH: Final = re.compile(r"/(?:s/(?P<server>[a-z0-9][a-z0-9_-]{0,63})/|v/(?P<view>[a-z0-9][a-z0-9_-]{0,63})/)?mcp\Z")
SESSION_HEADER: Final = "Mcp-Session-Id"
TOKEN_HEADER: Final = "X-Earnest-Token"
"""Carries the token of a client whose `Authorization` is meant for the server behind."""
MAX_SESSIONS: Final = 4096
IDLE_S: Final = 3600.0
_RECOGNISED: Final = "recognised"
_GONE: Final = Refusal(404, "this session is over; initialize again")


class HttpOutlet:
    """The way back for one request over HTTP."""

    __slots__ = ("_headers", "_modern", "_responder", "_stream")

    def __init__(self, responder: Responder, modern: bool) -> None:
        self._responder = responder
        self._modern = modern
        self._stream: EventStream | None = None
        self._headers: tuple[tuple[str, str], ...] = ()

    def with_session(self, id: str) -> None:
        """Tell the client the id of its session with the answer."""
        self._headers = ((SESSION_HEADER, id),)

    def send(self, message: bytes) -> None:
        if self._stream is None:
            self._stream = self._responder.stream(200, self._headers)
        self._stream.event(message)

    def finish(self, message: bytes, status: int = 200) -> None:
        if self._stream is not None:
            self._stream.event(message)
            self._stream.close()
        elif not self._responder.started:
            self._responder.json(status if self._modern else 200, message, self._headers)

    def abandon(self) -> None:
        if self._stream is not None:
            self._stream.close()
        elif not self._responder.started:
            self._responder.empty(202)


class _HttpTransport:
    """A session's place for what belongs to no request: the legacy GET stream, if the client opened one."""

    def __init__(self) -> None:
        self.stream: EventStream | None = None

    def notify(self, message: bytes) -> None:
        if self.stream is not None:
            self.stream.event(message)

    def begin(self, id: bytes) -> None:
        pass


class _Entry:
    __slots__ = ("session", "transport", "used")

    def __init__(self, session: Session, transport: _HttpTransport, used: float) -> None:
        self.session = session
        self.transport = transport
        self.used = used


class HttpFront:
    """All clients over HTTP of one gateway. `handle` is the listener's handler."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        tokens: Mapping[bytes, str],
        hosts: frozenset[str],
        origins: frozenset[str],
        limits: Limits,
        client_of: Callable[[str, Request], Client],
        recognise: Callable[[Request], Awaitable[None]],
        new_id: Callable[[], str],
    ) -> None:
        """`tokens`: digest of each token to its client's name. `client_of`: who a named client on a connection is, once
        `recognise` has looked at the connection."""
        self._gateway = gateway
        self._tokens = tokens
        self.hosts = hosts
        self._origins = origins
        self._limits = limits
        self._client_of = client_of
        self._recognise = recognise
        self._new_id = new_id
        self._legacy: dict[str, _Entry] = {}
        self._modern: dict[tuple[object, ...], _Entry] = {}
        self._requests = 0

    def handle(self, request: Request, responder: Responder) -> None:
        """Answer one HTTP request."""
        refusal = check_host(request.header("host"), self.hosts) or check_origin(request.header("origin"), self._origins)
        if refusal is not None:
            responder.refuse(refusal)
            return
        own = request.header(TOKEN_HEADER)
        name = check_token(f"Bearer {own}" if own is not None else request.header("authorization"), self._tokens)
        if isinstance(name, Refusal):
            responder.refuse(name)
            return
        route = self._route(request)
        if isinstance(route, Refusal):
            responder.refuse(route)
            return
        if _RECOGNISED in request.connection.state:
            self._serve(request, responder, name, route)
        else:
            self._gateway.spawn(self._serve_after_look(request, responder, name, route))

    async def _serve_after_look(self, request: Request, responder: Responder, name: str, route: Route) -> None:
        """The first request of a connection: who sent it is found out before it counts for anyone."""
        try:
            await self._recognise(request)
            request.connection.state[_RECOGNISED] = True
            self._serve(request, responder, name, route)
        except Exception:
            if not responder.started:
                responder.refuse(Refusal(500, "earnest failed; see daemon.log"))
            raise

    def _serve(self, request: Request, responder: Responder, name: str, route: Route) -> None:
        if request.method == "POST":
            self._post(request, responder, name, route)
        elif request.method == "GET":
            self._get(request, responder, name, route)
        elif request.method == "DELETE":
            self._delete(request, responder, name, route)
        else:
            responder.empty(405, (("Allow", "POST, GET, DELETE"),))

    def _route(self, request: Request) -> Route | Refusal:
        found = _PATH.match(request.path)
        if found is None:
            return Refusal(404, "there is nothing here; try /mcp, /s/NAME/mcp or /v/VIEW/mcp")
        # Several such fields come joined by commas; one that narrows is enough.
        words = (request.header("x-mcp-readonly") or "").casefold().split(",")
        read_only = any(word.strip() in ("true", "1", "yes") for word in words)
        if found["server"] is not None:
            if not self._gateway.catalogs.configured(found["server"]):
                broken = self._gateway.catalogs.broken.get(found["server"])
                why = f" that can be started: {broken.message}" if broken is not None else ""
                return Refusal(404, f"there is no server {found['server']!r}{why}")
            return Route("server", found["server"], read_only)
        if found["view"] is not None:
            if found["view"] not in self._gateway.views:
                return Refusal(404, f"there is no view {found['view']!r}")
            return Route("view", found["view"], read_only)
        return Route("all", "", read_only)

    # POST

    def _post(self, request: Request, responder: Responder, name: str, route: Route) -> None:
        kind = (request.header("content-type") or "").partition(";")[0].strip().casefold()
        if kind != "application/json":
            responder.refuse(Refusal(415, "the body must be application/json"))
            return
        accept = request.header("accept")
        if not (_accepts(accept, "application/json") and _accepts(accept, "text/event-stream")):
            responder.refuse(Refusal(406, "Accept must name application/json and text/event-stream"))
            return
        try:
            message = envelope.parse(request.body, self._limits)
            modern = self._is_modern(request, message)
        except WireError as error:
            responder.json(error.http_status, error.answer())
            return
        client = self._client_of(name, request)
        try:
            if modern:
                self._post_modern(request, responder, client, route, message)
            else:
                self._post_legacy(request, responder, client, route, message)
        except EarnestError as error:
            responder.json(503, envelope.error(message.id, -31003, error.message))

    def _is_modern(self, request: Request, message: Message) -> bool:
        version = request.header("mcp-protocol-version")
        if message.kind == "request" and message.method == "initialize":
            return False
        if version in eras.MODERN_VERSIONS:
            return True
        if message.kind == "request":
            params = read_params(message.params)
            if message.method == "server/discover" or eras.is_modern(params):
                return True
        if version is not None and version not in eras.LEGACY_VERSIONS:
            # A version nobody speaks: the answer names those that are spoken.
            raise eras.unsupported(version[:64], message.id)
        return False

    def _post_modern(self, request: Request, responder: Responder, client: Client, route: Route, message: Message) -> None:
        if responder.gone:
            return  # it went away while it was looked at, and that cancels
        outlet = HttpOutlet(responder, True)
        if message.kind != "request":
            responder.empty(202)
            return
        try:
            facts = eras.modern_meta(read_params(message.params), message.id)
        except WireError as error:
            outlet.finish(error.answer(), error.http_status)
            return
        forwarded = self._forwarded(request, route)
        key = (client, route, facts.capabilities, tuple(forwarded.items()))
        entry = self._modern.get(key)
        if entry is None:
            entry = self._enter(client, route, modern=True)
            entry.session.forwarded = forwarded
            entry.session.capabilities = facts.capabilities
            self._modern[key] = entry
        entry.used = self._gateway.now()
        session = entry.session
        fields = tuple((n, v) for n, v in request.headers if n.startswith("mcp-"))
        # Ids are the client's own and many clients may share a session here: each request gets a key of its own.
        self._requests += 1
        internal = b"%d %b" % (self._requests, message.id)
        request.on_disconnect(lambda: session.vanished(internal))
        session.handle(message, outlet, fields, as_id=internal)

    def _post_legacy(self, request: Request, responder: Responder, client: Client, route: Route, message: Message) -> None:
        id = request.header(SESSION_HEADER)
        outlet = HttpOutlet(responder, False)
        if message.kind == "request" and message.method == "initialize":
            entry = self._enter(client, route, modern=False)
            entry.session.forwarded = self._forwarded(request, route)
            fresh = secrets.token_urlsafe(24)
            self._legacy[fresh] = entry
            outlet.with_session(fresh)
        else:
            if id is None:
                if message.kind == "request" and message.method == "ping":
                    outlet.finish(envelope.result(message.id, b"{}"))
                    return
                responder.refuse(Refusal(400, f"{SESSION_HEADER} is missing; initialize first"))
                return
            found = self._legacy.get(id)
            if found is None or not self._may_use(found, request, client.name, route):
                responder.refuse(_GONE)
                return
            entry = found
            if route.read_only and not entry.session.route.read_only:
                entry.session.narrow(route)
        entry.used = self._gateway.now()
        entry.session.handle(message, outlet)
        if message.kind != "request":
            responder.empty(202)

    def _forwarded(self, request: Request, route: Route) -> dict[str, str]:
        """What of the request's headers the operator lets through to the route's server (`forward_headers`)."""
        if route.kind != "server":
            return {}
        settings = self._gateway.settings.servers.get(route.name)
        names = settings.forward_headers if settings is not None else ()
        return {name: value for name in names if (value := request.header(name)) is not None}

    def _enter(self, client: Client, route: Route, *, modern: bool) -> _Entry:
        if len(self._legacy) + len(self._modern) >= MAX_SESSIONS:
            self.expire(0.0 if len(self._legacy) + len(self._modern) >= 2 * MAX_SESSIONS else IDLE_S / 60)
            if len(self._legacy) + len(self._modern) >= 2 * MAX_SESSIONS:
                raise EarnestError("E1705", f"too many sessions (limit {2 * MAX_SESSIONS})")
        transport = _HttpTransport()
        session = Session(self._gateway, client, route, transport, id=self._new_id(), modern=modern)
        session.over_http = True
        self._gateway.join(session)
        return _Entry(session, transport, self._gateway.now())

    def _may_use(self, entry: _Entry, request: Request, name: str, route: Route) -> bool:
        """Whether a session is the one this client began on this route (narrowed or not)."""
        held = entry.session
        same_place = (held.route.kind, held.route.name) == (route.kind, route.name)
        return same_place and held.client == self._client_of(name, request)

    # GET, DELETE

    def _get(self, request: Request, responder: Responder, name: str, route: Route) -> None:
        entry = self._legacy.get(request.header(SESSION_HEADER) or "")
        if entry is None or not self._may_use(entry, request, name, route):
            responder.empty(405, (("Allow", "POST"),)) if request.header(SESSION_HEADER) is None else responder.refuse(_GONE)
            return
        if not _accepts(request.header("accept") or "", "text/event-stream"):
            responder.refuse(Refusal(406, "this answers with text/event-stream"))
            return
        if entry.transport.stream is not None and not entry.transport.stream.gone:
            entry.transport.stream.close()
        stream = entry.transport.stream = responder.stream(200)

        def left() -> None:
            if entry.transport.stream is stream:
                entry.transport.stream = None

        request.on_disconnect(left)

    def _delete(self, request: Request, responder: Responder, name: str, route: Route) -> None:
        id = request.header(SESSION_HEADER)
        if id is None:
            responder.refuse(Refusal(400, f"{SESSION_HEADER} is missing"))
            return
        entry = self._legacy.get(id)
        if entry is None or not self._may_use(entry, request, name, route):
            responder.refuse(_GONE)
            return
        del self._legacy[id]
        self._leave(entry)
        responder.empty(200)

    def expire(self, idle_s: float = IDLE_S) -> None:
        """Forget sessions that nobody used for so long and that have nothing under way."""
        limit = self._gateway.now() - idle_s
        for legacy in [k for k, e in self._legacy.items() if self._idle(e, limit)]:
            self._leave(self._legacy.pop(legacy))
        for modern in [k for k, e in self._modern.items() if self._idle(e, limit)]:
            self._leave(self._modern.pop(modern))

    def _idle(self, entry: _Entry, limit: float) -> bool:
        stream = entry.transport.stream
        streaming = stream is not None and not stream.gone
        return entry.used <= limit and not entry.session.relays and not entry.session.listening and not streaming

    def _leave(self, entry: _Entry) -> None:
        if entry.transport.stream is not None:
            entry.transport.stream.close()
        entry.session.close()


def _accepts(accept: str | None, kind: str) -> bool:
    """Whether a request takes answers of a media type (RFC 9110 12.5.1); one without `Accept` takes any."""
    if accept is None:
        return True
    for item in accept.split(","):
        media, *parameters = (part.strip().casefold() for part in item.split(";"))
        if media in (kind, kind.partition("/")[0] + "/*", "*/*"):
            return not any(re.fullmatch(r"q=0(?:\.0*)?", one) for one in parameters)
    return False

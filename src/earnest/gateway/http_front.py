"""Clients over HTTP: `/s/NAME/mcp`, `/mcp`, `/v/VIEW/mcp`, in both eras.

Every request is checked first (Host, Origin, token), then routed, then read. A modern request stands alone: its session is
found by who asks and where. A legacy one names the session that `initialize` made; the id is a lookup key and nothing else.
Answers are JSON as long as nothing has to be said before them, and an event stream from the first such message on.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from earnest.config.settings import Settings
from earnest.core.errors import EarnestError
from earnest.gateway.client import Client, Route
from earnest.gateway.resumable import ResumableOutlet, Streams
from earnest.gateway.session import Session
from earnest.net.checks import Refusal, bearer, check_host, check_origin, check_token, token_digest
from earnest.net.message import Head, Request
from earnest.net.responder import EventStream, Responder
from earnest.net.tracks import Ground
from earnest.protocol import envelope, eras, headers
from earnest.protocol.calls import Metas, read_params
from earnest.protocol.envelope import Limits, Message, WireError
from earnest.protocol.headers import Lines
from earnest.protocol.salvage import salvage

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.net._tracks import Trip

_PATH: Final = re.compile(r"/(?:s/(?P<server>[a-z0-9][a-z0-9_-]{0,63})/|v/(?P<view>[a-z0-9][a-z0-9_-]{0,63})/)?mcp\Z")
SESSION_HEADER: Final = "Mcp-Session-Id"
TOKEN_HEADER: Final = "X-Earnest-Token"
"""Carries the token of a client whose `Authorization` is meant for the server behind."""
IDLE_S: Final = 3600.0
_RECOGNISED: Final = "recognised"
_GONE: Final = Refusal(404, "this session is over; initialize again")


class HttpOutlet:
    """The way back for one modern request over HTTP; see `ResumableOutlet` for legacy ones."""

    __slots__ = ("_responder", "_stream")

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self._stream: EventStream | None = None

    def send(self, message: bytes) -> None:
        if self._stream is None:
            self._stream = self._responder.stream(200)
        self._stream.event(message)

    def part(self) -> None:
        pass

    def finish(self, message: bytes, status: int = 200) -> None:
        if self._stream is not None:
            self._stream.event(message)
            self._stream.close()
        elif not self._responder.started:
            self._responder.json(status, message)

    def abandon(self) -> None:
        if self._stream is not None:
            self._stream.close()
        elif not self._responder.started:
            self._responder.empty(202)


class _HttpTransport:
    """A session's place for what belongs to no request: the legacy GET stream, if the client opened one."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.opened = False
        """A client listened once: what it misses while it is away is kept for it."""

    def notify(self, message: bytes) -> None:
        if self.opened:
            self.streams.standing.send(message)

    def begin(self, id: bytes) -> None:
        pass


class _Entry:
    __slots__ = ("gone", "session", "transport", "used")

    def __init__(self, session: Session, transport: _HttpTransport, used: float) -> None:
        self.gone = False
        self.session = session
        self.transport = transport
        self.used = used


class _Known:
    """What a request's head says here, worked out once for all requests with the same bytes (`Head.memo`).

    Who it is and where it leads is asked of tokens and routes again each time: those may be gone."""

    __slots__ = (
        "digest",
        "fields",
        "forwarded",
        "hosts",
        "misfit",
        "name",
        "origins",
        "prefers_stream",
        "route",
        "settings",
        "version",
    )  # fmt: skip

    def __init__(self, name: str, digest: bytes, names: tuple[frozenset[str], frozenset[str]], route: Route) -> None:
        """`names`: the hosts and origins it was checked against."""
        self.name = name
        self.digest = digest
        self.hosts, self.origins = names
        self.route = route
        self.version: str | None = None
        self.prefers_stream = False
        """The client named event streams before JSON."""
        self.misfit: Refusal | None = None
        """Why a POST with such a head is refused before its body is looked at."""
        self.fields = Lines()
        self.settings: Settings | None = None
        """The settings that `forwarded` was made under."""
        self.forwarded: tuple[tuple[str, str], ...] = ()


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
        sessions: int,
        client_of: Callable[[str, Request], Client],
        recognise: Callable[[Request], Awaitable[None]],
        new_id: Callable[[], str],
    ) -> None:
        """`tokens`: digest of each token to its client's name. `sessions`: how many there may be. `client_of`: who a named
        client on a connection is, once `recognise` has looked at the connection."""
        self._gateway = gateway
        self._tokens = tokens
        self.hosts = hosts
        self.origins = origins
        self._limits = limits
        self._most = sessions
        self._client_of = client_of
        self._recognise = recognise
        self._new_id = new_id
        self._legacy: dict[str, _Entry] = {}
        self._modern: dict[tuple[object, ...], _Entry] = {}
        self._metas = Metas()
        self._requests = 0

    def handle(self, request: Request, responder: Responder) -> None:
        """Answer one HTTP request."""
        known: _Known | None = request.head.memo
        if known is None or not self._still(known):
            read = self._read(request)
            if isinstance(read, Refusal):
                responder.refuse(read)
                return
            known = request.head.memo = read
        if _RECOGNISED in request.connection.state:
            self._serve(request, responder, known)
        else:
            self._gateway.spawn(self._serve_after_look(request, responder, known))

    def _still(self, known: _Known) -> bool:
        """Whether what was read of a head still holds: the listener's names, the token, the route's server or view."""
        if known.hosts is not self.hosts or known.origins is not self.origins or self._tokens.get(known.digest) != known.name:
            return False
        route = known.route
        if route.kind == "server":
            return self._gateway.catalogs.configured(route.name)
        return route.kind == "all" or route.name in self._gateway.views

    def _read(self, request: Request) -> _Known | Refusal:
        """Check a head and read what it says."""
        refusal = check_host(request.header("host"), self.hosts) or check_origin(request.header("origin"), self.origins)
        if refusal is not None:
            return refusal
        own = request.header(TOKEN_HEADER)
        authorization = f"Bearer {own}" if own is not None else request.header("authorization")
        name = check_token(authorization, self._tokens)
        if isinstance(name, Refusal):
            return name
        route = self._route(request)
        if isinstance(route, Refusal):
            return route
        known = _Known(name, token_digest(bearer(authorization) or ""), (self.hosts, self.origins), route)
        accept = request.header("accept")
        if request.headers.media_type != "application/json":
            known.misfit = Refusal(415, "the body must be application/json")
        elif not _readable(request):
            known.misfit = Refusal(415, "the body must be UTF-8 without a Content-Encoding")
        elif not (_accepts(accept, "application/json") and _accepts(accept, "text/event-stream")):
            known.misfit = Refusal(406, "Accept must name application/json and text/event-stream")
        known.version = request.header("mcp-protocol-version")
        known.prefers_stream = (accept or "").casefold().partition("application/json")[0].find("text/event-stream") >= 0
        known.fields = Lines((n, v) for n, v in request.headers if n.startswith("mcp-"))
        return known

    async def _serve_after_look(self, request: Request, responder: Responder, known: _Known) -> None:
        """The first request of a connection: who sent it is found out before it counts for anyone."""
        try:
            await self._recognise(request)
            request.connection.state[_RECOGNISED] = True
            self._serve(request, responder, known)
        except Exception:
            if not responder.started:
                responder.refuse(Refusal(500, "earnest failed; see daemon.log"))
            raise

    def _serve(self, request: Request, responder: Responder, known: _Known) -> None:
        if request.method == "POST":
            self._post(request, responder, known)
        elif request.method == "GET":
            self._get(request, responder, known.name, known.route)
        elif request.method == "DELETE":
            self._delete(request, responder, known.name, known.route)
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

    def _post(self, request: Request, responder: Responder, known: _Known) -> None:
        if known.misfit is not None:
            responder.refuse(known.misfit)
            return
        try:
            message = envelope.parse(request.body, self._limits)
            modern = self._is_modern(known.version, message)
        except WireError as error:
            whose = salvage(request.body)
            if whose is not None and whose.kind == "request":
                error.id = error.id or whose.id  # this response is that request's alone
            responder.json(error.http_status, error.answer())
            return
        try:
            client = self._client_of(known.name, request)
            if modern:
                self._post_modern(request, responder, client, known, message)
            else:
                self._post_legacy(request, responder, client, known, message)
        except EarnestError as error:
            responder.json(503, envelope.error(message.id, -31003, error.message))

    def _is_modern(self, version: str | None, message: Message) -> bool:
        if message.kind == "request" and message.method == "initialize":
            # What says itself that it is of the modern era is told that its era has no such method.
            return eras.is_modern(read_params(message.params))
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

    def _post_modern(self, request: Request, responder: Responder, client: Client, known: _Known, message: Message) -> None:
        if responder.gone:
            return  # it went away while it was looked at, and that cancels
        outlet = HttpOutlet(responder)
        if message.kind != "request":
            responder.empty(202)
            return
        try:
            params = read_params(message.params)
            meta = self._metas.read(params)
            facts = eras.modern_facts(meta, params, message.id)
        except WireError as error:
            if error.rpc_code == eras.UNSUPPORTED_VERSION and known.version in eras.MODERN_VERSIONS:
                error = headers.mismatch(f"{headers.VERSION} does not repeat the protocol version of the body", message.id)
            outlet.finish(error.answer(), error.http_status)
            return
        settings = self._gateway.settings
        if known.settings is not settings:
            known.settings, known.forwarded = settings, tuple(self._forwarded(request, known.route).items())
        key = (client, known.route, facts.capabilities, known.forwarded)
        entry = self._modern.get(key)
        if entry is None:
            entry = self._enter(client, known.route, modern=True)
            entry.session.forwarded = dict(known.forwarded)
            entry.session.capabilities = facts.capabilities
            self._modern[key] = entry
        entry.used = self._gateway.now()
        session = entry.session
        internal = self._own_key(message.id)
        request.on_disconnect(partial(session.vanished, internal))
        session.handle(message, outlet, known.fields, as_id=internal, params=params, meta=meta)
        relay, layer = session.relays.get(internal), self._gateway.layer
        if relay is not None and layer is not None:
            layer.lay(relay, request.head, request.connection, _Way(self, known, entry, request.head))

    def _own_key(self, id: bytes) -> bytes:
        """Ids are the client's own and many clients may share a session here: each request gets a key of its own."""
        self._requests += 1
        return b"%d %b" % (self._requests, id)

    def _post_legacy(self, request: Request, responder: Responder, client: Client, known: _Known, message: Message) -> None:
        id, route = request.header(SESSION_HEADER), known.route
        fresh = ""
        if message.kind == "request" and message.method == "initialize":
            entry = self._enter(client, route, modern=False)
            entry.session.forwarded = self._forwarded(request, route)
            fresh = secrets.token_urlsafe(24)
            self._legacy[fresh] = entry
        else:
            if id is None:
                if message.kind == "request" and message.method == "ping":
                    responder.json(200, envelope.result(message.id, b"{}"))
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
        prime = not fresh and entry.session.version == eras.LEGACY
        outlet = ResumableOutlet(responder, entry.transport.streams, prime=prime, prefers_stream=known.prefers_stream)
        if fresh:
            outlet.with_header(SESSION_HEADER, fresh)
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
        if len(self._legacy) + len(self._modern) >= self._most // 2:
            self.expire(0.0 if len(self._legacy) + len(self._modern) >= self._most else IDLE_S / 60)
            if len(self._legacy) + len(self._modern) >= self._most:
                raise EarnestError("E1705", f"too many sessions ([limits] sessions = {self._most})")
        transport = _HttpTransport(Streams(self._gateway.loop.call_later))
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
        last_event_id = request.header("last-event-id")
        found = entry.transport.streams.find(last_event_id) if last_event_id is not None else None
        if last_event_id is not None and found is None:
            responder.refuse(Refusal(400, "no stream can be taken up again behind this event"))
            return
        standing = entry.transport.streams.standing
        stream, after = found or (standing, standing.newest)
        if stream is standing:
            entry.transport.opened = True
        prime = found is None and entry.session.version == eras.LEGACY
        stream.attach(responder.stream(200), after, prime=prime)

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
        if self._gateway.layer is not None:
            self._gateway.layer.settle()  # what is on a track is under way too
        limit = self._gateway.now() - idle_s
        for legacy in [k for k, e in self._legacy.items() if self._idle(e, limit)]:
            self._leave(self._legacy.pop(legacy))
        for modern in [k for k, e in self._modern.items() if self._idle(e, limit)]:
            self._leave(self._modern.pop(modern))

    def _idle(self, entry: _Entry, limit: float) -> bool:
        streaming = entry.transport.streams.standing.open
        return entry.used <= limit and not entry.session.relays and not entry.session.listening and not streaming

    def _leave(self, entry: _Entry) -> None:
        entry.gone = True
        entry.session.close()
        entry.transport.streams.close()


class _Way:
    """Where tracks of one head and session begin (`tracks.Way`)."""

    def __init__(self, front: HttpFront, known: _Known, entry: _Entry, head: Head) -> None:
        self._front = front
        self._known = known
        self._entry = entry
        self._head = head

    def grounds(self) -> list[Ground]:
        known, front, tokens = self._known, self._front, self._front._tokens
        return [
            ("is", front, "hosts", known.hosts),
            ("is", front, "origins", known.origins),
            ("item", tokens, known.digest, tokens[known.digest]),
            ("is", self._entry, "gone", False),
        ]

    def place(self) -> _Entry:
        return self._entry

    def used(self) -> None:
        self._entry.used = self._front._gateway.now()

    def take_up(self, trip: Trip) -> tuple[bytes, HttpOutlet]:
        request, responder = trip.connection.take_up(trip.body, self._head)
        kept = self._front._own_key(trip.id)
        request.on_disconnect(partial(self._entry.session.vanished, kept))
        return kept, HttpOutlet(responder)


def _readable(request: Request) -> bool:
    """Whether a body is as it looks: another coding or character set would be read by earnest as something else."""
    coding = (request.header("content-encoding") or "identity").strip().casefold()
    for part in (request.header("content-type") or "").split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().casefold() == "charset" and value.strip().strip('"').casefold() not in ("utf-8", "utf8"):
            return False
    return coding == "identity"


def _accepts(accept: str | None, kind: str) -> bool:
    """Whether a request takes answers of a media type (RFC 9110 12.5.1); one without `Accept` takes any."""
    if accept is None:
        return True
    for item in accept.split(","):
        media, *parameters = (part.strip().casefold() for part in item.split(";"))
        if media in (kind, kind.partition("/")[0] + "/*", "*/*"):
            return not any(re.fullmatch(r"q=0(?:\.0*)?", one) for one in parameters)
    return False

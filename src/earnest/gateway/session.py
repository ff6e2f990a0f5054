"""One client's session, in one era: what it may see, what it says, what it is told.

A session is a protocol session of the client's side (a pipe, an `Mcp-Session-Id`, or in the modern era all requests of one
client in one place). It is no conversation: which conversation a call belongs to is its key's to say. A session knows the
servers of its route, the calls in flight and the questions that wait for the client's answer; decisions are made elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.flow import Key
from earnest.gateway import lifecycle, lists, resolving
from earnest.gateway.client import Client, Route
from earnest.gateway.outlet import Outlet, Transport
from earnest.gateway.relay import Relay
from earnest.gateway.served import Served
from earnest.gateway.spoken import CONVERSATION_META
from earnest.pdp.catalog import Tool
from earnest.protocol import bridge, calls, envelope, eras, headers, methods
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.methods import Method
from earnest.upstream.base import Link
from earnest.upstream.http import HttpLink
from earnest.upstream.opening import LEGACY, MODERN, OWN_INFO, ClientHello, string

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway

MAX_HANDLE: Final = 200
HeaderFields = tuple[tuple[str, str], ...]


class Session:
    """See the module. `modern` says which era; `id` is unique in this daemon and known to nobody outside."""

    def __init__(
        self,
        gateway: Gateway,
        client: Client,
        route: Route,
        transport: Transport,
        *,
        id: str,
        modern: bool,
        own: Callable[[bytes], Served] | None = None,
    ) -> None:
        """`own`: makes the server that came with the session itself (`earnest stdio NAME -- COMMAND`), for given
        capabilities."""
        self.gateway = gateway
        self.client = client
        self.route = route
        self.transport = transport
        self.id = id
        self.modern = modern
        self.version = MODERN if modern else LEGACY
        self.capabilities = b"{}"
        self.info = OWN_INFO
        self.log_level = ""
        """What a legacy client wants to hear of servers' logs; empty until it said so."""
        self.forwarded: Mapping[str, str] = {}
        """Headers of the client's own that the operator lets through to the server of its route."""
        self.ready = modern
        """The client may be sent notifications (legacy: it said `initialized`)."""
        self.relays: dict[bytes, Relay] = {}
        self.listening: dict[bytes, lists.Listening] = {}
        self._own = own
        self._own_known: tuple[tuple[object, bytes], Served] | None = None
        self._servers_known: tuple[tuple[object, ...], list[Served]] | None = None
        self._metas = calls.Metas()
        self._waiting: dict[bytes, Callable[[Message], None]] = {}
        self._pending: dict[bytes, tuple[asyncio.Task[None], Outlet]] = {}
        self._asked = 0
        self.over_http = False
        self.missed: set[str] = set()
        """Servers that a list left out because they were not ready; the client hears when they are."""

    # messages of the client

    def handle(
        self,
        message: Message,
        outlet: Outlet,
        fields: headers.Lines | None = None,
        as_id: bytes = b"",
        params: dict[str, bytes] | None = None,
        meta: calls.Meta | None = None,
    ) -> None:
        """Take one message. `fields`: the `Mcp-*` headers it came with, None where its era or transport has none. `as_id`:
        what the request is kept under where its own id may not be unique. `params`, `meta`: the request's, where they were read
        already. Whatever is wrong is answered, never raised."""
        if message.kind == "response" or message.kind == "error":
            waiter = self._waiting.pop(message.id, None)
            if waiter is not None:
                waiter(message)
            return
        method = methods.lookup(message.method, "modern" if self.modern else "legacy")
        if message.kind == "notification":
            if method is not None and not method.request:
                self._notified(message)
            return
        try:
            if method is None or not method.request:
                raise WireError(envelope.METHOD_NOT_FOUND, f"unknown method {message.method[:100]!r}", http_status=404)
            kept = as_id or message.id
            if self.has_request(kept):
                raise WireError(envelope.INVALID_REQUEST, "this id is in use by another request")
            self.transport.begin(message.id)
            if not (self.modern or method.judged or method.kind == "task"):
                self._answer_itself(message, method, outlet, kept)
                return
            if params is None:
                params = calls.read_params(message.params)
            self._request(message, method, outlet, fields, kept, params, meta or self._metas.read(params))
        except WireError as error:
            outlet.finish(envelope.error(message.id, error.rpc_code, error.message, error.data), error.http_status)
        except EarnestError as error:
            outlet.finish(envelope.error(message.id, -31003, self.gateway.scrub(error.message)))

    def _request(
        self,
        message: Message,
        method: Method,
        outlet: Outlet,
        fields: headers.Lines | None,
        kept: bytes,
        params: dict[str, bytes],
        meta: calls.Meta,
    ) -> None:
        if self.modern:
            # Capabilities travel with each request; one without the required members is answered, not guessed at.
            facts = eras.modern_facts(meta, params, message.id)
            self.capabilities, self.info = facts.capabilities, facts.info or OWN_INFO
            if fields is not None and method.kind != "tool":
                fields.check(method, params, self.version, None, message.id)
        if self._answer_itself(message, method, outlet, kept):
            return
        if self.modern and ("requestState" in params or "inputResponses" in params):
            resume = self.gateway.suspended.resume
            if resume(self, message, method, outlet, fields, kept, params, meta.members):
                return
        if self.route.kind == "server":
            Relay(self.gateway, self, message, method, outlet, fields, kept, params, meta.members).begin()
        else:
            relay = Relay(self.gateway, self, message, method, outlet, fields, kept, params, meta.members)
            task = self.spawn(self._call_of_many(relay), message, outlet)
            self._pending[kept] = (task, outlet)
            task.add_done_callback(lambda _: self._pending.pop(kept, None))

    def _answer_itself(self, message: Message, method: Method, outlet: Outlet, kept: bytes) -> bool:
        """Answer what is no call of a server's; whether it was that."""
        if method.kind == "lifecycle":
            lifecycle.answer(self, message, outlet)
        elif method.kind == "list":
            self.spawn(lists.answer(self, message, method, outlet), message, outlet)
        elif method.name == "subscriptions/listen":
            lists.listen(self, message, outlet, kept)
        elif method.kind == "logging":
            lifecycle.set_level(self, message, outlet)
        elif method.kind == "resolve":
            self.spawn(resolving.answer(self, message, method, outlet), message, outlet)
        else:
            return False
        return True

    async def _call_of_many(self, relay: Relay) -> None:
        """A call on a route of several servers: whose it is, is known once the lists are that it depends on."""
        await lists.find(self, relay.method, calls.subject(relay.method, relay.members))
        relay.begin()

    def spawn(self, work: Coroutine[Any, Any, None], message: Message, outlet: Outlet) -> asyncio.Task[None]:
        """Answer a request in a task. Whatever goes wrong in it is answered too: nobody is left waiting."""

        async def guarded() -> None:
            try:
                await work
            except WireError as error:
                outlet.finish(envelope.error(message.id, error.rpc_code, error.message, error.data), error.http_status)
            except EarnestError as error:
                outlet.finish(envelope.error(message.id, -31003, self.gateway.scrub(error.message)))
            except Exception:
                outlet.finish(envelope.error(message.id, envelope.INTERNAL_ERROR, "earnest failed; see daemon.log"))
                raise

        task = self.gateway.spawn(guarded())
        task.add_done_callback(lambda _: work.close())  # it was never begun if the task was cancelled that early
        return task

    def _notified(self, message: Message) -> None:
        if message.method == "notifications/initialized":
            self.ready = True
        elif message.method == "notifications/cancelled":
            self._cancelled(message.params)
        elif message.method == "notifications/roots/list_changed":
            for link in self.gateway.links_of(self):
                if not link.hello.modern:
                    link.notify(message.method, message.params)

    def _cancelled(self, params: bytes) -> None:
        try:
            seen = canonical.members(params or b"{}")
        except EarnestError:
            return
        id = seen.get("requestId", b"")
        listening = self.listening.pop(id, None)
        if listening is not None:
            listening.end()
            return
        relay = self.relays.get(id)
        if relay is None:
            self._withdraw(id)
        else:
            reason = ""
            if seen.get("reason", b"")[:1] == b'"':
                reason = calls.text(seen, "reason")
            relay.cancel(reason)

    def _withdraw(self, kept: bytes) -> None:
        """Let go of a call whose server was still being looked for."""
        pending = self._pending.pop(kept, None)
        if pending is not None:
            task, outlet = pending
            task.cancel()
            outlet.abandon()

    def has_request(self, id: bytes) -> bool:
        """Whether a request is under way here under this id."""
        return id in self.relays or id in self.listening or id in self._pending

    def vanished(self, kept: bytes) -> None:
        """The client closed the connection of a modern request: that cancels it."""
        listening = self.listening.pop(kept, None)
        relay = self.relays.get(kept)
        if relay is not None:
            relay.cancel("the client closed the connection")
        elif listening is not None:
            listening.gone()
        else:
            self._withdraw(kept)

    # what the client looks at

    def narrow(self, route: Route) -> None:
        """A later request narrowed itself: so does the session, for good. Nothing widens it again."""
        self.route = route
        lists.changed(self, "notifications/tools/list_changed")

    def servers(self) -> list[Served]:
        """The servers of this session's route, in the configuration's order."""
        if self._own is not None:
            # Who it is, is read from files (whole packages): once for each configuration and set of capabilities.
            now = (self.gateway.catalogs_of(self.client), self.capabilities)
            if self._own_known is None or self._own_known[0] != now:
                self._own_known = (now, self._own(self.capabilities))
            return [self._own_known[1]]
        mark = self.gateway.servers_mark(self)
        if self._servers_known is None or self._servers_known[0] != mark:
            self._servers_known = (mark, self.gateway.servers_of(self))
        return self._servers_known[1]

    def sees(self, name: str) -> bool:
        """Whether a configured server of this name belongs to the session's route."""
        if self.route.kind == "view":
            only = self.gateway.views.servers(self.route.name)
            return not only or name in only
        return self.route.kind == "all" or name == self.route.name

    @property
    def has_own_server(self) -> bool:
        """Whether the session brought its server itself."""
        return self._own is not None

    def hello_for_servers(self) -> ClientHello:
        """What servers are told of this client."""
        version = LEGACY if self.modern else self.version
        crossing = bridge.client_capabilities_to(not self.modern, self.capabilities, self._carries)
        own = self.capabilities if self.modern else bridge.without_client_tasks(self.capabilities)
        return ClientHello(own, self.info, prefer_modern=self.modern, version=version, crossing=crossing)

    def resolve(self, method: Method, members: Mapping[str, bytes]) -> tuple[Served, str]:
        """The server and the object a call means, under the names this session was given. Raises `WireError`."""
        return lists.locate(self, method, calls.subject(method, members))

    def hidden(self, served: Served, tool: Tool) -> str:
        """Why a tool is not in this session's view, or empty."""
        return self.gateway.views.hidden(self.route, served.server, tool) or lists.unfit(self, served, tool)

    def key_for(self, meta: Mapping[str, bytes]) -> Key:
        """The conversation a request belongs to. A handle is the client's word: it can only narrow below the client's key, and
        starts with all that its parent saw."""
        key = self.client.key
        raw = meta.get(CONVERSATION_META, b"")
        if raw[:1] == b'"' and len(raw) <= MAX_HANDLE and len(key) < 4:
            return self.gateway.engine.conversations.narrowed(key, raw[1:-1].decode("utf-8", "replace"))
        return key

    def upstream_headers(self, relay: Relay, link: Link) -> HeaderFields:
        """The `Mcp-*` headers a modern server behind HTTP wants, made from the body; unknown `Mcp-Param-*` go on."""
        if not link.hello.modern or not isinstance(link, HttpLink) or relay.method.name != "tools/call":
            return ()
        declared = lists.declared(relay.tool)
        if not declared and not relay.forward:
            return ()
        made = headers.generate(relay.method, relay.method.name, relay.members, MODERN, declared, relay.forward)
        return tuple(field for field in made if field[0].lower().startswith("mcp-param-"))

    def client_facts(self) -> bridge.ClientFacts:
        """What a modern server is told of this client by the bridge."""
        capabilities = bridge.client_capabilities_to(True, self.capabilities, self._carries)
        return bridge.ClientFacts(capabilities, self.info, self.log_level)

    @property
    def _carries(self) -> bridge.Carries:
        """What is carried to a server of the other era: its questions too, inside a legacy client's call or as a modern one's
        result."""
        return bridge.Carries(asking=True, logging=True)

    # requests to the client (legacy era)

    def ask_client(self, method: str, params: bytes, outlet: Outlet, answered: Callable[[Message], None]) -> bytes:
        """Send a request inside `outlet`'s request; `answered` gets the response. Returns the id, for `forget`."""
        self._asked += 1
        id = string(f"earnest-{self.id}-{self._asked}")
        self._waiting[id] = answered
        outlet.send(envelope.request(id, method, params))
        return id

    def forget(self, id: bytes) -> None:
        """An answer to this request is no longer wanted."""
        self._waiting.pop(id, None)

    def server_request(self, relay: Relay, message: Message) -> bool:
        """A legacy server asks the client something inside a call; the answer is judged like any call."""
        if methods.lookup(message.method, "legacy", "server") is None:
            return False
        row = methods.answer(message.method)
        if row is None or not self.declared(message.method):
            return False
        if self.modern:
            return self.gateway.suspended.ask(relay, message, row)
        self.gateway.server_requests.forward(self, relay, message, row)
        return True

    def declared(self, method: str) -> bool:
        """Whether the client declared what a server's request needs."""
        needs = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}[method]
        try:
            return needs in canonical.members(self.capabilities)
        except EarnestError:
            return False

    # the end

    def end_subscriptions(self) -> None:
        """Answer every subscription: nothing more is told on it."""
        for listening in list(self.listening.values()):
            listening.end()
        self.listening.clear()

    def close(self) -> None:
        """The client is gone: what it waits for is cancelled, its links are closed."""
        self.ready = False
        for relay in list(self.relays.values()):
            relay.cancel("the client is gone")
        for task, outlet in list(self._pending.values()):
            task.cancel()
            if self.over_http:
                outlet.abandon()  # on a pipe it stays owed, see `Relay.interrupted`
        self._pending.clear()
        self.end_subscriptions()
        self._waiting.clear()
        self.gateway.forget(self)

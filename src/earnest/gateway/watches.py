"""Subscriptions to single resources, whichever eras client and server speak.

    client              server              what carries it
    legacy              legacy              `resources/subscribe` passes like any call
    legacy              modern              a `subscriptions/listen` for each resource, opened again when it ends
    modern              legacy              `resources/subscribe`, and `unsubscribe` with the last of its listeners
    modern              modern              one `subscriptions/listen` for all resources of the client's own

The URI of a subscription is chosen by the client and told to the server like that of a read, so each is judged as one
(`resources/subscribe`), also those that a modern client names in one `subscriptions/listen`; what may not be is left out of the
acknowledgement, as the specification has it for what is not honoured.

Sources: MCP 2025-11-25, "Resources"; 2026-07-28, "Subscriptions".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from earnest.core.canonical import build
from earnest.core.errors import EarnestError
from earnest.gateway import lists
from earnest.gateway.relay import Relay
from earnest.protocol import bridge, calls, envelope, methods, subscriptions
from earnest.protocol.calls import string
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.methods import Method
from earnest.protocol.subscriptions import UPDATED, Wanted
from earnest.upstream.base import Exchange, Link, Reply

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.gateway.lists import Listening
    from earnest.gateway.served import Served
    from earnest.gateway.session import Session

READY_S: Final = 10.0
"""Seconds that a server has to acknowledge a subscription."""
MOST: Final = 64
"""Subscriptions at modern servers that one session may have: each resource of a legacy client is one, and each
`subscriptions/listen` of a modern one."""
AT_ONCE: Final = 16
"""Resources of one `subscriptions/listen` that are judged at the same time."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


def _row(name: str, era: methods.Era) -> Method:
    row = methods.lookup(name, era)
    assert row is not None
    return row


_SUBSCRIBE: Final = _row("resources/subscribe", "legacy")
_LISTEN: Final = _row("subscriptions/listen", "modern")


class Watch:
    """One `subscriptions/listen` at a modern server (`ExchangeHandler`)."""

    def __init__(
        self,
        session: Session,
        link: Link,
        uris: tuple[str, ...],
        heard: Callable[[bytes], None],
        ready: Callable[[frozenset[str]], None],
        ended: Callable[[], None],
    ) -> None:
        """`ready` hears once which of the URIs the server honours; `heard` the params of each update; `ended` that no more
        will come."""
        self.link = link
        self._uris = frozenset(uris)
        self._heard = heard
        self._ready: Callable[[frozenset[str]], None] | None = ready
        self._ended = ended
        self._stopped = False
        facts = session.client_facts()
        if session.modern:
            facts = bridge.ClientFacts(session.capabilities, session.info)
        given = {"notifications": subscriptions.asking_for(Wanted(resources=uris))}
        params = bridge.params_to(True, _LISTEN, given, facts)
        self._timer = session.gateway.loop.call_later(READY_S, self._say, frozenset())
        self._exchange: Exchange = link.call("subscriptions/listen", params, self)

    def stop(self) -> None:
        """Nobody wants to hear any more."""
        if not self._stopped:
            self._stopped = True
            self._timer.cancel()
            self._exchange.cancel()

    def _say(self, honoured: frozenset[str]) -> None:
        ready, self._ready = self._ready, None
        self._timer.cancel()
        if ready is not None:
            ready(honoured)

    def message(self, message: Message) -> None:
        if message.method == subscriptions.ACKNOWLEDGED:
            self._say(self._uris & frozenset(subscriptions.honoured(message.params).resources))
        elif message.method == UPDATED and subscriptions.updated_uri(message.params) in self._uris:
            self._heard(message.params)

    def request(self, message: Message) -> bool:
        return False

    def reply(self, reply: Reply) -> None:
        self._over()

    def parted(self) -> None:
        """Streams of this era are not taken up again."""

    def lost(self, error: EarnestError, sent: bool) -> None:
        self._over()

    def _over(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._ready is not None:
            self._say(frozenset())
        else:
            self._ended()


class _Told:
    """Where the answer to a subscription of the gateway's own ends up (`Outlet`)."""

    def __init__(self, told: asyncio.Future[bool]) -> None:
        self._told = told

    def _set(self, value: bool) -> None:
        if not self._told.done():
            self._told.set_result(value)

    def send(self, message: bytes) -> None:
        """There is nobody to be told on the way."""

    def part(self) -> None:
        """The answer is waited for."""

    def finish(self, message: bytes, status: int = 200) -> None:
        self._set(envelope.parse(message).kind == "response")

    def abandon(self) -> None:
        self._set(False)


class _Subscribe(Relay):
    """One resource of a modern client's `subscriptions/listen`, judged as the subscription it is."""

    __slots__ = ("told",)

    def __init__(self, session: Session, uri: str, meta: Mapping[str, bytes], number: int) -> None:
        self.told: asyncio.Future[bool] = session.gateway.loop.create_future()
        params = {"uri": string(uri)}
        message = Message("request", b"0", _SUBSCRIBE.name, build(params))
        own = {name: raw for name, raw in meta.items() if name != "progressToken"}
        kept = b"subscribe %d" % number
        super().__init__(session.gateway, session, message, _SUBSCRIBE, _Told(self.told), None, kept, params, own)

    def send(self) -> None:
        link = self._link
        if self.done or link is None:
            return
        if link.hello.modern:
            # It is said to the server together with the others that may be.
            self.finish(envelope.result(b"0", b"{}"), "ok")
        else:
            super().send()


class _Place:
    """One resource at one server: `uri` is the server's own, `shown` the client's name for it."""

    def __init__(self, served: Served, link: Link, uri: str, shown: str) -> None:
        self.served = served
        self.link = link
        self.uri = uri
        self.shown = shown


class Heard:
    """What one `subscriptions/listen` of a modern client hears of single resources."""

    def __init__(self) -> None:
        self.places: list[_Place] = []
        self.watches: list[Watch] = []

    @property
    def lost(self) -> bool:
        """Whether a server of these is gone."""
        return not all(place.link.alive for place in self.places)


class _Kept:
    """A legacy client's subscription at a modern server."""

    def __init__(self, session: Session, served: Served, uri: str) -> None:
        self.session = session
        self.served = served
        self.uri = uri
        self.watch: Watch | None = None
        self.pause_s = FIRST_PAUSE_S


class Watches:
    """All subscriptions to single resources that the gateway keeps between eras."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._numbers = 0
        self._subscribed: dict[tuple[Link, str], int] = {}
        self._kept: dict[tuple[Session, str, str], _Kept] = {}

    # a modern client

    async def open(
        self, session: Session, listening: Listening, kept: bytes, uris: tuple[str, ...], meta: Mapping[str, bytes]
    ) -> Heard:
        """Subscribe a modern client to what of this may be and its servers honour. `kept`: what its session keeps it under."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(uri: str) -> _Place | None:
            async with gate:
                return await self._subscribe(session, uri, meta)

        def ended() -> None:
            # The client is to make it anew; what it would have missed meanwhile nobody can tell it.
            if session.listening.get(kept) is listening:
                del session.listening[kept]
            listening.end()

        places = [place for place in await asyncio.gather(*(one(uri) for uri in uris)) if place is not None]
        heard = Heard()
        for link in dict.fromkeys(place.link for place in places):
            mine = [place for place in places if place.link is link]
            if link.hello.modern:
                honoured = await self._watch(session, listening, heard, mine, ended)
                mine = [place for place in mine if place.uri in honoured]
            else:
                for place in mine:
                    self._subscribed[link, place.uri] = self._subscribed.get((link, place.uri), 0) + 1
            heard.places += mine
        return heard

    async def _subscribe(self, session: Session, uri: str, meta: Mapping[str, bytes]) -> _Place | None:
        self._numbers += 1
        relay = _Subscribe(session, uri, meta, self._numbers)
        try:
            await lists.find(session, _SUBSCRIBE, calls.subject(_SUBSCRIBE, relay.members))
            relay.begin()
        except (EarnestError, WireError) as error:
            self._gateway.log(f"a subscription was not made: {error.message}")
            return None
        allowed = await relay.told
        link, served = relay._link, relay.served
        return _Place(served, link, relay.subject, uri) if allowed and link is not None and served is not None else None

    async def _watch(
        self, session: Session, listening: Listening, heard: Heard, places: list[_Place], ended: Callable[[], None]
    ) -> frozenset[str]:
        ready: asyncio.Future[frozenset[str]] = self._gateway.loop.create_future()
        served, link = places[0].served, places[0].link
        others = (one.heard for one in session.listening.values() if one.heard is not None)
        if sum(len(one.watches) for one in others) >= MOST:
            return frozenset()  # each is a connection to its server

        def told(honoured: frozenset[str]) -> None:
            if not ready.done():
                ready.set_result(honoured)

        def update(params: bytes) -> None:
            shown = self._shown(session, served, params)
            listening.tell(UPDATED, shown, subscriptions.updated_uri(shown))

        watch = Watch(session, link, tuple(place.uri for place in places), update, told, ended)
        honoured = await ready
        if honoured:
            heard.watches.append(watch)
        else:
            watch.stop()
        return honoured

    def _shown(self, session: Session, served: Served, params: bytes) -> bytes:
        """An update under the name that its resource has on the session's route."""
        if session.route.kind == "server":
            return params
        return self._gateway.names.relabelled(session, served, "resources/list", params)

    def close(self, heard: Heard) -> None:
        """A modern client's subscription is over: its servers are told, unless another of its own goes on."""
        for watch in heard.watches:
            watch.stop()
        for place in heard.places:
            left = self._subscribed.get((place.link, place.uri), 0) - 1
            if left > 0:
                self._subscribed[place.link, place.uri] = left
                continue
            known = self._subscribed.pop((place.link, place.uri), None) is not None
            if known and place.link.alive and not place.served.shared:
                self._gateway.spawn(_unsubscribe(place.link, place.uri))

    def updated(self, session: Session, served: Served, params: bytes) -> None:
        """A legacy server said that a resource changed: tell the subscriptions of a modern client that name it."""
        shown = self._shown(session, served, params)
        for listening in list(session.listening.values()):
            listening.tell(UPDATED, shown, subscriptions.updated_uri(shown))

    # a legacy client at a modern server

    def legacy(self, call: Relay, link: Link) -> None:
        """`resources/subscribe` and `resources/unsubscribe` of a legacy client, judged and allowed, for a modern server."""
        assert call.served is not None
        call.state = "sent"
        call.deadline = call.hard_deadline = self._gateway.now() + 2 * READY_S
        key = (call.session, call.served.name, call.subject)
        kept = self._kept.get(key)
        if call.method.name == "resources/unsubscribe":
            if kept is not None:
                self._drop(key)
            call.finish(envelope.result(call.request_id, b"{}"), "ok")
        elif kept is not None:
            call.finish(envelope.result(call.request_id, b"{}"), "ok")
        elif sum(session is call.session for session, *_ in self._kept) >= MOST:
            text = f"a client may be subscribed to {MOST} resources of such servers at most"
            call.finish(envelope.error(call.request_id, envelope.INVALID_PARAMS, text), "refused", text)
        else:
            kept = self._kept[key] = _Kept(call.session, call.served, call.subject)
            self._open(key, kept, link, call)

    def _open(self, key: tuple[Session, str, str], kept: _Kept, link: Link, call: Relay | None) -> None:
        def ready(honoured: frozenset[str]) -> None:
            if not honoured:
                self._drop(key) if call is not None else self._again(key, kept)
            else:
                kept.pause_s = FIRST_PAUSE_S
            if call is None or call.done:
                return
            if honoured:
                call.finish(envelope.result(call.request_id, b"{}"), "ok")
            else:
                text = "the server does not offer subscriptions to this resource"
                call.finish(envelope.error(call.request_id, envelope.INVALID_PARAMS, text), "refused", text)

        def heard(params: bytes) -> None:
            raw = bridge.notification_to(False, UPDATED, self._shown(kept.session, kept.served, params))
            if raw is not None and kept.session.ready:
                kept.session.transport.notify(raw)

        kept.watch = Watch(kept.session, link, (kept.uri,), heard, ready, lambda: self._again(key, kept))

    def _again(self, key: tuple[Session, str, str], kept: _Kept) -> None:
        """The server ended the subscription, or is gone: it is opened again after a pause, as long as the client wants it."""
        if kept.watch is not None:
            kept.watch.stop()
        pause, kept.pause_s = kept.pause_s, min(kept.pause_s * 2, LONGEST_PAUSE_S)

        async def later() -> None:
            await asyncio.sleep(pause)
            if self._kept.get(key) is not kept:
                return
            try:
                link = await self._gateway.prepare(kept.session, kept.served)
            except EarnestError:
                self._again(key, kept)
                return
            if self._kept.get(key) is not kept:
                return
            if link.hello.modern:
                self._open(key, kept, link, None)
            else:
                self._drop(key)  # another era now: what was subscribed there is gone with the old link

        self._gateway.spawn(later())

    def _drop(self, key: tuple[Session, str, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None and kept.watch is not None:
            kept.watch.stop()

    # the end

    def forget(self, session: Session) -> None:
        """The session is gone."""
        for key in [key for key in self._kept if key[0] is session]:
            self._drop(key)

    def expire(self) -> None:
        """End the subscriptions of modern clients whose servers are gone: they are to be made anew."""
        for session in self._gateway.sessions:
            for kept, listening in list(session.listening.items()):
                if listening.heard is not None and listening.heard.lost:
                    session.listening.pop(kept, None)
                    listening.end()


async def _unsubscribe(link: Link, uri: str) -> None:
    try:
        await link.ask("resources/unsubscribe", build({"uri": string(uri)}), READY_S)
    except EarnestError:
        pass  # it ends with its link at the latest

"""Where calls go along tracks (`net.tracks`): what a call stood on that later ones may stand on too, and the way back.

A track is laid by a modern client's tool call over HTTP, on the route of one server that is modern and behind HTTP too, once
it was allowed whatever its arguments are and waits to go out. Each room says for itself what that stood on; what is the
gateway's own (head, token, route, session, limits) is said here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.flow import Key
from earnest.core.receipt import encode
from earnest.gateway import spoken
from earnest.gateway.outlet import Outlet
from earnest.gateway.records import decision_of
from earnest.gateway.relay import Relay
from earnest.net.connection import Connection
from earnest.net.message import Head, Request
from earnest.net.pool import Pool
from earnest.net.responder import JSON_HEAD, Responder
from earnest.net.tracks import Ground, compiled
from earnest.net.url import Origin
from earnest.pdp.facts import Judgement
from earnest.protocol import headers, labels
from earnest.protocol.calls import read_params
from earnest.protocol.envelope import Message
from earnest.upstream.http import HttpLink
from earnest.upstream.http_wire import MESSAGE_LIMIT

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.net._tracks import Chain, Tally, Track, Tracks, Trip
    from earnest.store.payloads import Payloads
    from earnest.store.receipts import ReceiptLog

ORDINARY_S: Final = 3.0
"""Seconds after which a trip becomes an ordinary call, with all that bounds its time. Long enough for large answers to slow
clients, and short beside the time that a call may take."""
_TRACKS: Final = 1024
"""Tracks that are kept; the oldest goes first."""
_TALLIES: Final = 256
_SHAPES: Final = 64
"""Shapes of heads that one connection may have tracks for."""
_LONGEST_NAME: Final = 4096
"""Bytes of a name and its `_meta` that tracks are found by; they are kept for as long as the track."""
_PATIENCE: Final = 8
_SELDOM: Final = 4
"""A track goes when more than so many trips became ordinary calls for their answers' sake, and more than one in so many."""


Keep = Callable[[Literal["arguments", "result"], str, bytes], None]


class Way(Protocol):
    """Where a track begins: what an HTTP front knows of its requests."""

    def grounds(self) -> list[Ground]:
        """What it stands on that such a request is read as it was."""

    def place(self) -> object:
        """What is the same for all ways of one session."""

    def used(self) -> None:
        """Calls were made from here."""

    def outlet(self, responder: Responder) -> Outlet:
        """The way back for one request."""

    def keep(self, request: Request, id: bytes) -> bytes:
        """What the session keeps a request of this id under, which it hears of when the client goes away."""


def layer_for(gateway: Gateway, log: ReceiptLog, payloads: Payloads) -> Layer | None:
    """The tracks of a gateway, None where there can be none."""
    if compiled is None or gateway.settings.limits.depth < compiled.DEPTH_READ:
        return None
    return Layer(gateway, log, payloads.keep if payloads.enabled else None)


class Layer:
    """All tracks of one gateway."""

    def __init__(self, gateway: Gateway, log: ReceiptLog, keep: Keep | None) -> None:
        """`keep`: keeps payloads; None where they are not kept."""
        self._gateway = gateway
        self._tallies: dict[tuple[object, Key, int], Tally] = {}
        self._laid: deque[tuple[dict[bytes, Track | None], bytes]] = deque()
        self._log = log
        self.open = True
        self.tracks: Tracks = compiled.Tracks(
            chain=cast("Chain", log.chain),
            clock=gateway.wall,
            digest_of=_digest,
            flush_soon=gateway.flush_soon,
            keep=keep,
            by_client=gateway.by_client,
            by_server=gateway.by_server,
            longest_request=gateway.settings.limits.body_bytes,
            longest_answer=MESSAGE_LIMIT,
        )
        compiled.answer_with(JSON_HEAD)

    # laying

    def lay(self, relay: Relay, head: Head, connection: Connection, way: Way) -> None:
        """Lay a track for calls like this one, if such calls can go along one."""
        link, judgement, served, tool = relay.link, relay.judgement, relay.served, relay.tool
        if relay.state != "queued" or not head.raw or relay.method.name != "tools/call" or not isinstance(link, HttpLink):
            return
        if judgement is None or served is None or tool is None or relay.progress_token or judgement.approval:
            return
        if served.timeout < 3 * ORDINARY_S or spoken.params(relay, link, 0) is not relay.params:
            return  # something in each has to be written anew
        if relay.members is not relay.given or relay.members.keys() != {"name", "arguments", "_meta"} or relay.forward:
            return
        shape = compiled.shape(head.raw)
        along = link.along(relay.subject, relay.params)
        said = self._gateway.engine.grounds(judgement)
        if labels.DECLARED in relay.session.capabilities:
            return
        if shape is None or along is None or said is None or headers.may_declare(tool.definition):
            return
        known = connection.tracks
        if known is None:
            known = connection.tracks = {}
        if shape not in known and len(known) >= _SHAPES:
            known.clear()
        tools = known.setdefault(shape, {})
        name = relay.members["name"] + relay.members["_meta"]
        if len(name) > _LONGEST_NAME or (name in tools and tools[name] is None):
            return
        if name not in tools:
            self._laid.append((tools, name))
            if len(self._laid) > _TRACKS:
                first, gone = self._laid.popleft()
                first.pop(gone, None)
        tools[name] = self._track(relay, link, judgement, head, way, along, said, tools)

    def _track(
        self,
        relay: Relay,
        link: HttpLink,
        judgement: Judgement,
        head: Head,
        way: Way,
        along: tuple[list[Ground], bytes, Pool, Origin],
        said: tuple[list[Ground], list[Ground], int],
        tools: dict[bytes, Track | None],
    ) -> Track:
        gateway, session, served = self._gateway, relay.session, relay.served
        assert served is not None
        grounds, lead, pool, origin = along
        of_call, of_answer, bits = said
        limits = gateway.settings.limits
        of_gateway: list[Ground] = [
            ("is", self, "open", True),
            ("is", self._log, "failing", False),
            ("is", gateway, "settings", gateway.settings),
            ("is", gateway, "catalogs", gateway.catalogs),
            ("equals", gateway.catalogs, "revision", gateway.catalogs.revision),
            ("is", gateway, "views", gateway.views),
            ("is", session, "route", session.route),
            *gateway.link_grounds(session, served, link),
            gateway.engine.handoff.grounds(session.client.key),
        ]
        every = {(kind, id(owner), id(name)): (kind, owner, name, found) for kind, owner, name, found in (
            *way.grounds(), *of_gateway, *grounds, *of_call
        )}
        facts = _Laid(gateway, relay, link, judgement, head, way, tools, self._log.writer)
        floor, cwd, changes = gateway.engine.floor, served.cwd, not judgement.profile.read_only.value
        takes_text = judgement.question.tool.takes_text
        pool.answers, pool.streams = self.tracks.answers, self.tracks.streams
        return compiled.Track(
            facts=facts,
            tally=self._tally(way, judgement.question.key, bits),
            guards=tuple(compiled.Guard(*ground) for ground in every.values()),
            of_answer=tuple(compiled.Guard(*ground) for ground in of_answer),
            decision=encode(decision_of(judgement, "allow", time=0.0, arguments_sha256="")),
            lead=lead,
            said=b'{"_meta":{%b},' % labels.said(bits),
            numbers=link.numbers,
            idle=pool.idle(origin),
            waiting=pool.waiting(origin),
            floor=lambda raw: floor.check(raw, cwd=cwd, changes=changes, takes_text=takes_text) is None,
            client=gateway.counted_as(relay),
            server=served.name,
            limits=(limits.in_flight_per_client, limits.in_flight_per_server),
            labels_after=judgement.labels_before | bits,
        )

    def _tally(self, way: Way, key: Key, bits: int) -> Tally:
        """What counts the calls of one conversation and session; tracks share it."""
        mark = way.place(), key, bits
        tally = self._tallies.get(mark)
        if tally is None:
            if len(self._tallies) >= _TALLIES:
                self._tallies.clear()  # tracks that are there keep theirs
            tally = self._tallies[mark] = compiled.Tally((way, key, bits))
        return tally

    # under way

    @property
    def busy(self) -> bool:
        """Whether a call is on a track."""
        return bool(self.tracks.under_way)

    def count(self) -> None:
        """Note in conversations and sessions that they were used. Their labels were kept before any of these calls (the tracks
        stand on that); in a conversation that has ended since, there is nothing to count."""
        for tally, times in self.tracks.counted():
            way, key, bits = tally.of
            way.used()
            self._gateway.engine.recur(key, bits, times)

    def depart(self) -> list[Relay]:
        """Send what waits, now that its decisions are written; returns what has to wait for a connection."""
        return [_become(trip) for trip in self.tracks.depart()]

    def recall(self) -> list[Relay]:
        """What waits, as calls that were not sent."""
        return [_become(trip) for trip in self.tracks.recall()]

    def settle(self, age_s: float = 0.0) -> None:
        """Make ordinary calls of all trips that are as old, and count those that were."""
        self.count()
        now = self._gateway.wall()
        # The clock on the wall may be put back, too; then nobody knows how old they are.
        for trip in [trip for trip in self.tracks.under_way if not now - age_s < trip.time <= now]:
            trip.become()

    def close(self) -> None:
        """No call goes along a track any more."""
        self.open = False
        self.settle()


def _become(trip: Trip) -> Relay:
    trip.leave()
    laid: _Laid = trip.track.facts
    return laid.relay(trip)


class _Laid:
    """What one track was laid from (`net.tracks.Facts`)."""

    def __init__(
        self,
        gateway: Gateway,
        relay: Relay,
        link: HttpLink,
        judgement: Judgement,
        head: Head,
        way: Way,
        tools: dict[bytes, Track | None],
        writer: str,
    ) -> None:
        # What was asked in the first call is not kept: it may be large.
        question = msgspec.structs.replace(judgement.question, arguments=b"{}")
        self.judgement = msgspec.structs.replace(judgement, question=question)
        self.way = way
        self._gateway = gateway
        self._session, self._method, self._fields, self._meta = relay.session, relay.method, relay.headers, relay.meta
        self._served, self._subject, self._tool = relay.served, relay.subject, relay.tool
        self._name = relay.members["name"] + relay.members["_meta"]
        self._link = link
        self._head = head
        self._tools = tools
        self._writer = writer
        self._became = 0

    def become(self, trip: Trip) -> None:
        relay = self.relay(trip)
        if relay.state == "queued":
            self._gateway.queue(relay)
        if heard := trip.heard:
            self._became += 1
            if self._became > _PATIENCE and self._became * _SELDOM > trip.track.trips:
                self._tools[self._name] = None
            trip.upstream.data_received(heard)

    def relay(self, trip: Trip) -> Relay:
        """The call as it would be had it gone the long way."""
        gateway = self._gateway
        message = Message("request", trip.id, "tools/call", trip.params)
        request, responder = trip.connection.take_up(trip.body, self._head)
        kept, outlet = self.way.keep(request, trip.id), self.way.outlet(responder)
        params = read_params(message.params)
        relay = Relay(gateway, self._session, message, self._method, outlet, self._fields, kept, params, self._meta)
        relay.served, relay.subject, relay.tool, relay.arguments = self._served, self._subject, self._tool, trip.arguments
        question = msgspec.structs.replace(self.judgement.question, arguments=trip.arguments)
        relay.judgement = msgspec.structs.replace(
            self.judgement,
            question=question,
            time=trip.time,
            arguments_sha256=trip.arguments_sha256.decode(),
            id=f"{self._writer}.{trip.receipt}",
        )
        gateway.take_over(relay)
        exchange = self._link.adopt(trip.number, relay, trip.upstream) if trip.upstream is not None else None
        # No trip is older than that, whatever the clock on the wall was put to since it began.
        relay.sent_before(self._link, exchange, min(max(0.0, gateway.wall() - trip.time), 2 * ORDINARY_S))
        return relay


def _digest(arguments: bytes) -> bytes | None:
    """The digest of arguments that are not in canonical form already, None for those that are refused."""
    try:
        return canonical.digest(arguments).encode()
    except EarnestError:
        return None

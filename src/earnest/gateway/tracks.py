"""Where calls go along tracks (`net.tracks`): what a call stood on that later ones may stand on too, and the way back.

A track is laid by a client's tool call on the route of one server of the client's era, once it was allowed whatever its
arguments are and waits to go out: a modern client's over HTTP to a server behind HTTP, and a client's on pipes, of either era,
to a server on pipes. Each room says for itself what that stood on; what is the gateway's own (head, token, route, session,
limits) is said here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

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
from earnest.net.message import Head
from earnest.net.responder import JSON_HEAD
from earnest.net.tracks import Ground, compiled
from earnest.pdp.facts import Judgement
from earnest.protocol import calls, headers, labels
from earnest.protocol.envelope import Message
from earnest.upstream.http import HttpLink
from earnest.upstream.http_wire import MESSAGE_LIMIT
from earnest.upstream.stdio import StdioLink

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.net._tracks import Chain, Tally, Track, Tracks, Trip
    from earnest.store.payloads import Payloads
    from earnest.store.receipts import ReceiptLog

ORDINARY_S: Final = 3.0
"""Seconds after which a trip becomes an ordinary call, with all that bounds its time. Long enough for large answers to slow
clients, and short beside the time that a call may take."""
LATE_S: Final = 0.005
"""Seconds that the record of an outcome may wait for those of the next calls."""
_TRACKS: Final = 1024
"""Tracks that are kept; the oldest goes first."""
_TALLIES: Final = 256
_VARIANTS: Final = 8
"""Tracks for one tool in a row, each under another `_meta`, of which one must have been used before there are more."""
_SHAPES: Final = 64
"""Shapes of heads that one connection may have tracks for."""
_LONGEST_NAME: Final = 4096
"""Bytes of a name and its `_meta` that tracks are found by; they are kept for as long as the track."""
_PATIENCE: Final = 8
_SELDOM: Final = 4
"""A track goes when more than so many trips became ordinary calls for their answers' sake, and more than one in so many."""


class Way(Protocol):
    """Where a track begins: what a front knows of its requests."""

    def grounds(self) -> list[Ground]:
        """What it stands on that such a request is read as it was."""

    def place(self) -> object:
        """What is the same for all ways of one session."""

    def used(self) -> None:
        """Calls were made from here."""

    def take_up(self, trip: Trip) -> tuple[bytes, Outlet]:
        """The call of a trip goes on as an ordinary one: what the session keeps it under, and the way back."""


def layer_for(gateway: Gateway, log: ReceiptLog, payloads: Payloads) -> Layer | None:
    """The tracks of a gateway, None where there can be none."""
    if compiled is None or gateway.settings.limits.depth < compiled.DEPTH_READ:
        return None
    return Layer(gateway, log, payloads)


class Layer:
    """All tracks of one gateway."""

    def __init__(self, gateway: Gateway, log: ReceiptLog, payloads: Payloads) -> None:
        self._gateway = gateway
        self._tallies: dict[tuple[object, Key, int], Tally] = {}
        self._laid: deque[tuple[dict[bytes, Track | None], bytes]] = deque()
        self._log = log
        self.open = True
        self._late: asyncio.TimerHandle | None = None
        self.tracks: Tracks = compiled.Tracks(
            chain=cast("Chain", log.chain),
            clock=gateway.wall,
            digest_of=_digest,
            flush_soon=gateway.flush_soon,
            flush_later=self._flush_later,
            keep=payloads.keep if payloads.enabled else None,
            kept=payloads.seen,
            by_client=gateway.by_client,
            by_server=gateway.by_server,
            longest_request=gateway.settings.limits.body_bytes,
            longest_answer=MESSAGE_LIMIT,
        )
        compiled.answer_with(JSON_HEAD)

    # laying

    def lay(self, relay: Relay, head: Head, connection: Connection, way: Way) -> None:
        """Lay a track for calls like this one, if such calls can go along one."""
        link, tool = relay.link, relay.tool
        if not _is_queued(relay) or not isinstance(link, HttpLink) or not head.raw or tool is None:
            return
        if relay.progress_token or relay.forward:
            return
        if headers.may_declare(tool.definition) or spoken.params(relay, link, 0) is not relay.params:
            return  # something in each has to be written anew
        shape, along = compiled.shape(head.raw), link.along(relay.subject, relay.params)
        if shape is None or along is None or "_meta" not in relay.members:
            return
        known = connection.tracks
        if known is None:
            known = connection.tracks = {}
        if shape not in known and len(known) >= _SHAPES:
            known.clear()
        grounds, lead, pool, origin = along
        pool.answers, pool.streams = self.tracks.answers, self.tracks.streams
        self._lay(relay, link, way, known.setdefault(shape, {}), grounds, lead, pool.idle(origin), pool.waiting(origin), None)

    def lay_on_pipes(self, relay: Relay, tools: dict[bytes, Track | None], way: Way) -> None:
        """The same for a client on pipes: `tools` are its tracks."""
        link = relay.link
        if not _is_queued(relay) or not isinstance(link, StdioLink) or link.hello.modern != relay.session.modern:
            return
        if relay.served is None or relay.served.list_lane is not None:
            return  # the box of a contained server is asked about each call
        if relay.answered_form or spoken.CONVERSATION_META in relay.meta:
            return  # something in each has to be written anew; a progress token can be
        self._lay(relay, link, way, tools, link.along(), b"", [], None, link)

    def _lay(
        self,
        relay: Relay,
        link: HttpLink | StdioLink,
        way: Way,
        tools: dict[bytes, Track | None],
        grounds: list[Ground],
        lead: bytes,
        idle: list[Any],
        waiting: object,
        line: StdioLink | None,
    ) -> None:
        judgement, served = relay.judgement, relay.served
        if judgement is None or served is None:
            return
        if judgement.approval or served.timeout < 3 * ORDINARY_S or relay.members is not relay.given:
            return
        if labels.DECLARED in relay.session.capabilities:
            return
        said, key = self._gateway.engine.grounds(judgement), compiled.call_key(relay.params)
        if said is None or key is None or len(key) > _LONGEST_NAME or (key in tools and tools[key] is None):
            return
        if key not in tools and not self._worth_it(tools, relay.members["name"]):
            return
        if key not in tools:
            self._laid.append((tools, key))
            if len(self._laid) > _TRACKS:
                first, gone = self._laid.popleft()
                first.pop(gone, None)
        gateway, session = self._gateway, relay.session
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
        every: dict[object, Ground] = {(kind, id(owner), id(name)): (kind, owner, name, found) for kind, owner, name, found in (
            *way.grounds(), *of_gateway, *grounds, *of_call
        )}
        facts = _Laid(gateway, relay, link, judgement, way, tools, key, self._log.writer)
        floor, cwd, changes = gateway.engine.floor, served.cwd, not judgement.profile.read_only.value
        takes_text = judgement.question.tool.takes_text
        tools[key] = compiled.Track(
            facts=facts,
            tally=self._tally(way, judgement.question.key, bits),
            guards=tuple(compiled.Guard(*ground) for ground in every.values()),
            of_answer=tuple(compiled.Guard(*ground) for ground in of_answer),
            decision=encode(decision_of(judgement, "allow", time=0.0, arguments_sha256="")),
            lead=lead,
            said=b'{"_meta":{%b},' % labels.said(bits),
            numbers=link.numbers,
            idle=idle,
            waiting=waiting,
            line=line,
            floor=lambda raw: floor.check(raw, cwd=cwd, changes=changes, takes_text=takes_text) is None,
            client=gateway.counted_as(relay),
            server=served.name,
            limits=(limits.in_flight_per_client, limits.in_flight_per_server),
            labels_after=judgement.labels_before | bits,
        )

    def _worth_it(self, tools: dict[bytes, Track | None], name: bytes) -> bool:
        """Whether one more track for this tool may be of use: where each call brings another `_meta`, none is used twice."""
        laid = [track for key, track in tools.items() if key.startswith(name)] if len(tools) >= _VARIANTS else []
        return len(laid) < _VARIANTS or any(track is None or track.trips for track in laid[-_VARIANTS:])

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
        left = self.tracks.depart()
        return [_become(trip) for trip in left] if left else []

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

    def _flush_later(self) -> None:
        self._late = self._gateway.loop.call_later(LATE_S, self._flush_late)

    def _flush_late(self) -> None:
        self.tracks.late = False
        self._gateway.flush_soon()

    def close(self) -> None:
        """No call goes along a track any more."""
        self.open = False
        if self._late is not None:
            self._late.cancel()
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
        link: HttpLink | StdioLink,
        judgement: Judgement,
        way: Way,
        tools: dict[bytes, Track | None],
        key: bytes,
        writer: str,
    ) -> None:
        # What was asked in the first call is not kept: it may be large.
        question = msgspec.structs.replace(judgement.question, arguments=b"{}")
        self.judgement = msgspec.structs.replace(judgement, question=question)
        self.way = way
        self._gateway = gateway
        self._session, self._method, self._fields, self._metas = relay.session, relay.method, relay.headers, calls.Metas()
        self._served, self._subject, self._tool = relay.served, relay.subject, relay.tool
        self._key = key
        self._link = link
        self._tools = tools
        self._writer = writer
        self._became = 0

    def become(self, trip: Trip) -> None:
        relay = self.relay(trip)
        if relay.state == "queued":
            self._gateway.queue(relay)
        heard = trip.heard
        if heard or trip.odd:
            self._became += 1
            if self._became > _PATIENCE and self._became * _SELDOM > trip.track.trips:
                self._tools[self._key] = None
        if heard:
            trip.upstream.data_received(heard)

    def relay(self, trip: Trip) -> Relay:
        """The call as it would be had it gone the long way."""
        gateway = self._gateway
        message = Message("request", trip.id, "tools/call", trip.params)
        kept, outlet = self.way.take_up(trip)
        params = calls.read_params(message.params)
        meta = self._metas.read(params).members
        relay = Relay(gateway, self._session, message, self._method, outlet, self._fields, kept, params, meta)
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


def _is_queued(relay: Relay) -> bool:
    """Whether it is a call of a tool that was let through and waits for its record."""
    return relay.state == "queued" and relay.method.name == "tools/call"

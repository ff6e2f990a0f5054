"""Clients on pipes: a shim's peer on one side, sessions on the other.

One pipe may be spoken to in both eras (a client probes, then falls back), so a peer has a session for each era that is used.
Lines that are no messages are answered, never fatal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from earnest.core.errors import EarnestError
from earnest.gateway.client import Client, Route
from earnest.gateway.process.handover import StdioPeer
from earnest.gateway.process.journal import LINE_BYTES
from earnest.gateway.session import Session
from earnest.net.tracks import DEPTH_READ, Ground
from earnest.protocol import envelope, eras
from earnest.protocol.calls import read_params
from earnest.protocol.envelope import Limits, Message, WireError
from earnest.protocol.salvage import salvage

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.gateway.served import Served
    from earnest.net._tracks import Trip


class StdioOutlet:
    """The way back for one request on a pipe."""

    __slots__ = ("_id", "_peer")

    def __init__(self, peer: StdioPeer, id: bytes) -> None:
        self._peer = peer
        self._id = id

    def send(self, message: bytes) -> None:
        self._peer.send(envelope.one_line(message))

    def part(self) -> None:
        pass

    def finish(self, message: bytes, status: int = 200) -> None:
        self._peer.send(envelope.one_line(message), self._id)

    def abandon(self) -> None:
        self._peer.forget(self._id)


class _Way:
    """Where tracks of one session on a pipe begin (`tracks.Way`)."""

    def __init__(self, front: StdioFront, session: Session) -> None:
        self._front = front
        self._session = session

    def grounds(self) -> list[Ground]:
        session = self._session
        return [
            ("is", session, "client", session.client),
            ("equals", session, "capabilities", session.capabilities),
            ("equals", session, "version", session.version),
        ]

    def place(self) -> Session:
        return self._session

    def used(self) -> None:
        """A pipe is there for as long as its client is."""

    def take_up(self, trip: Trip) -> tuple[bytes, StdioOutlet]:
        return trip.id, StdioOutlet(self._front._peer, trip.id)


class StdioFront:
    """One client on pipes. Also the transport of its sessions."""

    def __init__(
        self,
        gateway: Gateway,
        peer: StdioPeer,
        client: Client,
        route: Route,
        limits: Limits,
        new_id: Callable[[], str],
        own: Callable[[bytes], Served] | None,
        on_end: Callable[[StdioFront], None],
    ) -> None:
        self._gateway = gateway
        self._peer = peer
        self._client = client
        self._route = route
        self._limits = limits
        self._new_id = new_id
        self._own = own
        self._on_end = on_end
        self._sessions: dict[bool, Session] = {}
        self._line = b""
        self._opening = False
        peer.on_message = self._message
        peer.on_closed = self._closed
        peer.on_eof = self._said_all
        if gateway.layer is not None and limits.max_depth >= DEPTH_READ and not client.overlay:
            peer.along, peer.longest = gateway.layer.tracks, min(limits.max_bytes, LINE_BYTES)

    @property
    def client(self) -> Client:
        """Whose pipe it is."""
        return self._client

    def become(self, client: Client) -> None:
        """The operator's settings for this client changed."""
        self._client = client
        for session in self._sessions.values():
            session.client = client

    # Transport

    def notify(self, message: bytes) -> None:
        self._peer.send(envelope.one_line(message))

    def begin(self, id: bytes) -> None:
        self._peer.begin(id, self._line if self._opening else b"")

    # the peer

    def _message(self, line: bytes) -> None:
        try:
            message = envelope.parse(line, self._limits)
        except WireError as error:
            self._refuse(line, error)
            return
        if self._peer.trips:
            self._leave_track(message)
        self._line = line
        self._opening = message.kind == "request" and message.method == "initialize"
        try:
            params = read_params(message.params) if message.kind == "request" else None
            session = self._session(message, params)
        except WireError as error:
            self._peer.send(envelope.error(message.id, error.rpc_code, error.message, error.data), message.id or None)
            return
        except EarnestError as error:
            self._peer.close(error.exit_code, str(error))
            return
        session.handle(message, StdioOutlet(self._peer, message.id), params=params)
        if self._peer.along is not None and message.method == "tools/call" and self._gateway.layer is not None:
            relay = session.relays.get(message.id)
            if relay is not None and relay.request_id is message.id:
                self._gateway.layer.lay_on_pipes(relay, self._peer.tracks, _Way(self, session))
        if message.method == "notifications/initialized":
            self._peer.ready()

    def _leave_track(self, message: Message) -> None:
        """A message that means a call on a track, by its id, makes it an ordinary one."""
        id = message.id if message.kind == "request" else b""
        if message.method == "notifications/cancelled":
            try:
                id = read_params(message.params).get("requestId", b"")
            except WireError:
                return
        trip = self._peer.trips.get(id)
        if trip is not None:
            trip.become()

    def _refuse(self, line: bytes, error: WireError) -> None:
        """Answer what cannot be read, under its own id where that is sure and no other request's."""
        whose = salvage(line)
        if whose is not None and whose.kind == "response":
            # No answer goes back to an answer; who waits for it is told that it came to nothing.
            failed = envelope.error_object(error.rpc_code, "the client's answer cannot be read")
            for session in self._sessions.values():
                session.handle(Message("error", whose.id, error=failed), StdioOutlet(self._peer, whose.id))
            return
        id = whose.id if whose is not None else b""
        if id in self._peer.trips or any(session.has_request(id) for session in self._sessions.values()):
            id = b""
        self._peer.send(envelope.error(id, error.rpc_code, error.message, error.data))

    def _session(self, message: Message, params: dict[str, bytes] | None) -> Session:
        if params is not None:
            modern = message.method == "server/discover" or eras.is_modern(params)
        else:
            # Answers and notifications carry no era. Only legacy sessions ask or hear them, except for what ends a request.
            modern = False not in self._sessions or self._ends_modern(message)
        session = self._sessions.get(modern)
        if session is None:
            session = Session(self._gateway, self._client, self._route, self, id=self._new_id(), modern=modern, own=self._own)
            self._sessions[modern] = session
            self._gateway.join(session)
        return session

    def _ends_modern(self, message: Message) -> bool:
        if message.method != "notifications/cancelled" or True not in self._sessions:
            return False
        try:
            return self._sessions[True].has_request(read_params(message.params).get("requestId", b""))
        except WireError:
            return False

    def _said_all(self) -> None:
        """Nothing more comes: calls may still be answered, but a subscription has no other end than this one."""
        for session in self._sessions.values():
            session.end_subscriptions()

    def _closed(self, reason: str) -> None:
        for trip in list(self._peer.trips.values()):
            trip.become()
        self._peer.tracks.clear()
        for session in self._sessions.values():
            session.close()
        self._on_end(self)

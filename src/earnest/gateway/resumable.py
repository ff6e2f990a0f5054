"""Event streams of a legacy session that a client may take up again (MCP 2025-11-25, "Resumability and Redelivery").

Each event has an id that names its stream and its place there. A client whose stream broke off comes back with a GET and the
id of the last event it saw, and gets what came after it, on that stream alone: nothing of another one, and nothing is done
twice, because taking up a stream repeats no request. What is kept is bounded in bytes for each stream and in time after its
answer; the answer itself is the last thing to go.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from earnest.net.responder import EventStream, Responder

RETRY_MS: Final = 500
"""How long a client is told to wait before it comes back."""
KEPT_BYTES: Final = 256 * 1024
"""Of one stream's events; the newest event is always kept, whatever its size."""
KEPT_S: Final = 60.0
"""How long a stream can be taken up again after its answer was sent."""
_ID: Final = re.compile(r"([0-9]{1,15})-([0-9]{1,15})\Z")

Later = Callable[[float, Callable[[], None]], object]
"""`loop.call_later`."""


class Resumable:
    """One stream: of a request, or the standing one (number 0)."""

    __slots__ = ("_bytes", "_events", "_live", "_number", "_sent", "ended", "primed")

    def __init__(self, number: int) -> None:
        self._number = number
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._sent = 0
        self._live: EventStream | None = None
        self.primed = False
        """The client was given an id before anything was said, so it can come back whenever the stream ends."""
        self.ended = False

    @property
    def open(self) -> bool:
        """Whether a client is listening."""
        return self._live is not None and not self._live.gone

    @property
    def newest(self) -> int:
        """The place of the newest event."""
        return self._sent

    def attach(self, stream: EventStream, after: int = -1, *, prime: bool = False) -> None:
        """Let a client listen: what came after its last event at once, then what comes. Another one's listening ends. `prime`:
        tell it first where it is, with an event that has an id and no data."""
        if self._live is not None:
            self._live.close()
        self._live = stream
        if prime:
            self.primed = True
            stream.event(b"", f"{self._number}-{max(after, 0)}", RETRY_MS)
        for place, message in self._events:
            if place > after:
                stream.event(message, f"{self._number}-{place}")
        if self.ended:
            stream.close()

    def send(self, message: bytes) -> None:
        """One message, now if a client is listening, and for one that comes back."""
        self._sent += 1
        self._events.append((self._sent, message))
        self._bytes += len(message)
        while self._bytes > KEPT_BYTES and len(self._events) > 1:
            self._bytes -= len(self._events.popleft()[1])
        if self._live is not None:
            self._live.event(message, f"{self._number}-{self._sent}")

    def part(self) -> None:
        """Close the connection and not the stream: the client comes back for the rest. Only one that knows how is sent away."""
        if self._live is not None and self.primed:
            self._live.close()

    def close(self) -> None:
        """Nothing more will come."""
        self.ended = True
        if self._live is not None:
            self._live.close()


class Streams:
    """The streams of one session."""

    def __init__(self, later: Later) -> None:
        self._later = later
        self._made = 0
        self._streams: dict[int, Resumable] = {}
        self.standing = Resumable(0)

    def begin(self) -> tuple[int, Resumable]:
        """A stream for a request's answer, and its number."""
        self._made += 1
        stream = self._streams[self._made] = Resumable(self._made)
        return self._made, stream

    def end(self, number: int, *, forget: bool = False) -> None:
        """The answer was sent, or (`forget`) there will be none: the stream is kept for a while, or not at all."""
        stream = self._streams.get(number)
        if stream is None:
            return
        stream.close()
        if forget:
            del self._streams[number]
        else:
            self._later(KEPT_S, partial(self._forget, number))

    def _forget(self, number: int) -> None:
        self._streams.pop(number, None)

    def find(self, last_event_id: str) -> tuple[Resumable, int] | None:
        """The stream that an event id belongs to, and the event's place there."""
        match = _ID.match(last_event_id)
        if match is None:
            return None
        number, place = int(match[1]), int(match[2])
        stream = self.standing if number == 0 else self._streams.get(number)
        return (stream, place) if stream is not None else None

    def close(self) -> None:
        """The session is over."""
        self.standing.close()
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()


class ResumableOutlet:
    """The way back for one request of a legacy session over HTTP: JSON where nothing comes before the answer and the client did
    not name event streams first, else a stream."""

    __slots__ = ("_headers", "_number", "_prefers_stream", "_prime", "_responder", "_stream", "_streams")

    def __init__(self, responder: Responder, streams: Streams, *, prime: bool, prefers_stream: bool) -> None:
        """`prime`: the client's version knows events without data (2025-11-25)."""
        self._responder = responder
        self._streams = streams
        self._prime = prime
        self._prefers_stream = prefers_stream
        self._stream: Resumable | None = None
        self._number = 0
        self._headers: tuple[tuple[str, str], ...] = ()

    def with_header(self, name: str, value: str) -> None:
        """Put a header on the answer."""
        self._headers = ((name, value),)

    def send(self, message: bytes) -> None:
        self._begun().send(message)

    def part(self) -> None:
        if self._stream is not None or self._prime:
            self._begun().part()

    def _begun(self) -> Resumable:
        if self._stream is None:
            self._number, self._stream = self._streams.begin()
            self._stream.attach(self._responder.stream(200, self._headers), prime=self._prime)
        return self._stream

    def finish(self, message: bytes, status: int = 200) -> None:
        if self._stream is None and not self._prefers_stream:
            if not self._responder.started:
                self._responder.json(200, message, self._headers)
            return
        self.send(message)
        self._streams.end(self._number)

    def abandon(self) -> None:
        if self._stream is not None:
            self._streams.end(self._number, forget=True)
        elif not self._responder.started:
            self._responder.empty(202)

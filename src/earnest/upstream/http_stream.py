"""The standing stream of an HTTP session: what a server says of its own accord.

Legacy: a GET that a server may decline with 405, which is normal. Modern: `subscriptions/listen` for the
list changes that the server offers. A stream that ends is opened again with a growing, bounded, jittered
pause; one that is declined is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from earnest.core.errors import EarnestError
from earnest.net.client import Handle
from earnest.net.message import Headers
from earnest.net.sse import Parser
from earnest.protocol import envelope
from earnest.protocol.envelope import Message, WireError
from earnest.upstream.http_wire import MESSAGE_LIMIT, PARSE_LIMITS

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
STEADY_S: Final = 30.0
"""A stream that lasted this long counts as working: the pause starts over."""


class StreamOwner(Protocol):
    """What a standing stream needs of its link."""

    loop: asyncio.AbstractEventLoop

    def report(self, text: str) -> None: ...
    def excerpt(self, body: bytes) -> str: ...
    def random(self) -> float: ...


class StandingStream:
    """Keeps one stream open. `send(handler, last_id)` issues the request, `deliver` gets each message."""

    def __init__(
        self,
        owner: StreamOwner,
        send: Callable[[StandingStream, bytes], Handle],
        deliver: Callable[[Message], None],
        *,
        gone: Callable[[], None] | None = None,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        """`gone` is told when the server answers 404: it does not know the session any more."""
        self._owner = owner
        self._send = send
        self._deliver = deliver
        self._gone = gone
        self._first = self._pause = first_pause_s
        self._parser = Parser(MESSAGE_LIMIT)
        self._handle: Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._open = False
        self.stopped = False

    def start(self) -> None:
        """Open the stream."""
        self._timer = None
        if self.stopped:
            return
        last_id = self._parser.last_id
        self._parser = Parser(MESSAGE_LIMIT)
        self._parser.last_id = last_id
        self._open = False
        self._since = self._owner.loop.time()
        self._handle = self._send(self, last_id)

    def stop(self) -> None:
        """Close the stream for good."""
        self.stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._handle is not None:
            self._handle.cancel()

    def head(self, status: int, headers: Headers) -> None:
        kind = (headers.get("content-type") or "").partition(";")[0].strip().lower()
        self._open = status == 200 and kind == "text/event-stream"
        if not self._open and status < 500 and status != 429:
            # 405, or whatever else this server says to what it does not offer.
            self.stop()
            if status == 404 and self._gone is not None:
                self._owner.loop.call_soon(self._gone)

    def data(self, chunk: bytes) -> None:
        if not self._open:
            return
        try:
            events = self._parser.feed(chunk)
        except EarnestError as error:
            self._owner.report(str(error))
            if self._handle is not None:
                self._handle.cancel()
            self._again()
            return
        for event in events:
            if event.data and not self.stopped:
                self._message(event.data)

    def _message(self, data: bytes) -> None:
        try:
            message = envelope.parse(data, PARSE_LIMITS)
        except WireError as error:
            self._owner.report(f"sent {len(data)} bytes that are no message: {error.message}")
            return
        self._deliver(message)

    def end(self) -> None:
        self._again()

    def lost(self, error: EarnestError, sent: bool) -> None:
        self._again()

    def _again(self) -> None:
        if self.stopped or self._timer is not None:
            return
        if self._open and self._owner.loop.time() - self._since >= STEADY_S:
            self._pause = self._first
        wait = max(self._pause, (self._parser.retry_ms or 0) / 1000)
        wait = min(wait, LONGEST_PAUSE_S) * (0.5 + self._owner.random())
        self._pause = min(self._pause * 2, LONGEST_PAUSE_S)
        self._timer = self._owner.loop.call_later(wait, self.start)

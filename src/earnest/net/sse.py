"""Server-sent events: an incremental parser and an encoder (WHATWG HTML, section 9.2).

The parser takes any chunking of the bytes and yields the same events. Lines end in LF, CR or CRLF; a CR
ends its line at once, and the LF that may follow is skipped when it comes, so no event waits for the next
byte.
"""

from __future__ import annotations

import re

import msgspec

from earnest.core.errors import EarnestError

_EOL = re.compile(rb"[\r\n]")
_LINES = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class Event(msgspec.Struct, frozen=True):
    """One dispatched event: its `type` (`message` unless named), `data`, and the last id seen so far."""

    data: bytes
    type: bytes = b"message"
    id: bytes = b""


class Parser:
    """Incremental event-stream parser; `last_id` and `retry_ms` follow the stream.

    `limit` bounds one event in bytes (its lines, and any unfinished line). Past it `feed` raises E1226, and
    the stream cannot be used any further.
    """

    def __init__(self, limit: int) -> None:
        self.last_id = b""
        self.retry_ms: int | None = None
        self._limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._skip_lf = False
        self._start = True
        self._type = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes, in order."""
        buffer = self._buffer
        buffer += chunk
        if self._start:
            if len(buffer) < 3 and _BOM.startswith(buffer):
                return []
            self._start = False
            if buffer.startswith(_BOM):
                del buffer[:3]
        events: list[Event] = []
        at = 0
        search = self._scanned
        if self._skip_lf and buffer:
            self._skip_lf = False
            if buffer[0] == 10:
                at = search = 1
        while (match := _EOL.search(buffer, search)) is not None:
            end = match.start()
            line = bytes(buffer[at:end])
            at = end + 1
            if buffer[end] == 13:
                if at == len(buffer):
                    self._skip_lf = True
                elif buffer[at] == 10:
                    at += 1
            search = at
            self._line(line, events)
        del buffer[:at]
        self._scanned = len(buffer)
        if self._size + len(buffer) > self._limit:
            self._too_large()
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(Event(b"\n".join(self._data), self._type or b"message", self.last_id))
                self._data = []
            self._type = b""
            self._size = 0
            return
        self._size += len(line)
        if self._size > self._limit:
            self._too_large()
        name, colon, value = line.partition(b":")
        if not name and colon:
            self._size -= len(line)  # a comment is kept nowhere, so a long silence of comments is no event
            return
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value
        elif name == b"id":
            if b"\0" not in value:
                self.last_id = value
        elif name == b"retry" and value.isdigit() and len(value) <= 9:
            self.retry_ms = int(value)

    def _too_large(self) -> None:
        raise EarnestError(
            "E1226",
            f"an event of the server's stream is larger than {self._limit} bytes",
            "Raise the limit for this server, or ask it for less at a time.",
            exit_code=3,
        )


def encode(data: bytes, event_id: str | None = None, event: str | None = None, retry_ms: int | None = None) -> bytes:
    """One event as bytes. Line breaks inside `data` become further `data` lines, so any bytes survive as
    lines. `retry_ms`: how long a client shall wait before it reconnects.

    Raises ValueError if `event_id` or `event` holds a line break or NUL: they could forge fields.
    """
    head = ""
    for name, value in (("event", event), ("id", event_id)):
        if value is not None:
            if any(c in value for c in "\r\n\0"):
                raise ValueError(f"{name} must hold no line break and no NUL")
            head += f"{name}: {value}\n"
    if retry_ms is not None:
        head += f"retry: {retry_ms}\n"
    if b"\n" not in data and b"\r" not in data:
        return head.encode() + b"data: " + data + b"\n\n"
    return head.encode() + b"".join(b"data: " + line + b"\n" for line in _LINES.split(data)) + b"\n"


COMMENT = b":\n\n"
"""An event-stream comment: keeps proxies and clients from taking silence for death."""

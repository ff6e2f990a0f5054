"""Requests as a handler sees them, and header fields of either side."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

RawHeaders = list[tuple[bytes, bytes]]
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")

HeaderFields = Iterable[tuple[str, str]]


def fields(headers: HeaderFields) -> bytes:
    """Header fields as bytes. Raises ValueError for a name or value that could end its line."""
    out = ""
    for name, value in headers:
        if not _NAME.match(name) or not _VALUE.match(value):
            raise ValueError(f"not a valid header field: {name!r}")
        out += f"{name}: {value}\r\n"
    return out.encode("latin-1")


class Headers:
    """Header fields as they came (`raw`), with look-up by name in any case. Text is Latin-1, as RFC 9110
    5.5 reads it."""

    __slots__ = ("_map", "_media_type", "raw")

    def __init__(self, raw: RawHeaders) -> None:
        self.raw = raw
        self._media_type: str | None = None
        self._map: dict[bytes, bytes] = {}
        for name, value in raw:
            lower = name.lower()
            known = self._map.get(lower)
            self._map[lower] = value if known is None else known + b", " + value

    def get(self, name: str) -> str | None:
        """The value of `name`, None if absent; several fields of one name are joined with commas (RFC 9110
        5.3)."""
        value = self._map.get(name.lower().encode("latin-1"))
        return None if value is None else value.decode("latin-1")

    @property
    def media_type(self) -> str:
        """What `Content-Type` names, in lower case and without parameters; "" if absent."""
        if self._media_type is None:
            self._media_type = (self.get("content-type") or "").partition(";")[0].strip().casefold()
        return self._media_type

    def __contains__(self, name: str) -> bool:
        return name.lower().encode("latin-1") in self._map

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Name (lower case) and value of each field, in order, several of one name joined."""
        return ((n.decode("latin-1"), v.decode("latin-1")) for n, v in self._map.items())

    def __len__(self) -> int:
        return len(self._map)


class Head:
    """All of a request but its body, read and checked. Requests whose heads are the same bytes may share one, on any
    connection of a listener.

    `path` is the target up to the question mark, as it came (not percent-decoded); `query` what follows it, or "". `memo` is
    for whoever handles requests: what this head means there, and nothing that may differ from one request to the next.
    """

    __slots__ = ("headers", "http10", "keep_alive", "length", "memo", "method", "path", "query", "raw")

    def __init__(self, method: str, target: str, headers: Headers, *, keep_alive: bool, http10: bool, length: int) -> None:
        """`length`: the bytes of body that this head announces, -1 where that is not known from it alone."""
        self.method = method
        self.path, _, self.query = target.partition("?")
        self.headers = headers
        self.keep_alive = keep_alive
        self.http10 = http10
        self.length = length
        self.memo: Any = None
        self.raw = b""
        """The bytes of a head that is kept by them."""


class Request:
    """One request with its whole body.

    `peer` is the client's address as the socket names it. `connection` lives as long as the client's connection;
    `connection.state` is a dict for whoever handles its requests.
    """

    __slots__ = ("_gone", "_listeners", "body", "connection", "head", "headers", "method")

    def __init__(self, head: Head, body: bytes, connection: Any) -> None:
        self.head = head
        self.method = head.method
        self.headers = head.headers
        self.body = body
        self.connection = connection
        self._listeners: list[Callable[[], None]] | None = None
        self._gone = False

    @property
    def path(self) -> str:
        """The target up to the question mark."""
        return self.head.path

    @property
    def query(self) -> str:
        """What follows the question mark, or ""."""
        return self.head.query

    @property
    def peer(self) -> Any:
        """The client's address: `(host, port)` or as the socket's family has it, None if unknown."""
        return self.connection.peer

    def header(self, name: str) -> str | None:
        """The value of a header field, whatever its case; None if absent."""
        return self.headers.get(name)

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Call `callback` once if the client goes away before its answer is complete (at once if it is
        gone)."""
        if self._gone:
            callback()
        elif self._listeners is None:
            self._listeners = [callback]
        else:
            self._listeners.append(callback)

    def disconnected(self) -> None:
        """Told by the connection: the client is gone."""
        self._gone = True
        listeners, self._listeners = self._listeners, None
        for callback in listeners or ():
            callback()

    def finished(self) -> None:
        """Told by the connection: the answer is complete, so nobody hears of a later disconnect."""
        self._listeners = None

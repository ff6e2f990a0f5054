"""One function for each parser of bytes from outside: it takes any bytes and raises where a promise is broken.

A promise is more than "no traceback": what one of our readings accepts, another must read alike. Refusals are `EarnestError`s;
anything else that is raised is a defect.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Callable
from typing import Any

import msgspec

from earnest.config import jsonc
from earnest.config.clients.dialect import entries, parsed
from earnest.config.clients.registry import CLIENTS
from earnest.config.policy.findings import Wrong
from earnest.config.policy.load import parse as parse_policy
from earnest.config.policy.lower import condition
from earnest.config.settings import parse as parse_settings
from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.gateway.process import handover
from earnest.net.client import ClientConnection, Handle
from earnest.net.connection import Connection
from earnest.net.limits import ServerLimits
from earnest.net.listener import Listener
from earnest.net.message import Headers, Request
from earnest.net.pool import Pool
from earnest.net.responder import Responder
from earnest.net.sse import Event, Parser
from earnest.net.tracks import compiled
from earnest.net.url import Origin
from earnest.pdp.floor import _REACHES
from earnest.protocol import calls, envelope, eras, headers, labels, outcomes
from earnest.protocol.salvage import salvage
from faults.wire.reading import form, read

LOOP = asyncio.new_event_loop()


class Wire:
    """A transport that keeps what was written."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: None


class Strict(Listener):
    """A listener whose defects are the fuzzer's."""

    def report(self, what: str, error: Exception) -> None:
        raise AssertionError(what) from error


def cut(data: bytes) -> tuple[int, bytes]:
    """A place to cut the rest at, told by the first byte."""
    return (data[0] * (len(data) - 1) // 255, data[1:]) if data else (0, b"")


# HTTP


def _requests(chunks: list[bytes], listener: Strict) -> tuple[list[tuple[Any, ...]], bytes]:
    seen: list[tuple[Any, ...]] = []

    def handler(request: Request, responder: Responder) -> None:
        length = request.header("content-length")
        assert length is None or int(length) == len(request.body), "another length than it says"
        assert length is None or request.header("transfer-encoding") is None, "two framings"
        assert request.path.startswith("/") and request.path.isascii()
        seen.append((request.method, request.path, request.query, tuple(request.headers), request.body))
        responder.json(200, b"{}")

    listener.handler = handler
    wire = Wire()
    connection = Connection(listener)
    connection.connection_made(wire)
    for chunk in chunks:
        connection.data_received(chunk)
    while connection._queue and not connection._closing and connection._busy is None:
        connection._next()
    return seen, wire.written.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")


def listener(data: bytes) -> None:
    """The HTTP listener: however the bytes are cut, and whether a head was seen before, the same requests and answers."""
    at, rest = cut(data)
    known = Strict(LOOP, lambda request, responder: None, ServerLimits(body=65536))
    whole = _requests([rest], known)
    assert _requests([rest], known) == whole, "a head that was read before is read otherwise"
    fresh = Strict(LOOP, lambda request, responder: None, ServerLimits(body=65536))
    assert _requests([part for part in (rest[:at], rest[at:]) if part], fresh) == whole, "a cut changes what is read"


class _Pool(Pool):
    """A pool whose defects are the fuzzer's."""

    def __init__(self) -> None:
        super().__init__(LOOP)
        self.now = lambda: 0.0

    def release(self, connection: ClientConnection) -> None:
        pass

    def report(self, error: Exception) -> None:
        raise AssertionError("a handler failed") from error


class _Heard:
    def __init__(self) -> None:
        self.status, self.headers, self.body, self.end_ = 0, (), b"", ""

    def head(self, status: int, headers: Headers) -> None:
        assert (not self.status and 200 <= status <= 599) or status >= 100
        self.status, self.headers = status, tuple(headers)  # type: ignore[assignment]

    def data(self, chunk: bytes) -> None:
        assert self.status and not self.end_
        self.body += chunk

    def end(self) -> None:
        assert self.status and not self.end_
        self.end_ = "end"

    def lost(self, error: EarnestError, sent: bool) -> None:
        assert not self.end_
        self.end_ = f"lost {error.code}"


def _answer(chunks: list[bytes], pool: _Pool) -> tuple[Any, ...]:
    connection = ClientConnection(pool, Origin("http", "127.0.0.1", 1))  # type: ignore[arg-type]
    connection.connection_made(Wire())  # type: ignore[arg-type]
    heard = _Heard()
    connection.start(Handle(connection.origin, b"", heard, False, 65536, float("inf")))
    for chunk in chunks:
        if heard.end_:
            break
        connection.data_received(chunk)
    if not heard.end_:
        connection.connection_lost(None)
    whole = heard.end_ == "end"
    return heard.status if whole else 0, heard.headers if whole else (), heard.body if whole else b"", heard.end_


def response(data: bytes) -> None:
    """An answer of a server: the same however it is cut and whether its head was seen before, and never a part as a whole."""
    at, rest = cut(data)
    pool = _Pool()
    whole = _answer([rest], pool)
    assert _answer([rest], pool) == whole, "a head that was read before is read otherwise"
    parts = _answer([part for part in (rest[:at], rest[at:]) if part], _Pool())
    # What follows an answer is the connection's business, and may come late; a whole answer is one either way.
    assert parts == whole or "lost" in (parts[3] + whole[3]), (parts, whole)


def _events(data: bytes) -> list[Event]:
    """As the standard has it, read from the whole text at once."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    found, kind, payload, last = [], b"", [], b""
    for line in lines:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if payload:
                found.append(Event(b"\n".join(payload), kind or b"message", last))
            kind, payload = b"", []
        elif name == b"data":
            payload.append(value)
        elif name == b"event":
            kind = value
        elif name == b"id" and b"\0" not in value:
            last = value
    return found


def sse(data: bytes) -> None:
    """An event stream: the events of the standard, however it is cut."""
    at, rest = cut(data)
    one = Parser(1 << 20)
    found = one.feed(rest[:at]) + one.feed(rest[at:])
    assert found == _events(rest)


# JSON


def _two_ways(data: bytes) -> Any:
    """What another program reads, None where it refuses, or where numbers or depth are beyond it."""
    try:
        return read(data)
    except (ValueError, RecursionError):
        return None


def message(data: bytes) -> None:
    """The envelope: what is accepted, another program reads alike, duplicates and all; written anew it is the same message."""
    try:
        found = envelope.parse(data)
    except envelope.WireError as error:
        json.loads(error.answer())
        whose = salvage(data)
        assert whose is None or whose.kind in ("request", "notification", "response", "error")
        handover._id_of(data)
        return
    for raw in (found.params, found.result, found.error):
        if raw and raw[:1] == b"{":
            _object(raw, found)
    again = envelope.parse(envelope.write(found))
    assert again == found, "written anew it is another message"
    if (whole := _two_ways(data)) is not None:
        assert whole.get("method", "") == found.method
        assert ("id" in whole and whole["id"] is not None) == bool(found.id)
        for name in ("params", "result", "error"):
            raw = getattr(found, name)
            assert not raw or form(read(raw)) == form(whole[name])


def _object(raw: bytes, found: envelope.Message) -> None:
    try:
        params = calls.read_params(raw)
        eras.is_modern(params)
        meta = calls.Metas().read(params)
        eras.modern_facts(meta, params, found.id)
    except EarnestError:
        pass
    outcome = outcomes.outcome(raw)
    assert outcome.malformed or outcome.result_type
    labels.tool_labels(raw)
    envelope.failure(raw)
    assert envelope.failure(envelope.whole_error(raw)).message


def canonical_form(data: bytes) -> None:
    """The canonical form: fast, exact, compiled and another program's agree; what has none, none of them gives one."""
    try:
        exact: bytes | None = canonical._exact(data)
    except EarnestError:
        exact = None
    for fast in (canonical._fast(data), compiled.canonical_form(data) if compiled is not None else None):
        assert fast is None or fast == exact, "two canonical forms"
    theirs = _two_ways(data)
    if exact is not None:
        assert canonical.canonical(exact) == exact
        assert theirs is None or form(theirs).encode() == exact, "another program reads it otherwise"
    elif theirs is not None:
        assert canonical.depth(data) > canonical.DEPTH, "refused without a reason"
    try:
        found = canonical.members(data)
    except EarnestError:
        return
    assert isinstance(theirs, dict) or theirs is None
    if theirs is not None:
        assert list(theirs) == list(found)


def header_values(data: bytes) -> None:
    """`Mcp-*` values: what decodes, encodes to what decodes alike; a tool's schema gives declarations or a refusal."""
    value = data.decode("latin-1")
    meant = headers.decode_value(value)
    if meant is not None:
        assert headers.decode_value(headers.encode_value(meant)) == meant
    try:
        headers.declared(data)
    except EarnestError:
        pass


def line(data: bytes) -> None:
    """A line of a pipe, as the daemon that resumes looks at it."""
    found = handover._id_of(data)
    if found:
        try:
            assert envelope.parse(data).id in (found, b"") or b"\\" in found
        except envelope.WireError:
            pass


def tracks(data: bytes) -> None:
    """The compiled piece: what it takes for plain or harmless, the long way takes for that too."""
    if compiled is None:
        return
    if (failed := compiled.plain(data)) is not None:
        found = outcomes.outcome(data)
        assert not found.malformed and found.result_type == "complete" and found.is_error == failed, "not plain at all"
        canonical.members(data)
    if not compiled.reaches(data) and canonical._fast(data) is not None:
        assert _REACHES.search(data) is None, "the floor would look at it"


# files


def settings(data: bytes) -> None:
    """earnest.toml: settings or a refusal with a place, never a traceback."""
    try:
        parse_settings("/nowhere/earnest.toml", data, {"HOME": "/nowhere"})
    except EarnestError as error:
        assert error.message


def policy(data: bytes) -> None:
    """A policy file, and a condition."""
    text = data.decode("utf-8", "replace")
    try:
        parse_policy(text)
    except EarnestError:
        pass
    try:
        condition(text[:2000])
    except (EarnestError, Wrong):
        pass


def clients(data: bytes) -> None:
    """A client's configuration: where it is JSON it means what JSON means, and every dialect reads it or refuses."""
    try:
        node = jsonc.scan("mcp.json", data)
    except EarnestError:
        node = None
    try:
        strict = json.loads(data.decode("utf-8"), parse_constant=_no)
    except (ValueError, RecursionError):
        strict = None
    if node is not None and strict is not None:
        assert _value(node) == strict, "it means something else than JSON"
    for dialect in CLIENTS:
        try:
            entries(dialect, parsed(dialect, "mcp.json", data))
        except EarnestError:
            pass


def _no(text: str) -> Any:
    raise ValueError(text)


def _value(node: Any) -> Any:
    if node.kind == "object":
        return {member.key: _value(member.node) for member in node.members}
    if node.kind == "array":
        return [_value(item) for item in node.items]
    return node.value


TARGETS: dict[str, Callable[[bytes], None]] = {
    "listener": listener,
    "response": response,
    "sse": sse,
    "message": message,
    "canonical": canonical_form,
    "headers": header_values,
    "tracks": tracks,
    "line": line,
    "settings": settings,
    "policy": policy,
    "clients": clients,
}

# Kept here so that a fuzzer's instrumentation of these modules is not undone by a later import.
_ = (msgspec, tomllib)

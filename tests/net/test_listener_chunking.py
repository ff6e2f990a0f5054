"""How the bytes of a connection are cut into reads changes nothing of what is answered (no sockets: a playbook)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.net.connection import Connection
from earnest.net.limits import ServerLimits
from earnest.net.listener import Listener
from earnest.net.message import Request
from earnest.net.responder import Responder
from properties import examples

PIECES = [
    b"GET /a?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
    b"POST /d HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
    b"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\nGET / HTT",
    b"POST /f HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /g HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET http://a/h HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /i HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n",
    b"\r\n",
]


class Wire:
    """The part of a transport that a connection uses; keeps what was written."""

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

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: None


def answers(loop: asyncio.AbstractEventLoop, chunks: list[bytes]) -> tuple[list[tuple[str, str, bytes]], bytes]:
    seen: list[tuple[str, str, bytes]] = []

    def handler(request: Request, responder: Responder) -> None:
        seen.append((request.path, request.query, request.body))
        responder.json(200, b"%d" % len(seen))

    wire = Wire()
    connection = Connection(Listener(loop, handler, ServerLimits(body=1000)))
    connection.connection_made(wire)
    for chunk in chunks:
        connection.data_received(chunk)
    return seen, wire.written.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")


@pytest.fixture(scope="module")
def loop() -> Any:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), st.lists(st.integers(1, 40), max_size=30))
@settings(max_examples=examples(200), deadline=None)
def test_any_cut_yields_the_same_requests_and_answers(
    loop: asyncio.AbstractEventLoop, pieces: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(pieces)
    whole = answers(loop, [stream])
    chunks, at = [], 0
    for cut in cuts:
        chunks.append(stream[at : at + cut])
        at += cut
    chunks.append(stream[at:])
    assert answers(loop, [c for c in chunks if c]) == whole
    assert answers(loop, [bytes([b]) for b in stream]) == whole


def test_a_body_is_never_read_as_the_next_request(loop: asyncio.AbstractEventLoop) -> None:
    seen, written = answers(loop, [PIECES[4] + PIECES[0]])
    assert [path for path, _, _ in seen] == ["/e", "/a"] and seen[0][2] == b"GET / HTT" and seen[1][1] == "x=1"
    assert written.count(b"HTTP/1.1 200") == 2

"""Heads that are kept by their bytes: what follows them is read as if they were not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from earnest.net.client import KnownHead
from earnest.net.limits import ServerLimits
from earnest.net.listener import Listener, serve
from earnest.net.message import Headers, Request
from earnest.net.pool import Pool
from earnest.net.responder import Responder
from earnest.net.url import Origin

HEAD = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"


def echo(request: Request, responder: Responder) -> None:
    responder.json(200, b"[%b]" % request.body)


@asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    limits = ServerLimits(body=1000, head_s=0.5, body_s=0.5, keep_alive_s=0.5, linger_s=0.1)
    listener = await serve(asyncio.get_running_loop(), "127.0.0.1", 0, echo, limits)
    try:
        yield listener
    finally:
        await listener.close()


async def bodies(listener: Listener, *pieces: bytes, answers: int) -> list[bytes]:
    """Send the pieces one by one; the bodies of so many answers."""
    reader, writer = await asyncio.open_connection(*listener.address)
    got = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.01)
        while len(found := re.findall(rb"\r\n\r\n(\[.*?\]|\{.*?\})", got)) < answers:
            data = await asyncio.wait_for(reader.read(65536), 60)
            if not data:
                break
            got += data
        return found
    finally:
        writer.close()


async def test_a_known_head_is_kept_once_and_its_body_is_each_request_s_own() -> None:
    async with listening() as listener:
        assert await bodies(listener, HEAD + b"first", HEAD + b"other", answers=2) == [b"[first]", b"[other]"]
        assert list(listener.heads) == [HEAD]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((HEAD, b"other"), id="the body comes later"),
        pytest.param((HEAD + b"ot", b"her"), id="the body comes in pieces"),
        pytest.param((HEAD[:20], HEAD[20:] + b"other"), id="the head comes in pieces"),
        pytest.param((b"\r\n" + HEAD + b"other",), id="an empty line before it"),
    ],
)
async def test_a_known_head_in_pieces_is_read_as_ever(pieces: tuple[bytes, ...]) -> None:
    async with listening() as listener:
        await bodies(listener, HEAD + b"first", answers=1)
        assert await bodies(listener, *pieces, HEAD + b"third", answers=2) == [b"[other]", b"[third]"]


async def test_requests_behind_a_known_head_are_each_answered_in_order() -> None:
    async with listening() as listener:
        await bodies(listener, HEAD + b"first", answers=1)
        found = await bodies(listener, (HEAD + b"other") * 2 + HEAD + b"third", answers=3)
        assert found == [b"[other]", b"[other]", b"[third]"]


async def test_bytes_behind_a_known_head_s_body_are_a_request_and_refused_if_they_are_none() -> None:
    async with listening() as listener:
        await bodies(listener, HEAD + b"first", answers=1)
        found = await bodies(listener, HEAD + b"otherGARBAGE\r\n\r\n", answers=2)
        assert found[0] == b"[other]" and b"malformed" in found[1]


@pytest.mark.parametrize(
    "line",
    [
        b"Connection: close\r\n",
        b"Expect: 100-continue\r\n",
        b"Upgrade: h2c\r\nConnection: upgrade\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"X: " + b"x" * 5000 + b"\r\n",
    ],
)
async def test_heads_that_do_more_than_say_what_follows_are_not_kept(line: bytes) -> None:
    chunked = b"5\r\nfirst\r\n0\r\n\r\n"
    head = HEAD.replace(b"Content-Length: 5\r\n", b"") if b"chunked" in line else HEAD
    async with listening() as listener:
        request = head[:-2] + line + b"\r\n" + (chunked if b"chunked" in line else b"first")
        assert await bodies(listener, request, answers=1) == [b"[first]"]
        assert not listener.heads


async def test_the_heads_a_listener_keeps_are_bounded() -> None:
    async with listening() as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        for n in range(1100):
            writer.write(b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1" % n)
            await asyncio.wait_for(reader.readuntil(b"[1]"), 60)
        writer.close()
        assert 0 < len(listener.heads) <= 512


class Heard:
    def __init__(self) -> None:
        self.told: list[object] = []
        self.done = asyncio.Event()

    def head(self, status: int, headers: Headers) -> None:
        self.told.append((status, headers.get("x")))

    def data(self, chunk: bytes) -> None:
        self.told.append(chunk)

    def end(self) -> None:
        self.told.append("end")
        self.done.set()

    def lost(self, error: Exception, sent: bool) -> None:
        self.told.append(f"lost {error}")
        self.done.set()


@asynccontextmanager
async def answering(*answers: tuple[bytes, ...]) -> AsyncIterator[tuple[Pool, Origin, list[int]]]:
    """A server that gives each request the next answer, piece by piece; also how many connections it had."""
    script = iter(answers)
    connections = [0]

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections[0] += 1
        while await reader.readuntil(b"\r\n\r\n"):
            for piece in next(script):
                writer.write(piece)
                await asyncio.sleep(0.01)

    def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve_one(reader, writer))
        task.add_done_callback(lambda t: t.cancelled() or t.exception())

    server = await asyncio.start_server(quiet, "127.0.0.1", 0)
    pool = Pool(asyncio.get_running_loop())
    try:
        yield pool, Origin("http", "127.0.0.1", server.sockets[0].getsockname()[1]), connections
    finally:
        await pool.close()
        server.close()


ANSWER = b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\n"


async def asked(pool: Pool, origin: Origin, **settings: int) -> list[object]:
    heard = Heard()
    pool.request(origin, "GET", "/", (), b"", heard, **settings)  # type: ignore[arg-type]
    await asyncio.wait_for(heard.done.wait(), 60)
    return heard.told


@pytest.mark.parametrize(
    "pieces", [(ANSWER + b"no",), (ANSWER, b"no"), (ANSWER + b"n", b"o"), (ANSWER[:9], ANSWER[9:] + b"no")], ids=range(4)
)
async def test_an_answer_with_a_known_head_is_told_as_ever_and_its_connection_kept(pieces: tuple[bytes, ...]) -> None:
    async with answering((ANSWER + b"ok",), pieces, (ANSWER + b"ok",)) as (pool, origin, connections):
        assert await asked(pool, origin) == [(200, "y"), b"ok", "end"]
        assert isinstance(pool.heads[ANSWER], KnownHead)
        told = await asked(pool, origin)
        assert (told[0], b"".join(t for t in told if isinstance(t, bytes)), told[-1]) == ((200, "y"), b"no", "end")
        assert await asked(pool, origin) == [(200, "y"), b"ok", "end"]
        assert connections == [1]


async def test_a_second_answer_behind_a_known_head_is_never_taken_for_the_next() -> None:
    script = ((ANSWER + b"ok",), (ANSWER + b"ok" + ANSWER + b"no",), (ANSWER + b"ok",))
    async with answering(*script) as (pool, origin, connections):
        for _ in range(2):
            await asked(pool, origin)
        assert await asked(pool, origin) == [(200, "y"), b"ok", "end"]
        assert connections == [2]


async def test_the_bound_on_an_answer_holds_for_known_heads() -> None:
    async with answering((ANSWER + b"ok",), (ANSWER + b"ok",)) as (pool, origin, _):
        await asked(pool, origin)
        told = await asked(pool, origin, max_body=1)
        assert len(told) == 1 and "larger than 1 bytes" in str(told[0])


async def test_answers_that_end_their_connection_are_not_kept() -> None:
    closing = ANSWER[:-2] + b"Connection: close\r\n\r\nok"
    async with answering((closing,), (ANSWER + b"ok",)) as (pool, origin, connections):
        await asked(pool, origin)
        assert not pool.heads
        await asked(pool, origin)
        assert connections == [2]

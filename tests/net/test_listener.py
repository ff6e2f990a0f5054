"""The listener, by raw bytes on a loopback socket: what it serves, what it refuses, in which order it
answers."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.net.limits import ServerLimits
from earnest.net.listener import Listener, serve
from earnest.net.message import Request
from earnest.net.responder import Responder

QUICK = ServerLimits(
    body=1000,
    headers=20,
    header_bytes=2000,
    target=200,
    head_s=60,
    body_s=60,
    keep_alive_s=0.3,
    linger_s=0.1,
)
HASTY = ServerLimits(head_s=0.2, body_s=0.2, keep_alive_s=0.3)
POST = b"POST /mcp HTTP/1.1\r\nHost: a\r\n"


def echo(request: Request, responder: Responder) -> None:
    responder.json(200, b'{"path":"%b","len":%d}' % (request.path.encode(), len(request.body)))


@asynccontextmanager
async def listening(
    handler: Callable[[Request, Responder], None] = echo, limits: ServerLimits = QUICK
) -> AsyncIterator[Listener]:
    listener = await serve(asyncio.get_running_loop(), "127.0.0.1", 0, handler, limits)
    try:
        yield listener
    finally:
        await listener.close()


async def until(condition: Callable[[], object]) -> None:
    """Until the listener has come so far."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def talk(listener: Listener, *pieces: bytes, until_eof: bool = True) -> bytes:
    """Send the pieces one by one, return all that comes until the listener closes; it may do so before it has had them all."""
    reader, writer = await asyncio.open_connection(*listener.address)
    answer = asyncio.ensure_future(asyncio.wait_for(reader.read(-1), 60))
    try:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
        return await answer
    finally:
        answer.cancel()
        writer.close()


def statuses(answer: bytes) -> list[int]:
    return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d{3})", answer)]


async def test_a_request_is_answered_in_full_and_with_the_safety_headers() -> None:
    async with listening() as listener:
        answer = await talk(listener, POST + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b'{"path":"/mcp","len":5}'
    for line in (
        b"X-Content-Type-Options: nosniff",
        b"Content-Security-Policy: default-src 'none'; sandbox",
        b"Cache-Control: no-store",
        b"Content-Type: application/json",
        b"Connection: close",
    ):
        assert line in head.split(b"\r\n")


@pytest.mark.parametrize(
    ("name", "data", "status"),
    [
        (
            "length and coding",
            POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "coding and length",
            POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("two lengths", POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        ("two equal lengths", POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
        ("list of lengths", POST + b"Content-Length: 5, 5\r\n\r\nhello", 400),
        ("signed length", POST + b"Content-Length: +5\r\n\r\nhello", 400),
        ("empty length", POST + b"Content-Length: \r\n\r\n", 400),
        ("bad chunk size", POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400),
        ("huge chunk size", POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
        ("chunk longer than said", POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", 400),
        ("bare LF after chunk size", POST + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", 400),
        ("trailer", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n", 400),
        ("coding twice", POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", 400),
        ("another coding", POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        ("unknown coding", POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
        ("coding in 1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("folded line", POST + b"X: a\r\n b\r\n\r\n", 400),
        ("bare LF", b"POST / HTTP/1.1\nHost: a\n\n", 400),
        ("bare LF in a header", b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
        ("bare CR in a header", b"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400),
        ("NUL in a header", POST + b"X: a\0b\r\n\r\n", 400),
        ("space before the colon", POST + b"Content-Length : 5\r\n\r\nhello", 400),
        ("line before the first header", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        ("two hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHOST: b\r\n\r\n", 400),
        ("two authorizations", POST + b"Authorization: a\r\nauthorization: a\r\n\r\n", 400),
        ("two origins", POST + b"Origin: a\r\nOrigin: b\r\n\r\n", 400),
        ("two content types", POST + b"Content-Type: a\r\nContent-Type: b\r\n\r\n", 400),
        ("two methods", POST + b"Mcp-Method: a\r\nMCP-METHOD: a\r\n\r\n", 400),
        ("two parameters", POST + b"Mcp-Param-X: a\r\nMcp-Param-X: a\r\n\r\n", 400),
        ("no host", b"GET / HTTP/1.1\r\n\r\n", 400),
        ("absolute form", b"GET http://a/mcp HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("authority form", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("asterisk form", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("fragment", b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("HTTP/2", b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        ("HTTP/0.9", b"GET /\r\n\r\n", 505),
        ("RTSP", b"DESCRIBE / RTSP/1.0\r\nHost: a\r\n\r\n", 501),
        ("unknown method", b"PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        ("too many headers", POST + b"".join(b"X-%d: 1\r\n" % n for n in range(30)) + b"\r\n", 431),
        ("large headers", POST + b"X: " + b"y" * 2500 + b"\r\n\r\n", 431),
        ("long target", b"GET /" + b"a" * 300 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        ("large body announced", POST + b"Content-Length: 1001\r\n\r\n", 413),
        ("absurd length", POST + b"Content-Length: 9999999999999999999\r\n\r\n", 413),
        (
            "large body in chunks",
            POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1f4\r\n%b\r\n" % (b"x" * 500) * 3,
            413,
        ),
        ("another expectation", POST + b"Expect: tea\r\nContent-Length: 1\r\n\r\na", 417),
    ],
)
async def test_a_request_that_two_parsers_could_read_differently_is_refused(name: str, data: bytes, status: int) -> None:
    seen: list[Request] = []

    def handler(request: Request, responder: Responder) -> None:
        seen.append(request)
        echo(request, responder)

    async with listening(handler) as listener:
        whole = await talk(listener, data + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
        split = await talk(listener, *(data[n : n + 40] for n in range(0, min(len(data), 800), 40)), data[800:])
    assert statuses(whole) == [status], name
    assert statuses(split) in ([status], [400]), name
    assert b"Connection: close" in whole
    assert seen == []


async def test_a_header_that_never_ends_is_refused_by_the_bytes_that_came() -> None:
    async with listening() as listener:
        answer = await talk(listener, POST + b"X: ", *[b"y" * 500] * 8)
    assert statuses(answer) == [431]


async def test_a_chunk_extension_that_never_ends_is_refused() -> None:
    async with listening() as listener:
        answer = await talk(listener, POST + b"Transfer-Encoding: chunked\r\n\r\n1;", *[b"y" * 500] * 12)
    assert statuses(answer) == [400]


async def test_bytes_may_come_one_by_one() -> None:
    data = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    limits = ServerLimits()
    async with listening(limits=limits) as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        for byte in data:
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await reader.read(-1)).endswith(b'{"path":"/mcp","len":5}')
        writer.close()


async def test_pipelined_requests_are_handled_one_at_a_time_and_answered_in_order() -> None:
    waiting: list[tuple[Request, Responder]] = []
    async with listening(lambda request, responder: waiting.append((request, responder))) as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % n for n in range(4)) + b"NONSENSE\r\n\r\n")
        for n in range(4):
            await until(lambda n=n: len(waiting) > n)
            assert [r.path for r, _ in waiting] == [f"/{k}" for k in range(n + 1)]
            waiting[n][1].json(200, b"%d" % n)
        answer = await asyncio.wait_for(reader.read(-1), 60)
        writer.close()
    assert statuses(answer) == [200] * 4 + [400]
    assert re.findall(rb"\r\n\r\n(\d)HTTP", answer) == [b"0", b"1", b"2", b"3"]


async def test_a_client_cannot_pile_up_requests_without_end() -> None:
    async with listening(lambda request, responder: None) as listener:
        _, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 5000)
        await asyncio.sleep(0.1)
        (connection,) = listener.connections
        assert len(connection._queue) <= QUICK.pipelined + 1
        writer.close()


async def test_http_10_is_answered_and_closed() -> None:
    async with listening() as listener:
        answer = await talk(listener, b"GET /old HTTP/1.0\r\n\r\n")
    assert statuses(answer) == [200] and b"Connection: close" in answer


async def test_an_offered_upgrade_is_ignored_and_the_body_read() -> None:
    offer = POST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    plain = offer + b"Content-Length: 5\r\n\r\nhello"
    chunked = offer + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    last = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    async with listening() as listener:
        answer = await talk(listener, plain + chunked + last)
        in_two = await talk(listener, plain[:-3], b"llo" + last)
    assert statuses(answer) == [200, 200, 200]
    assert b'"len":5' in answer and b'"len":2' in answer and b"/last" in answer
    assert statuses(in_two) == [200, 200] and b'"len":5' in in_two


@pytest.mark.parametrize("version,connection", [(b"1.0", b"Upgrade"), (b"1.1", b"close, Upgrade")])
async def test_behind_an_offered_upgrade_on_a_connection_that_closes_nothing_is_read(version: bytes, connection: bytes) -> None:
    head = b"POST /a HTTP/%b\r\nHost: a\r\nConnection: %b\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}" % (
        version,
        connection,
    )
    async with listening() as listener:
        for behind in (b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n", b"{junk}"):
            assert statuses(await talk(listener, head + behind)) == [200]


async def test_a_client_that_expects_100_is_told_to_go_on() -> None:
    async with listening() as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"ab")
        assert b'"len":2' in await asyncio.wait_for(reader.readuntil(b"}"), 60)
        writer.write(POST + b"Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n")
        assert statuses(await asyncio.wait_for(reader.read(-1), 60)) == [413]
        writer.close()


async def test_the_100_waits_for_the_answer_that_is_owed() -> None:
    waiting: list[Responder] = []
    async with listening(lambda _, responder: waiting.append(responder)) as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + POST + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        await until(lambda: waiting)
        waiting[0].json(200, b"{}")
        assert statuses(await asyncio.wait_for(reader.readuntil(b"Continue\r\n\r\n"), 60)) == [200, 100]
        writer.close()


@pytest.mark.parametrize(
    ("pieces", "status"),
    [((), []), ((b"POST / HT",), [408]), ((POST,), [408]), ((POST + b"Content-Length: 9\r\n\r\nab",), [408])],
)
async def test_a_slow_client_is_timed_out(pieces: tuple[bytes, ...], status: list[int]) -> None:
    async with listening(limits=HASTY) as listener:
        assert statuses(await talk(listener, *pieces)) == status


async def test_a_kept_connection_that_is_idle_is_closed_and_one_that_is_served_is_not() -> None:
    waiting: list[Responder] = []
    async with listening(lambda _, responder: waiting.append(responder)) as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(0.6)
        waiting[0].json(200, b"{}")
        assert statuses(await asyncio.wait_for(reader.read(-1), 60)) == [200]
        writer.close()


async def test_a_refused_upload_still_receives_its_answer() -> None:
    async with listening() as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(POST + b"Content-Length: 300000\r\n\r\n" + b"x" * 300000)
        assert statuses(await asyncio.wait_for(reader.read(-1), 60)) == [413]
        writer.close()


async def test_connections_beyond_the_limit_are_turned_away() -> None:
    async with listening(limits=ServerLimits(connections=1)) as listener:
        _, first = await asyncio.open_connection(*listener.address)
        await until(lambda: listener.connections)
        assert statuses(await talk(listener)) == [503]
        first.close()


async def test_a_disconnect_is_told_once_and_answers_after_it_go_nowhere() -> None:
    told: list[str] = []
    kept: list[Responder] = []

    def handler(request: Request, responder: Responder) -> None:
        request.on_disconnect(lambda: told.append(request.path))
        kept.append(responder)

    async with listening(handler) as listener:
        _, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")
        await until(lambda: kept)
        writer.close()
        await until(lambda: told)
        kept[0].json(200, b"{}")
    assert told == ["/a"] and len(kept) == 1


async def test_an_answered_request_hears_of_no_disconnect() -> None:
    told: list[str] = []

    def handler(request: Request, responder: Responder) -> None:
        request.on_disconnect(lambda: told.append(request.path))
        responder.empty(202)

    async with listening(handler) as listener:
        assert statuses(await talk(listener, POST + b"Connection: close\r\n\r\n")) == [202]
    assert told == []


async def test_a_handler_that_fails_costs_its_request_only() -> None:
    def handler(request: Request, responder: Responder) -> None:
        if request.path == "/bad":
            raise KeyError("secret")
        echo(request, responder)

    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["exception"]))
    bad = b"GET /bad HTTP/1.1\r\nHost: a\r\n\r\n"
    async with listening(handler) as listener:
        answer = await talk(listener, bad + POST + b"Connection: close\r\n\r\n")
    assert statuses(answer) == [500, 200] and b"secret" not in answer
    assert [type(e) for e in reports] == [KeyError]


async def test_a_second_answer_is_a_defect_and_never_sent() -> None:
    raised: list[bool] = []

    def handler(request: Request, responder: Responder) -> None:
        responder.json(200, b"{}")
        with pytest.raises(RuntimeError):
            responder.json(200, b"{}")
        raised.append(True)

    async with listening(handler) as listener:
        assert statuses(await talk(listener, POST + b"Connection: close\r\n\r\n")) == [200]
    assert raised == [True]


async def test_a_header_value_cannot_end_its_line() -> None:
    errors: list[Exception] = []

    def handler(request: Request, responder: Responder) -> None:
        for header in (("X", "a\r\nSet-Cookie: b"), ("X\r\nY", "a"), ("X", "a\0")):
            with pytest.raises(ValueError) as info:
                responder.json(200, b"{}", [header])
            errors.append(info.value)
        responder.json(200, b"{}", [("Mcp-Session-Id", "s1")])

    async with listening(handler) as listener:
        assert b"Mcp-Session-Id: s1\r\n" in await talk(listener, POST + b"Connection: close\r\n\r\n")
    assert len(errors) == 3


async def test_an_event_stream_is_chunked_and_the_connection_serves_on() -> None:
    def handler(request: Request, responder: Responder) -> None:
        if request.method == "GET":
            return echo(request, responder)
        stream = responder.stream()
        stream.event(b'{"a":1}')
        stream.event(b"{}", "7")
        stream.close()
        stream.event(b"late")
        return None

    async with listening(handler) as listener:
        answer = await talk(listener, POST + b"\r\n" + b"GET /n HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert b"Content-Type: text/event-stream" in head and b"X-Accel-Buffering: no" in head and b"nosniff" in head
    assert rest.startswith(b'f\r\ndata: {"a":1}\n\n\r\n10\r\nid: 7\ndata: {}\n\n\r\n0\r\n\r\nHTTP/1.1 200')
    assert b"late" not in answer


async def test_an_event_stream_to_http_10_ends_with_the_connection() -> None:
    def handler(request: Request, responder: Responder) -> None:
        stream = responder.stream()
        stream.event(b"1")
        stream.close()

    async with listening(handler) as listener:
        answer = await talk(listener, b"GET / HTTP/1.0\r\n\r\n")
    assert answer.endswith(b"\r\n\r\ndata: 1\n\n") and b"chunked" not in answer


async def test_silence_on_a_stream_is_filled_with_comments() -> None:
    async with listening(lambda _, r: r.stream(), ServerLimits(comment_s=0.1)) as listener:  # type: ignore[arg-type]
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(POST + b"\r\n")
        answer = await asyncio.wait_for(reader.readuntil(b":\n\n\r\n"), 60)
        assert answer.endswith(b"3\r\n:\n\n\r\n")
        writer.close()


async def test_a_stream_tells_when_the_client_reads_too_slowly_and_when_it_reads_again() -> None:
    streams: list[Any] = []
    again: list[int] = []

    def handler(request: Request, responder: Responder) -> None:
        streams.append(responder.stream())

    async with listening(handler, ServerLimits(queued_bytes=40_000_000)) as listener:
        reader, writer = await asyncio.open_connection(*listener.address, limit=1024)
        writer.write(POST + b"\r\n")
        await until(lambda: streams)
        stream = streams[0]
        stream.on_writable = lambda: again.append(1)
        for _ in range(200):
            stream.event(b"x" * 100_000)
        assert not stream.writable and again == []
        while not again:
            assert await asyncio.wait_for(reader.read(1_000_000), 60)
        assert stream.writable
        writer.close()


async def test_a_client_that_leaves_too_much_unread_is_disconnected() -> None:
    gone: list[int] = []

    def handler(request: Request, responder: Responder) -> None:
        request.on_disconnect(lambda: gone.append(1))
        stream = responder.stream()
        for _ in range(300):
            stream.event(b"x" * 100_000)

    async with listening(handler, ServerLimits(queued_bytes=200_000)) as listener:
        sock = socket.create_connection(listener.address)
        sock.sendall(POST + b"\r\n")
        await until(lambda: gone)
        assert gone == [1]
        sock.close()


async def test_a_client_that_reads_nothing_is_disconnected_in_time() -> None:
    gone: list[int] = []

    def handler(request: Request, responder: Responder) -> None:
        request.on_disconnect(lambda: gone.append(1))
        responder.stream().event(b"x" * 20_000_000)

    async with listening(handler, ServerLimits(stalled_s=0.2)) as listener:
        sock = socket.create_connection(listener.address)
        sock.sendall(POST + b"\r\n")
        await until(lambda: gone)
        sock.close()
    assert gone == [1]


async def test_closing_lets_the_answer_under_way_end() -> None:
    waiting: list[Responder] = []
    async with listening(lambda _, responder: waiting.append(responder)) as listener:
        task = asyncio.create_task(talk(listener, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
        await until(lambda: waiting)
        closing = asyncio.create_task(listener.close(grace_s=60))
        await asyncio.sleep(0.05)
        waiting[0].json(200, b"{}")
        assert statuses(await task) == [200]
        await closing


async def test_a_port_in_use_is_one_clear_error() -> None:
    async with listening() as listener:
        with pytest.raises(EarnestError) as info:
            await serve(asyncio.get_running_loop(), *listener.address, echo, QUICK)
    assert info.value.code == "E1540" and "in use" in info.value.message

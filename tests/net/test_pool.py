"""The client pool against scripted servers: what it accepts, when it reuses, and that nothing is sent twice."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.net.client import Handle
from earnest.net.dial import TlsSettings, client_context
from earnest.net.limits import ClientLimits
from earnest.net.message import Headers
from earnest.net.pool import Pool
from earnest.net.url import Origin, split

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Heard:
    """Records the callbacks of one request."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers | None = None
        self.body = b""
        self.error: EarnestError | None = None
        self.sent = False
        self.ends = 0
        self.done = asyncio.Event()
        self.some_data = asyncio.Event()

    def head(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers

    def data(self, chunk: bytes) -> None:
        self.body += chunk
        self.some_data.set()

    def end(self) -> None:
        self.ends += 1
        self.done.set()

    def lost(self, error: EarnestError, sent: bool) -> None:
        self.ends += 1
        self.error, self.sent = error, sent
        self.done.set()

    async def wait(self) -> Heard:
        await asyncio.wait_for(self.done.wait(), 60)
        return self


class Server:
    """Answers the n-th request (over all connections) with the n-th script entry; None closes without a word."""

    def __init__(self, *script: bytes | None, then_close: bool = False) -> None:
        self.script = list(script)
        self.then_close = then_close
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
                body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
                self.requests.append(head + body)
                answer = self.script.pop(0) if self.script else OK
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if self.then_close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        self.closed += 1
        writer.close()


async def until(condition: Callable[[], object]) -> None:
    """Until the other side has come so far."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@asynccontextmanager
async def pooled(
    server: Server, limits: ClientLimits | None = None, tls: TlsSettings | None = None, context: Any = None
) -> AsyncIterator[tuple[Pool, Callable[..., tuple[Heard, Handle]]]]:
    listening = await asyncio.start_server(server.client, "127.0.0.1", 0, ssl=context)
    origin = Origin("https" if context else "http", "127.0.0.1", listening.sockets[0].getsockname()[1])
    pool = Pool(asyncio.get_running_loop(), limits, tls)

    def send(method: str = "POST", body: bytes = b"{}", **more: Any) -> tuple[Heard, Handle]:
        heard = Heard()
        return heard, pool.request(origin, method, "/mcp", [("X-A", "b")], body, heard, **more)

    try:
        yield pool, send
    finally:
        await pool.close()
        listening.close()
        for writer in server.writers:
            writer.close()
        await asyncio.sleep(0.01)


async def test_a_request_goes_out_whole_and_its_answer_comes_back() -> None:
    server = Server(b"HTTP/1.1 202 Accepted\r\nX-Y: z\r\nContent-Length: 3\r\n\r\nabc")
    async with pooled(server) as (_, send):
        heard = await send(body=b'{"a":1}')[0].wait()
    assert (heard.status, heard.body, heard.ends) == (202, b"abc", 1)
    assert heard.headers is not None and heard.headers.get("x-y") == "z"
    head = server.requests[0].split(b"\r\n")
    assert head[0] == b"POST /mcp HTTP/1.1" and head[-1] == b'{"a":1}'
    assert b"Accept-Encoding: identity" in head and b"X-A: b" in head and b"Content-Length: 7" in head


async def test_a_kept_connection_is_used_again() -> None:
    server = Server()
    async with pooled(server) as (_, send):
        for _ in range(5):
            assert (await send()[0].wait()).body == b"ok"
    assert server.connections == 1 and len(server.requests) == 5


async def test_requests_at_once_share_no_connection() -> None:
    server = Server()
    async with pooled(server) as (_, send):
        heard = [send()[0] for _ in range(6)]
        assert [(await h.wait()).body for h in heard] == [b"ok"] * 6
    assert server.connections == 6


async def test_requests_beyond_the_limit_wait_for_a_connection() -> None:
    server = Server()
    async with pooled(server, ClientLimits(connections=2)) as (_, send):
        heard = [send()[0] for _ in range(9)]
        assert [(await h.wait()).status for h in heard] == [200] * 9
    assert server.connections == 2


async def test_too_many_waiting_requests_are_told_at_once_and_never_inside_the_call() -> None:
    async with pooled(Server(), ClientLimits(connections=1, waiting=1)) as (_, send):
        send()
        heard, _ = send()
        assert heard.error is None
        await heard.wait()
    assert heard.error is not None and heard.error.code == "E1228" and not heard.sent


@pytest.mark.parametrize("safe", [False, True])
async def test_a_request_on_a_connection_that_just_died_is_sent_again_only_if_it_is_safe(safe: bool) -> None:
    server = Server(OK, None)
    async with pooled(server) as (_, send):
        await send()[0].wait()
        heard = await send(safe=safe)[0].wait()
    if safe:
        assert heard.body == b"ok" and len(server.requests) == 3
    else:
        assert heard.error is not None and heard.error.code == "E1224" and heard.sent
        assert len(server.requests) == 2


async def test_a_safe_request_is_sent_again_once_at_most_and_never_from_a_fresh_connection() -> None:
    server = Server(OK, None, None, OK)
    async with pooled(server) as (_, send):
        await send()[0].wait()
        heard = await send(safe=True)[0].wait()
        assert heard.error is not None and heard.sent and len(server.requests) == 3
    server = Server(None, OK)
    async with pooled(server) as (_, send):
        assert (await send(safe=True)[0].wait()).error is not None
    assert len(server.requests) == 1


async def test_a_safe_request_is_not_sent_again_once_an_answer_began() -> None:
    server = Server(OK, b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", then_close=False)
    async with pooled(server) as (_, send):
        await send()[0].wait()
        heard, _ = send(safe=True)
        await until(lambda: heard.headers)
        server.writers[0].close()
        await heard.wait()
    assert heard.error is not None and heard.error.code == "E1224" and len(server.requests) == 2


async def test_a_connection_that_was_idle_too_long_is_not_used() -> None:
    server = Server(OK, b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n")
    async with pooled(server, ClientLimits(idle_s=0.1)) as (_, send):
        await send()[0].wait()
        await until(lambda: server.closed)
        await send()[0].wait()
        await send()[0].wait()
    assert server.connections == 3


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "E1225"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "E1225"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", "E1225"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\na", "E1225"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "E1225"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "E1225"),
        (b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "E1225"),
        (b"SSH-2.0-OpenSSH_9\r\n", "E1225"),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "E1225"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", "E1226"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n", "E1226"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", "E1226"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000, "E1226"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "E1226"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"y" * 900_000, "E1226"),
    ],
)
async def test_an_answer_that_breaks_the_rules_is_refused(answer: bytes, code: str) -> None:
    server = Server(answer)
    async with pooled(server) as (_, send):
        heard = await send(max_body=1000)[0].wait()
        assert heard.error is not None and heard.error.code == code and heard.sent and heard.ends == 1
        assert (await send()[0].wait()).body == b"ok"
    assert server.connections == 2


async def test_bytes_behind_an_answer_never_become_the_next_answer() -> None:
    poison = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    for behind in (poison, b"JUNK\r\n"):
        server = Server(OK + behind)
        async with pooled(server) as (_, send):
            first = send()[0]
            second = None

            def end(first: Heard = first, send: Any = send) -> None:
                nonlocal second
                second = send()[0]
                first.done.set()

            first.end = end  # type: ignore[method-assign]
            await first.wait()
            assert first.body == b"ok" and second is not None
            assert (await second.wait()).body == b"ok"
        assert server.connections == 2


async def test_bytes_on_an_idle_connection_end_it() -> None:
    server = Server()
    async with pooled(server) as (_, send):
        await send()[0].wait()
        server.writers[0].write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await asyncio.sleep(0.05)
        assert (await send()[0].wait()).body == b"ok"
    assert server.connections == 2


async def test_early_answers_are_skipped_and_an_unframed_body_ends_with_the_connection() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    async with pooled(Server(early + OK)) as (_, send):
        heard = await send()[0].wait()
        assert (heard.status, heard.body) == (200, b"ok")
        assert heard.headers is not None and heard.headers.get("link") is None
    async with pooled(Server(b"HTTP/1.0 200 OK\r\n\r\nall of it", then_close=True)) as (_, send):
        assert (await send()[0].wait()).body == b"all of it"


async def test_a_framed_body_that_ends_early_is_lost() -> None:
    half = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    async with pooled(Server(half, then_close=True)) as (_, send):
        heard = await send()[0].wait()
        assert heard.error is not None and heard.error.code == "E1224" and heard.body == b"hello"


async def test_cancel_closes_the_connection_and_nothing_more_is_heard() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
    async with pooled(server) as (_, send):
        heard, handle = send()
        await heard.some_data.wait()
        handle.cancel()
        handle.cancel()
        await until(lambda: server.closed)
    assert heard.ends == 0 and server.closed == 1


async def test_a_request_cancelled_before_it_was_sent_is_never_sent() -> None:
    server = Server()
    async with pooled(server) as (_, send):
        heard, handle = send()
        handle.cancel()
        await asyncio.sleep(0.05)
    assert server.requests == [] and heard.ends == 0


async def test_pausing_holds_back_the_server() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n" + b"x" * 30_000_000)
    async with pooled(server) as (_, send):
        heard, handle = send()
        await heard.some_data.wait()
        handle.pause()
        await asyncio.sleep(0.05)
        held = len(heard.body)
        await asyncio.sleep(0.1)
        assert len(heard.body) == held < 30_000_000
        handle.resume()
        await heard.wait()
    assert len(heard.body) == 30_000_000


async def test_no_answer_in_time_is_lost_and_the_connection_cut() -> None:
    server = Server(b"")
    async with pooled(server) as (_, send):
        heard = await send(head_s=0.1)[0].wait()
        await until(lambda: server.closed)
    assert heard.error is not None and heard.error.code == "E1227" and heard.sent and server.closed == 1


async def test_each_failure_to_connect_has_its_own_error() -> None:
    pool = Pool(asyncio.get_running_loop(), ClientLimits(connect_s=0.2))
    listening = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    cases = {
        Origin("https", "127.0.0.1", port): "E1223",  # accepts, never speaks TLS
        Origin("http", "127.0.0.1", 1): "E1221",
        Origin("http", "name.invalid", 80): "E1220",
    }
    for origin, code in cases.items():
        heard = Heard()
        pool.request(origin, "POST", "/", [], b"", heard)
        await heard.wait()
        assert heard.error is not None and not heard.sent
        assert heard.error.code in ((code, "E1223") if code == "E1220" else (code,)), heard.error
    await pool.close()
    listening.close()


async def test_tls_is_verified_against_the_servers_own_authority_and_a_client_may_identify(
    pem: tuple[str, str],
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pem)
    context.load_verify_locations(pem[0])
    context.verify_mode = ssl.CERT_REQUIRED
    server = Server()
    async with pooled(server, tls=TlsSettings(pem[0], pem[0], pem[1]), context=context) as (_, send):
        assert (await send()[0].wait()).body == b"ok"
    async with pooled(Server(), context=context) as (_, send):
        heard = await send()[0].wait()
        assert heard.error is not None and heard.error.code == "E1222" and not heard.sent
        assert "not valid" in heard.error.message
    async with pooled(Server(), tls=TlsSettings("/nonexistent.pem"), context=context) as (_, send):
        heard = await send()[0].wait()
        assert heard.error is not None and heard.error.code == "E1222"


async def test_tls_before_1_2_is_not_spoken(pem: tuple[str, str]) -> None:
    assert client_context(TlsSettings()).minimum_version is ssl.TLSVersion.TLSv1_2
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pem)
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with pooled(Server(), tls=TlsSettings(pem[0]), context=context) as (_, send):
        heard = await send()[0].wait()
        assert heard.error is not None and heard.error.code == "E1222"


async def test_closing_the_pool_tells_everyone() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    async with pooled(server, ClientLimits(connections=1)) as (pool, send):
        first, second = send()[0], send()[0]
        await until(lambda: first.headers)
        await pool.close()
        await first.wait()
        await second.wait()
        third = await send()[0].wait()
    assert [(h.error.code, h.sent) for h in (first, second, third) if h.error] == [
        ("E1228", True),
        ("E1228", False),
        ("E1228", False),
    ]


async def test_a_handler_that_fails_costs_its_own_request_only() -> None:
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["exception"]))
    async with pooled(Server()) as (_, send):
        heard, _ = send()
        heard.head = None  # type: ignore[assignment, method-assign]
        await heard.wait()
        assert heard.error is not None and (await send()[0].wait()).body == b"ok"
    assert [type(e) for e in reports] == [TypeError]


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "", "/\xff"])
async def test_a_request_line_cannot_be_forged(target: str) -> None:
    pool = Pool(asyncio.get_running_loop())
    with pytest.raises(ValueError):
        pool.request(Origin("http", "a", 80), "POST", target, [], b"", Heard())
    with pytest.raises(ValueError):
        pool.request(Origin("http", "a", 80), "POST", "/", [("A", "b\r\nC: d")], b"", Heard())
    await pool.close()


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("http://Example.com", Origin("http", "example.com", 80), "/"),
        ("https://a.example:8443/mcp?x=1#frag", Origin("https", "a.example", 8443), "/mcp?x=1"),
        ("http://[::1]:80/x", Origin("http", "::1", 80), "/x"),
    ],
)
def test_an_address_is_taken_apart(url: str, origin: Origin, target: str) -> None:
    assert split(url) == (origin, target)


@pytest.mark.parametrize(
    "url",
    ["ftp://a/", "file:///etc/passwd", "http://u:secret@a/", "http:///x", "http://a:99999/", "http://a b/", "//a", "",
     "http://a\\@b/", "http://a\r\n/", "http://ä/", "http://[::1/", "http://a%2fb/"],
)  # fmt: skip
def test_an_address_that_cannot_be_dialled_is_refused_and_no_secret_told(url: str) -> None:
    with pytest.raises(EarnestError) as info:
        split(url)
    assert info.value.code == "E1229" and "secret" not in str(info.value)

"""Streams that a legacy client takes up again: it gets what it missed, once, of that stream alone."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from earnest.gateway.resumable import KEPT_BYTES, ResumableOutlet, Streams
from gateway.live import Live, Start, reader, tool


class Heard:
    """An event stream that keeps what it was given."""

    def __init__(self) -> None:
        self.events: list[tuple[str, bytes]] = []
        self.retry: list[int] = []
        self.gone = False

    def event(self, data: bytes, event_id: str | None = None, retry_ms: int | None = None) -> None:
        if not self.gone:
            self.events.append((event_id or "", data))
            self.retry += [retry_ms] if retry_ms is not None else []

    def close(self) -> None:
        self.gone = True


class Later:
    """`loop.call_later` that waits for the test."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, delay_s: float, what: Callable[[], None]) -> None:
        self.waiting.append(what)


def test_who_comes_back_gets_what_came_after_its_last_event_and_what_comes() -> None:
    streams = Streams(Later())
    number, stream = streams.begin()
    first, second = Heard(), Heard()
    stream.attach(first, prime=True)
    stream.send(b"a")
    first.gone = True
    stream.send(b"b")
    found = streams.find(first.events[-1][0])
    assert found is not None and found[0] is stream
    found[0].attach(second, found[1])
    stream.send(b"c")
    streams.end(number)
    assert first.events == [("1-0", b""), ("1-1", b"a")] and first.retry == [500]
    assert second.events == [("1-2", b"b"), ("1-3", b"c")] and second.gone


def test_an_answer_that_nobody_heard_waits_for_a_while_and_no_longer() -> None:
    later = Later()
    streams = Streams(later)
    number, stream = streams.begin()
    stream.attach(Heard(), prime=True)
    stream.send(b"answer")
    streams.end(number)
    heard = Heard()
    stream.attach(heard, 0)
    assert heard.events == [("1-1", b"answer")] and heard.gone
    later.waiting[0]()
    assert streams.find("1-0") is None


def test_a_stream_says_nothing_of_another_and_made_up_ids_find_none() -> None:
    streams = Streams(Later())
    streams.begin()[1].send(b"one")
    streams.begin()[1].send(b"two")
    found = streams.find("2-0")
    assert found is not None
    heard = Heard()
    found[0].attach(heard, found[1])
    assert [data for _, data in heard.events] == [b"two"]
    for wrong in ("3-0", "1", "", "1-", "-1", "1-x", "1-0-0", "9" * 40 + "-0"):
        assert streams.find(wrong) is None


def test_what_is_kept_is_bounded_and_the_newest_stays() -> None:
    streams = Streams(Later())
    _, stream = streams.begin()
    for _ in range(20):
        stream.send(b"x" * (KEPT_BYTES // 4))
    stream.send(b"y" * (2 * KEPT_BYTES))
    heard = Heard()
    stream.attach(heard)
    assert [len(data) for _, data in heard.events] == [2 * KEPT_BYTES]


def test_a_second_listener_ends_the_first() -> None:
    streams = Streams(Later())
    first, second = Heard(), Heard()
    streams.standing.attach(first)
    streams.standing.attach(second)
    streams.standing.send(b"a")
    assert first.gone and not first.events and [data for _, data in second.events] == [b"a"]


class OneStream:
    """A responder that answers with one stream or one JSON."""

    def __init__(self) -> None:
        self.heard: Heard | None = None
        self.answers: list[bytes] = []
        self.started = False

    def stream(self, status: int, headers: object = ()) -> Heard:
        self.heard = Heard()
        return self.heard

    def json(self, status: int, body: bytes, headers: object = ()) -> None:
        self.answers.append(body)


@pytest.mark.parametrize("prime", [True, False])
def test_only_a_client_that_knows_how_to_come_back_is_sent_away(prime: bool) -> None:
    responder = OneStream()
    outlet = ResumableOutlet(responder, Streams(Later()), prime=prime, prefers_stream=False)  # type: ignore[arg-type]
    outlet.part()
    if prime:
        assert responder.heard is not None and responder.heard.gone and responder.heard.events == [("1-0", b"")]
    else:
        outlet.finish(b"{}")
        assert responder.heard is None and responder.answers == [b"{}"]


def test_an_answer_is_a_stream_where_the_client_named_streams_first() -> None:
    for prefers in (True, False):
        responder = OneStream()
        outlet = ResumableOutlet(responder, Streams(Later()), prime=False, prefers_stream=prefers)  # type: ignore[arg-type]
        outlet.finish(b"{}")
        assert (responder.heard is not None, responder.answers) == (prefers, [] if prefers else [b"{}"])


# Live

STEPS = [{"progress": {"progress": 1}}, {"sleep": 0.3}, {"text": "the end"}]


@pytest.fixture
async def live(gateway: Start, scripted: Callable[..., Any]) -> Live:
    command, _ = scripted({"era": "legacy", "tools": [reader("slow"), tool("other")], "calls": {"slow": STEPS}})
    return await gateway({"one": {"command": command}})


async def say(live: Live, head: str, body: bytes, until: bytes) -> bytes:
    """Send one request, read up to some bytes of its answer, and break the connection off."""
    host, _, port = live.url.removeprefix("http://").partition(":")
    reading, writing = await asyncio.open_connection(host, int(port))
    common = f"Host: {host}:{port}\r\nAuthorization: Bearer {live.token}\r\nContent-Length: {len(body)}\r\n"
    writing.write(f"{head}\r\n{common}\r\n".encode() + body)
    seen = b""
    async with asyncio.timeout(20):
        while until not in seen and (piece := await reading.read(65536)):
            seen += piece
    writing.transport.abort()
    return seen


async def test_an_answer_is_fetched_after_the_connection_broke_off_and_the_call_ran_once(live: Live) -> None:
    client = await live.opened("/s/one/mcp")
    common = f"Mcp-Session-Id: {client.session}\r\nMCP-Protocol-Version: 2025-11-25"
    call = {"name": "slow", "arguments": {}, "_meta": {"progressToken": "t"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}).encode()
    common += "\r\nAccept: application/json, text/event-stream"
    post = f"POST /s/one/mcp HTTP/1.1\r\nContent-Type: application/json\r\n{common}"
    begun = await say(live, post, body, b"notifications/progress")
    assert b"the end" not in begun
    last = re.findall(rb"id: (\d+-\d+)", begun)[-1].decode()
    get = f"GET /s/one/mcp HTTP/1.1\r\n{common}\r\nLast-Event-ID: "
    rest = await say(live, get + last, b"", b"the end")
    assert b'"id":7' in rest and b"notifications/progress" not in rest
    # Once more: the answer is still there, and the server was asked once.
    assert b"the end" in await say(live, get + last, b"", b"the end")
    assert b" 400 " in await say(live, get + "77-1", b"", b"\r\n\r\n")
    other = await live.opened("/s/one/mcp")
    assert other.session
    assert b" 400 " in await say(live, get.replace(str(client.session), str(other.session)) + last, b"", b"\r\n\r\n")

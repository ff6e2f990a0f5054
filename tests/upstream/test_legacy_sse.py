"""The HTTP+SSE link of 2024-11-05 against a scripted server, reached through the Streamable HTTP link."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.net.limits import ServerLimits
from earnest.net.listener import serve
from earnest.net.message import Request
from earnest.net.responder import EventStream, Responder
from earnest.net.sse import encode
from earnest.protocol.envelope import Message
from earnest.upstream.base import Reply
from earnest.upstream.http import HttpLink
from earnest.upstream.opening import ClientHello

INITIALIZED = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "old"}}


class OldServer:
    """GET /sse streams, POST /messages?s=1 takes messages; POST /sse is 405."""

    def __init__(self, endpoint: str = "/messages?s=1", answer: bool = True) -> None:
        self.endpoint = endpoint
        self.answer = answer
        self.post_status = 202
        self.posted: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.stream: EventStream | None = None
        self.gone = 0

    def __call__(self, request: Request, responder: Responder) -> None:
        self.headers.append(dict(request.headers))
        if request.method == "GET" and request.path == "/sse":
            self.stream = responder.stream()
            event = encode(self.endpoint.encode(), event="endpoint")
            self.stream._wire.write(b"%x\r\n%b\r\n" % (len(event), event))
            request.on_disconnect(self._left)
        elif request.method == "POST" and request.path == "/messages" and request.query == "s=1":
            message = json.loads(request.body)
            self.posted.append(message)
            responder.empty(self.post_status)
            if message.get("method") == "initialize" and self.answer:
                self.say({"jsonrpc": "2.0", "id": message["id"], "result": INITIALIZED})
        else:
            responder.empty(405)

    def _left(self) -> None:
        self.gone += 1

    def say(self, message: object) -> None:
        assert self.stream is not None
        self.stream.event(json.dumps(message).encode())

    def methods(self) -> list[str]:
        return [m.get("method", "answer") for m in self.posted]


class Heard:
    """Records what an exchange's handler hears."""

    def __init__(self, takes: bool = False) -> None:
        self.takes = takes
        self.replies: list[Reply] = []
        self.messages: list[Message] = []
        self.requests: list[Message] = []
        self.errors: list[tuple[str, bool]] = []

    def reply(self, reply: Reply) -> None:
        self.replies.append(reply)

    def message(self, message: Message) -> None:
        self.messages.append(message)

    def request(self, message: Message) -> bool:
        self.requests.append(message)
        return self.takes

    def lost(self, error: EarnestError, sent: bool) -> None:
        self.errors.append((error.code, sent))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def linked(server: OldServer, **more: Any) -> AsyncIterator[tuple[HttpLink, list[str], str]]:
    listener = await serve(asyncio.get_running_loop(), "127.0.0.1", 0, server, ServerLimits())
    log: list[str] = []
    base = f"http://127.0.0.1:{listener.address[1]}"
    link = HttpLink("old", f"{base}/sse", client=ClientHello(), log=log.append, **more)
    try:
        yield link, log, base
    finally:
        await link.close()
        await listener.close()


async def test_an_old_server_is_found_initialized_and_called() -> None:
    server = OldServer()
    async with linked(server, headers={"X-Key": "k"}) as (link, _, _):
        hello = await link.open()
        assert not hello.modern and hello.version == "2024-11-05" and link.alive
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        await until(lambda: "tools/call" in server.methods())
        token = server.posted[-1]["id"]
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token}}
        server.say(progress)
        server.say({**progress, "params": {"progressToken": 999}})
        server.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        server.say({"jsonrpc": "2.0", "id": token, "result": {"ok": 1}})
        await until(lambda: heard.replies)
        assert json.loads(heard.replies[0].result) == {"ok": 1} and len(heard.messages) == 1
    assert "notifications/initialized" in server.methods() and server.gone == 1
    assert all(h.get("x-key") == "k" for h in server.headers)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://evil.example/messages",
        "//evil.example/x",
        "http://127.0.0.1:1/x",
        "https://127.0.0.1/x",
        "http://u@h/",
        "\\\\e\\x y",
    ],
)
async def test_an_endpoint_of_another_origin_is_not_used(endpoint: str) -> None:
    server = OldServer(endpoint)
    async with linked(server) as (link, _, _):
        with pytest.raises(EarnestError) as info:
            await link.open()
    assert "endpoint" in str(info.value) and server.posted == []


async def test_an_absolute_endpoint_of_the_same_origin_is_used_and_a_second_one_is_not() -> None:
    server = OldServer()
    async with linked(server) as (link, log, base):
        server.endpoint = f"{base}/messages?s=1"
        await link.open()
        assert server.stream is not None
        event = encode(b"/elsewhere", event="endpoint")
        server.stream._wire.write(b"%x\r\n%b\r\n" % (len(event), event))
        await until(lambda: any("E1236" in line for line in log))
        link.notify("notifications/x", b"")
        await until(lambda: "notifications/x" in server.methods())


async def test_requests_of_the_server_need_exactly_one_call_to_belong_to() -> None:
    server = OldServer()
    asks = {"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}}
    async with linked(server) as (link, log, _):
        await link.open()
        server.say(asks)
        await until(lambda: "answer" in server.methods())
        assert server.posted[-1]["error"]["code"] == -32601
        one, two = Heard(takes=True), Heard(takes=True)
        link.call("tools/call", b'{"name":"a"}', one)
        await until(lambda: "tools/call" in server.methods())
        server.say(asks)
        await until(lambda: one.requests)
        link.respond(one.requests[0].id, Reply(result=b"{}"))
        await until(lambda: server.posted[-1].get("result") == {})
        link.call("tools/call", b'{"name":"b"}', two)
        server.say(asks)
        await until(lambda: server.methods().count("answer") == 3)
        assert len(one.requests) == 1 and two.requests == [] and "error" in server.posted[-1]
        server.say({"jsonrpc": "2.0", "id": 999, "result": {}})
        await until(lambda: any("nobody waits for" in line for line in log))


async def test_cancelling_says_so_and_a_late_answer_is_dropped() -> None:
    server = OldServer()
    async with linked(server) as (link, log, _):
        await link.open()
        heard = Heard()
        exchange = link.call("tools/call", b'{"name":"a"}', heard)
        await until(lambda: "tools/call" in server.methods())
        token = server.posted[-1]["id"]
        exchange.cancel("enough")
        await until(lambda: "notifications/cancelled" in server.methods())
        assert server.posted[-1]["params"] == {"requestId": token, "reason": "enough"}
        server.say({"jsonrpc": "2.0", "id": token, "result": {}})
        await until(lambda: any("E1236" in line for line in log))
    assert heard.replies == [] and heard.errors == []


async def test_the_end_of_the_stream_is_the_end_of_the_link() -> None:
    server = OldServer()
    lost: list[str] = []
    async with linked(server) as (link, _, _):
        await link.open()
        link.on_lost = lambda error: lost.append(error.code)
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        await until(lambda: "tools/call" in server.methods())
        assert server.stream is not None
        server.stream.close()
        await until(lambda: lost)
        assert heard.errors == [("E1235", True)] and lost == ["E1235"] and not link.alive
        late = Heard()
        link.call("tools/call", b'{"name":"a"}', late)
        await until(lambda: late.errors)
        assert late.errors == [("E1235", False)]


async def test_a_post_that_is_refused_loses_its_call_only() -> None:
    server = OldServer()
    async with linked(server) as (link, _, _):
        await link.open()
        server.post_status = 500
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        await until(lambda: heard.errors)
        assert heard.errors == [("E1231", True)] and link.alive


async def test_a_stream_that_names_no_endpoint_or_answers_nothing_is_given_up() -> None:
    server = OldServer(answer=False)
    async with linked(server, open_timeout=0.3) as (link, _, _):
        with pytest.raises(EarnestError) as info:
            await link.open()
        assert info.value.code in ("E1206", "E1207") and not link.alive
        await until(lambda: server.gone == 1)

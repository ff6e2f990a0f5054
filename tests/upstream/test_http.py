"""The Streamable HTTP link against scripted servers: era, session, what may come on a stream, and what may not."""

from __future__ import annotations

import asyncio
import itertools
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
from earnest.protocol.envelope import Message
from earnest.upstream import http
from earnest.upstream.base import Reply
from earnest.upstream.http import HttpLink
from earnest.upstream.opening import ClientHello

Step = Callable[[Any, Request, Responder], Any]

DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}


def result(value: object, headers: tuple[tuple[str, str], ...] = ()) -> Step:
    def step(message: Any, request: Request, responder: Responder) -> None:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": value}
        responder.json(200, json.dumps(body).encode(), headers)

    return step


def error(status: int, code: int, id: object = "same", data: object = None) -> Step:
    def step(message: Any, request: Request, responder: Responder) -> None:
        failure = {"code": code, "message": "no", **({} if data is None else {"data": data})}
        body = {"jsonrpc": "2.0", "id": message["id"] if id == "same" else id, "error": failure}
        responder.json(status, json.dumps(body).encode())

    return step


def status(code: int) -> Step:
    return lambda message, request, responder: responder.empty(code)


def events(*messages: object, close: bool = True) -> Step:
    """An event stream; `ID` in a message stands for the request's id."""

    def step(message: Any, request: Request, responder: Responder) -> EventStream:
        stream = responder.stream()
        for one in messages:
            text = one if isinstance(one, str) else json.dumps(one)
            stream.event(text.replace('"ID"', json.dumps(message["id"])).encode())
        if close:
            stream.close()
        return stream

    return step


class Server:
    """Answers by JSON-RPC method (`GET` and `DELETE` by that name); keeps what it was sent."""

    def __init__(self, **script: Step) -> None:
        self.script = {name.replace("__", "/"): step for name, step in script.items()}
        self.seen: list[tuple[str, Any, dict[str, str]]] = []
        self.gone: list[str] = []
        self.streams: list[EventStream] = []

    def __call__(self, request: Request, responder: Responder) -> None:
        message = json.loads(request.body) if request.body else None
        if message is None:
            name = request.method
        else:
            name = message.get("method", "answer")
        self.seen.append((name, message, dict(request.headers)))
        request.on_disconnect(lambda: self.gone.append(name))
        step = self.script.get(name) or status(202 if (message and "id" not in message) or name == "answer" else 405)
        stream = step(message, request, responder)
        if isinstance(stream, EventStream):
            self.streams.append(stream)

    def names(self) -> list[str]:
        return [name for name, _, _ in self.seen]

    def last(self, name: str) -> tuple[Any, dict[str, str]]:
        return next((message, headers) for n, message, headers in reversed(self.seen) if n == name)


class Heard:
    """Records what an exchange's handler hears."""

    def __init__(self, takes: bool = False) -> None:
        self.takes = takes
        self.replies: list[Reply] = []
        self.messages: list[Message] = []
        self.requests: list[Message] = []
        self.errors: list[tuple[str, bool]] = []
        self.partings = 0
        self.over = asyncio.Event()

    def parted(self) -> None:
        self.partings += 1

    def reply(self, reply: Reply) -> None:
        self.replies.append(reply)
        self.over.set()

    def message(self, message: Message) -> None:
        self.messages.append(message)

    def request(self, message: Message) -> bool:
        self.requests.append(message)
        return self.takes

    def lost(self, error: EarnestError, sent: bool) -> None:
        self.errors.append((error.code, sent))
        self.over.set()

    async def wait(self) -> Heard:
        await asyncio.wait_for(self.over.wait(), 60)
        return self


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def linked(server: Server, prefer_modern: bool = True, **more: Any) -> AsyncIterator[tuple[HttpLink, list[str]]]:
    listener = await serve(asyncio.get_running_loop(), "127.0.0.1", 0, server, ServerLimits())
    log: list[str] = []
    url = f"http://127.0.0.1:{listener.address[1]}/mcp"
    link = HttpLink("srv", url, client=ClientHello(prefer_modern=prefer_modern), log=log.append, **more)
    try:
        yield link, log
    finally:
        await link.close()
        await listener.close()


def modern(**script: Step) -> Server:
    return Server(server__discover=result(DISCOVERED), **script)


def legacy(session: str = "", **script: Step) -> Server:
    headers = (("Mcp-Session-Id", session),) if session else ()
    return Server(**{"server__discover": status(400), "initialize": result(INITIALIZED, headers), **script})


# The era.


@pytest.mark.parametrize(
    ("discover", "initialize", "is_modern"),
    [
        (result(DISCOVERED), status(400), True),
        (events({"jsonrpc": "2.0", "id": "ID", "result": DISCOVERED}), status(400), True),
        (status(400), result(INITIALIZED), False),
        (status(404), result(INITIALIZED), False),
        (status(405), result(INITIALIZED), False),
        (status(406), result(INITIALIZED), False),
        (status(500), result(INITIALIZED), False),
        (error(400, -32000), result(INITIALIZED), False),
        (error(400, -32000, None), result(INITIALIZED), False),
        (error(400, -32602), result(INITIALIZED), False),
        (error(200, -32601), result(INITIALIZED), False),
        (error(404, -32601), result(INITIALIZED), False),
        (error(404, -32601), error(404, -32601), True),
        (result({"anything": 1}), result(INITIALIZED), False),
        (result({**DISCOVERED, "supportedVersions": ["2031-01-01"]}), result(INITIALIZED), False),
        (status(400), events({"jsonrpc": "2.0", "id": "ID", "result": INITIALIZED}), False),
    ],
)
async def test_the_era_is_settled_by_what_comes_and_not_by_one_code(discover: Step, initialize: Step, is_modern: bool) -> None:
    server = Server(server__discover=discover, initialize=initialize)
    async with linked(server) as (link, _):
        assert not link.alive
        hello = await link.open()
        assert hello.modern is is_modern and link.alive and link.hello is hello
    assert ("notifications/initialized" in server.names()) is not is_modern


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
async def test_an_error_only_a_modern_server_sends_never_leads_to_initialize(code: int) -> None:
    server = Server(server__discover=error(400, code, data={"supported": ["2031-01-01"], "requested": "2026-07-28"}))
    async with linked(server) as (link, _):
        with pytest.raises(EarnestError) as info:
            await link.open()
    assert info.value.code == "E1207" and server.names() == ["server/discover"]


async def test_a_legacy_client_begins_with_initialize_and_discovers_only_if_it_must() -> None:
    server = legacy()
    async with linked(server, prefer_modern=False) as (link, _):
        assert not (await link.open()).modern
    assert "server/discover" not in server.names()
    server = modern(initialize=error(400, -32022, data={"supported": ["2026-07-28"]}))
    async with linked(server, prefer_modern=False) as (link, _):
        assert (await link.open()).modern
    assert server.names() == ["initialize", "server/discover"]


async def test_a_refusal_that_names_the_version_it_refused_is_asked_once_more_and_no_more() -> None:
    refusal = error(400, -32022, data={"supported": ["2026-07-28"], "requested": "2026-07-28"})
    for answers, names in (([refusal], ["server/discover"] * 2), ([refusal] * 2, ["server/discover"] * 2 + ["initialize"])):
        known = modern() if len(answers) == 1 else legacy()
        later = known.script["server/discover"]

        def step(message: Any, *rest: Any, answers: list[Step] = answers, later: Step = later) -> Any:
            return (answers.pop(0) if answers else later)(message, *rest)

        known.script["server/discover"] = step
        async with linked(known) as (link, _):
            assert (await link.open()).modern is (len(names) == 2)
        assert known.names()[: len(names)] == names


async def test_a_probe_without_answer_leads_to_initialize(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PROBE_S", 0.1)
    server = legacy(server__discover=lambda *_: None)
    async with linked(server) as (link, _):
        assert not (await link.open()).modern


async def test_a_server_that_knows_nothing_is_one_error_and_leaves_nothing_running() -> None:
    server = Server(server__discover=status(404), initialize=status(404), GET=status(404))
    async with linked(server) as (link, _):
        with pytest.raises(EarnestError) as info:
            await link.open()
        assert not link.alive
    assert info.value.code == "E1207" and server.names() == ["server/discover", "initialize", "GET"]


@pytest.mark.parametrize(("code", "expected"), [(401, "E1234"), (403, "E1234")])
async def test_refused_credentials_end_the_opening_at_once(code: int, expected: str) -> None:
    server = Server(server__discover=status(code))
    async with linked(server, headers={"Authorization": "Bearer s3cret-token"}) as (link, log):
        with pytest.raises(EarnestError) as info:
            await link.open()
    assert info.value.code == expected and len(server.seen) == 1
    assert "s3cret" not in str(info.value) + str(log)


async def test_a_server_that_is_not_there_says_so() -> None:
    link = HttpLink("srv", "http://127.0.0.1:1/mcp", client=ClientHello(), log=lambda _: None)
    with pytest.raises(EarnestError) as info:
        await link.open()
    assert info.value.code == "E1221" and info.value.exit_code == 3


async def test_a_server_that_never_answers_is_given_up() -> None:
    server = Server(server__discover=lambda *_: None)
    async with linked(server, open_timeout=0.2) as (link, _):
        with pytest.raises(EarnestError) as info:
            await link.open()
    assert info.value.code == "E1206"


# Calls.


async def test_a_modern_call_carries_the_headers_made_from_its_body() -> None:
    server = modern(tools__call=result({"content": []}))
    async with linked(server, headers={"Authorization": "Bearer s3cret-token"}) as (link, log):
        await link.open()
        heard = Heard()
        params = '{"name":"zähl","arguments":{},"_meta":{"progressToken":7}}'.encode()
        extra = (("Mcp-Param-Region", "eu"), ("Authorization", "Bearer mine"), ("Mcp-Method", "x"))
        link.call("tools/call", params, heard, headers=extra)
        assert json.loads((await heard.wait()).replies[0].result) == {"content": []}
    message, headers = server.last("tools/call")
    assert message["params"] == json.loads(params)
    assert headers["mcp-protocol-version"] == "2026-07-28" and headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "=?base64?esOkaGw=?=" and headers["mcp-param-region"] == "eu"
    assert headers["authorization"] == "Bearer s3cret-token"
    assert "application/json" in headers["accept"] and "text/event-stream" in headers["accept"]
    assert "mcp-session-id" not in headers and "s3cret" not in str(log)


async def test_ask_adds_what_the_era_wants() -> None:
    server = modern(tools__list=result({"tools": []}))
    async with linked(server) as (link, _):
        await link.open()
        assert json.loads((await link.ask("tools/list")).result) == {"tools": []}
    assert server.last("tools/list")[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    server = legacy(tools__list=result({"tools": []}))
    async with linked(server) as (link, _):
        await link.open()
        await link.ask("tools/list")
    assert server.last("tools/list")[0]["params"] == {}


async def test_an_error_of_the_server_is_its_reply_whatever_the_status() -> None:
    for step in (error(200, -32602), error(400, -32602), error(404, -32601), error(400, -32602, None)):
        server = modern(tools__call=step)
        async with linked(server) as (link, _):
            await link.open()
            heard = Heard()
            link.call("tools/call", b'{"name":"a"}', heard)
            assert json.loads((await heard.wait()).replies[0].error)["message"] == "no"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (status(202), "E1233"),
        (status(200), "E1233"),
        (status(500), "E1231"),
        (status(302), "E1231"),
        (status(401), "E1234"),
        (error(200, -32602, None), "E1233"),
        (error(200, -32602, 999), "E1233"),
        (lambda m, q, r: r.json(200, b"not json"), "E1233"),
        (lambda m, q, r: r.json(200, b'[{"jsonrpc":"2.0","id":1,"result":{}}]'), "E1233"),
        (lambda m, q, r: r.json(200, b'{"jsonrpc":"2.0","id":"2","result":{}}'), "E1233"),
        (lambda m, q, r: r.json(500, b'{"jsonrpc":"2.0","id":%d,"result":{}}' % m["id"]), "E1231"),
        (events(), "E1235"),
        (events({"jsonrpc": "2.0", "id": 99, "result": {}}), "E1235"),
    ],
)
async def test_what_is_no_answer_is_lost_and_counts_as_sent(step: Step, code: str) -> None:
    server = modern(tools__call=step)
    async with linked(server) as (link, _):
        await link.open()
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        assert (await heard.wait()).errors == [(code, True)] and heard.replies == []
        assert link.alive
    assert server.names().count("tools/call") == 1


async def test_an_excerpt_of_an_answer_never_shows_the_credentials_that_were_sent() -> None:
    def step(message: Any, request: Request, responder: Responder) -> None:
        responder.json(500, json.dumps({"you sent": dict(request.headers)}).encode())

    server = modern(tools__call=step)
    async with linked(server, headers={"Authorization": "Bearer s3cret-token", "X-Key": "k3y-value"}) as (
        link,
        _,
    ):
        await link.open()
        with pytest.raises(EarnestError) as info:
            await link.ask("tools/call", b'{"name":"a"}')
    assert info.value.code == "E1231" and "you sent" in info.value.said and "you sent" not in str(info.value)
    assert "s3cret" not in info.value.said and "k3y" not in info.value.said


PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": "ID", "progress": 1},
}
FOREIGN = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 999, "progress": 1},
}
LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
ASKS = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {}}
PING = {"jsonrpc": "2.0", "id": "p1", "method": "ping"}
OTHER = {"jsonrpc": "2.0", "id": 999, "result": {"content": "smuggled"}}
ANSWER = {"jsonrpc": "2.0", "id": "ID", "result": {"ok": True}}


async def test_a_modern_stream_passes_what_belongs_to_its_request_and_drops_the_rest() -> None:
    script = events(PROGRESS, FOREIGN, LOG, CHANGED, ASKS, PING, OTHER, "garbage", ANSWER, ASKS, PROGRESS, ANSWER)
    server = modern(tools__call=script)
    wide: list[Message] = []
    async with linked(server) as (link, log):
        await link.open()
        link.on_notification = wide.append
        heard = Heard(takes=True)
        link.call("tools/call", b'{"name":"a"}', heard)
        await heard.wait()
        await asyncio.sleep(0.05)
    assert [m.method for m in heard.messages] == ["notifications/progress", "notifications/message"]
    assert json.loads(heard.messages[0].params)["progressToken"] == server.last("tools/call")[0]["id"]
    assert len(heard.replies) == 1 and heard.requests == [] and wide == []
    assert "answer" not in server.names()
    assert sum("E1236" in line for line in log) == 8, log


async def test_a_legacy_stream_may_ask_and_is_answered_on_the_session() -> None:
    server = legacy("s-1", tools__call=events(ASKS, PING, CHANGED, OTHER, close=False))
    wide: list[Message] = []
    async with linked(server) as (link, log):
        await link.open()
        link.on_notification = wide.append
        heard = Heard(takes=True)
        link.call("tools/call", b'{"name":"a"}', heard)
        await until(lambda: heard.requests)
        link.respond(heard.requests[0].id, Reply(result=b'{"action":"decline"}'))
        await until(lambda: server.names().count("answer") == 2)
        answers = {m["id"]: m for name, m, _ in server.seen if name == "answer"}
        assert answers["q1"]["result"] == {"action": "decline"} and answers["p1"]["result"] == {}
        assert all(h["mcp-session-id"] == "s-1" for name, _, h in server.seen if name == "answer")
        assert [m.method for m in wide] == ["notifications/tools/list_changed"]
        assert heard.replies == [] and any("E1236" in line for line in log)
        server.streams[0].event(json.dumps({**ANSWER, "id": server.last("tools/call")[0]["id"]}).encode())
        assert json.loads((await heard.wait()).replies[0].result) == {"ok": True}


async def test_a_legacy_request_that_is_not_taken_is_declined() -> None:
    server = legacy(tools__call=events(ASKS, ANSWER))
    async with linked(server) as (link, _):
        await link.open()
        heard = Heard(takes=False)
        link.call("tools/call", b'{"name":"a"}', heard)
        await heard.wait()
        await until(lambda: "answer" in server.names())
    assert server.last("answer")[0]["error"]["code"] == -32601


async def test_cancelling_a_modern_call_closes_its_stream() -> None:
    server = modern(tools__call=events(PROGRESS, close=False))
    async with linked(server) as (link, _):
        await link.open()
        heard = Heard()
        exchange = link.call("tools/call", b'{"name":"a"}', heard)
        await until(lambda: heard.messages)
        exchange.cancel("enough")
        await until(lambda: server.gone == ["tools/call"])
        assert "notifications/cancelled" not in server.names()
    assert heard.replies == [] and heard.errors == []


async def test_cancelling_a_legacy_call_says_so() -> None:
    server = legacy("s-1", tools__call=events(PROGRESS, close=False))
    async with linked(server) as (link, _):
        await link.open()
        heard = Heard()
        exchange = link.call("tools/call", b'{"name":"a"}', heard)
        await until(lambda: heard.messages)
        exchange.cancel("enough")
        await until(lambda: "notifications/cancelled" in server.names())
        sent = server.last("tools/call")[0]["id"]
        assert server.last("notifications/cancelled")[0]["params"] == {"requestId": sent, "reason": "enough"}
    assert heard.replies == [] and heard.errors == []


async def test_a_call_is_never_sent_twice_even_when_the_connection_dies() -> None:
    def die(message: Any, request: Request, responder: Responder) -> None:
        request.connection.abort()

    server = modern(tools__call=die)
    async with linked(server) as (link, _):
        await link.open()
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        assert (await heard.wait()).errors == [("E1224", True)]
    assert server.names().count("tools/call") == 1


async def test_the_id_that_was_reserved_is_used() -> None:
    server = modern(tools__call=result({}))
    async with linked(server) as (link, _):
        await link.open()
        reserved = link.reserve()
        heard = Heard()
        link.call("tools/list", b"", Heard())
        link.call("tools/call", b'{"name":"a"}', heard, id=reserved)
        await heard.wait()
    ids = [m["id"] for _, m, _ in server.seen if m and "id" in m]
    assert server.last("tools/call")[0]["id"] == reserved and len(set(ids)) == len(ids)


# Sessions.


async def test_a_session_is_echoed_and_ended() -> None:
    server = legacy("s-1", tools__call=result({}), DELETE=status(200))
    async with linked(server) as (link, _):
        await link.open()
        await link.ask("tools/call", b'{"name":"a"}')
        link.notify("notifications/roots/list_changed", b"")
        await until(lambda: "notifications/roots/list_changed" in server.names())
    for name in (
        "notifications/initialized",
        "tools/call",
        "notifications/roots/list_changed",
        "GET",
        "DELETE",
    ):
        headers = server.last(name)[1]
        assert headers["mcp-session-id"] == "s-1" and headers["mcp-protocol-version"] == "2025-11-25", name
    assert server.names().count("DELETE") == 1
    first = next(h for name, _, h in server.seen if name == "initialize")
    assert "mcp-session-id" not in first


async def test_a_session_that_the_server_forgot_ends_the_link_once_and_its_call_was_not_done() -> None:
    server = legacy("s-1", tools__call=status(404), tools__list=lambda *_: None)
    lost: list[str] = []
    async with linked(server) as (link, _):
        await link.open()
        link.on_lost = lambda error: lost.append(error.code)
        waiting, heard, late = Heard(), Heard(), Heard()
        link.call("tools/list", b"", waiting)
        await until(lambda: "tools/list" in server.names())
        link.call("tools/call", b'{"name":"a"}', heard)
        assert (await heard.wait()).errors == [("E1232", False)]
        assert (await waiting.wait()).errors == [("E1232", True)]
        assert lost == ["E1232"] and not link.alive
        link.call("tools/call", b'{"name":"a"}', late)
        assert (await late.wait()).errors == [("E1232", False)]
    assert "DELETE" not in server.names()


async def test_404_without_a_session_is_no_lost_session() -> None:
    server = legacy(tools__call=status(404))
    async with linked(server) as (link, _):
        await link.open()
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        assert (await heard.wait()).errors == [("E1231", True)] and link.alive


async def test_a_server_without_a_standing_stream_is_asked_once() -> None:
    server = legacy("s-1")
    async with linked(server) as (link, _):
        await link.open()
        await asyncio.sleep(0.1)
        assert link.alive
    assert server.names().count("GET") == 1


async def test_the_standing_stream_passes_notifications_and_nothing_else() -> None:
    def get(message: Any, request: Request, responder: Responder) -> EventStream:
        stream = responder.stream()
        for one in (CHANGED, ASKS, OTHER, FOREIGN, PING):
            stream.event(json.dumps(one).encode())
        return stream

    server = legacy("s-1", GET=get)
    wide: list[Message] = []
    async with linked(server) as (link, log):
        link.on_notification = wide.append
        await link.open()
        await until(lambda: server.names().count("answer") == 2)
    assert [m.method for m in wide] == ["notifications/tools/list_changed"]
    answers = {m["id"]: m for name, m, _ in server.seen if name == "answer"}
    assert answers["q1"]["error"]["code"] == -32601 and answers["p1"]["result"] == {}
    assert sum("E1236" in line for line in log) == 2


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_request_on_the_standing_stream_belongs_to_the_one_call_in_flight_or_to_none(calls: int) -> None:
    server = legacy("s-1", GET=lambda message, request, responder: responder.stream(), tools__call=events(close=False))
    async with linked(server) as (link, _):
        await link.open()
        heard = [Heard(takes=True) for _ in range(calls)]
        for one in heard:
            link.call("tools/call", b'{"name":"a"}', one)
        await until(lambda: server.names().count("tools/call") == calls and server.names().count("GET") == 1)
        standing = server.streams[[name for name in server.names() if name in ("GET", "tools/call")].index("GET")]
        standing.event(json.dumps(ASKS).encode())
        if calls == 1:
            await until(lambda: heard[0].requests)
            assert "answer" not in server.names()
        else:
            await until(lambda: "answer" in server.names())
            assert not any(one.requests for one in heard)


async def test_the_standing_stream_is_opened_again_with_a_growing_pause() -> None:
    loop = asyncio.get_running_loop()
    times: list[float] = []

    def get(message: Any, request: Request, responder: Responder) -> None:
        times.append(loop.time())
        responder.stream().close()

    server = legacy(GET=get)
    async with linked(server, random=lambda: 0.5) as (link, _):
        await link.open()
        assert link._standing is not None
        link._standing._pause = 0.05
        await until(lambda: len(times) == 4)
    pauses = [b - a for a, b in itertools.pairwise(times)]
    assert pauses[0] >= 0.05 and pauses[1] >= 0.1 and pauses[2] >= 0.2


async def test_a_modern_server_is_listened_to_for_the_changes_it_offers() -> None:
    offers = {**DISCOVERED, "capabilities": {"tools": {"listChanged": True}, "prompts": {}}}
    acknowledged = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}
    server = Server(
        server__discover=result(offers),
        subscriptions__listen=events(acknowledged, CHANGED, LOG, ASKS, OTHER, close=False),
    )
    wide: list[Message] = []
    async with linked(server) as (link, log):
        link.on_notification = wide.append
        await link.open()
        await until(lambda: wide)
        await asyncio.sleep(0.05)
    assert [m.method for m in wide] == ["notifications/tools/list_changed"]
    message, headers = server.last("subscriptions/listen")
    assert message["params"]["notifications"] == {"toolsListChanged": True}
    assert headers["mcp-method"] == "subscriptions/listen"
    assert sum("E1236" in line for line in log) == 2


async def test_a_legacy_stream_that_breaks_off_is_taken_up_where_it_was_and_nothing_is_sent_twice() -> None:
    sent: list[int] = []

    def call(message: Any, request: Request, responder: Responder) -> None:
        sent.append(message["id"])
        stream = responder.stream()
        stream._wire.write(b"1b\r\nid: e-1\nretry: 50\ndata:\n\n\n\r\n")
        stream.close()

    def get(message: Any, request: Request, responder: Responder) -> None:
        if request.header("last-event-id") != "e-1":
            responder.empty(405)
            return
        stream = responder.stream()
        stream.event(json.dumps({**ANSWER, "id": sent[0]}).encode(), "e-2")
        stream.close()

    server = legacy("s-1", tools__call=call, GET=get)
    async with linked(server) as (link, _):
        await link.open()
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        assert json.loads((await heard.wait()).replies[0].result) == {"ok": True}
    assert len(sent) == 1 and heard.partings == 0


async def test_a_server_that_ends_its_stream_before_the_answer_is_told_of_as_one_that_wants_to_be_asked_again() -> None:
    sent: list[int] = []

    def call(message: Any, request: Request, responder: Responder) -> None:
        sent.append(message["id"])
        stream = responder.stream()
        stream.event(b"", "e-1", 50)
        stream.close()

    def get(message: Any, request: Request, responder: Responder) -> None:
        if request.header("last-event-id") != "e-1":
            responder.empty(405)
            return
        stream = responder.stream()
        stream.event(json.dumps({**ANSWER, "id": sent[0]}).encode(), "e-2")
        stream.close()

    async with linked(legacy("s-1", tools__call=call, GET=get)) as (link, _):
        await link.open()
        heard = Heard()
        link.call("tools/call", b'{"name":"a"}', heard)
        assert json.loads((await heard.wait()).replies[0].result) == {"ok": True}
    assert len(sent) == 1 and heard.partings == 1


@pytest.mark.parametrize("header", ["Host", "Mcp-Session-Id", "mcp-name", "Content-Length", "Bad Name", "Line\r\nBreak"])
def test_a_configured_header_that_cannot_be_sent_is_an_error_without_its_value(header: str) -> None:
    with pytest.raises(EarnestError) as info:
        HttpLink("srv", "http://a/", client=ClientHello(), log=print, headers={header: "s3cret"})
    assert info.value.code == "E1238" and "s3cret" not in str(info.value)
    with pytest.raises(EarnestError):
        HttpLink("srv", "http://a/", client=ClientHello(), log=print, headers={"X": "a\r\nb"})

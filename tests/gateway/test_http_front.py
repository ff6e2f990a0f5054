"""Clients over HTTP: who is let in, which session a request belongs to, what the statuses say."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.live import Live, Start, names, reader, text_of, tool
from servers.client import HttpClient

JSON = {"Content-Type": "application/json"}
PLAIN = {**JSON, "Accept": "application/json, text/event-stream"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
WRITE = tool("write", readOnlyHint=False)
SERVER = {"tools": [reader("read"), WRITE], "calls": {"hang": [{"wait_cancel": 20}, {"text": "late"}]}}
ROUTES = ["/mcp", "/s/one/mcp", "/v/few/mcp"]
VIEW = '[views.few]\nservers = ["one"]\n'


def message(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}).encode()


def modern(method: str, id: Any = 1, **params: Any) -> tuple[bytes, dict[str, str]]:
    headers = {**PLAIN, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return message(method, {"_meta": META, **params}, id), headers


@pytest.fixture
async def live(gateway: Start, scripted: Callable[..., Any]) -> Live:
    command, _ = scripted({**SERVER, "tools": [*SERVER["tools"], reader("hang")]})
    return await gateway({"one": {"command": command}}, more=VIEW)


@pytest.mark.parametrize("path", [*ROUTES, "/", "/s/none/mcp"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT", "OPTIONS"])
async def test_every_route_and_method_wants_the_token(live, path, method):
    missing = await live.raw(message("ping"), PLAIN, path, method, token="-")
    wrong = await live.raw(message("ping"), PLAIN, path, method, token="x" * 43)
    assert (missing.status, wrong.status) == (401, 401)
    assert "Bearer" in missing.headers["www-authenticate"]


async def test_a_foreign_host_is_told_that_it_is_not_served_here(live):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost:1"):
        assert (await live.raw(message("ping"), {**PLAIN, "Host": host})).status == 421


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://evil.example", "null", "http://127.0.0.1:1"])
async def test_a_page_is_refused_even_one_on_localhost_with_the_token(live, origin):
    for method in ("POST", "GET", "DELETE"):
        assert (await live.raw(message("ping"), {**PLAIN, "Origin": origin}, method=method)).status == 403


async def test_the_listeners_own_origin_is_none_of_a_page_and_passes(live):
    port = live.url.rpartition(":")[2]
    for origin in (live.url, f"http://localhost:{port}"):
        assert (await live.raw(message("ping"), {**PLAIN, "Origin": origin})).status == 200
    for origin in ("http://localhost", f"https://localhost:{port}", f"http://localhost:{port}.evil.example"):
        assert (await live.raw(message("ping"), {**PLAIN, "Origin": origin})).status == 403


async def test_errors_of_a_modern_server_come_with_the_status_of_their_code(gateway, scripted):
    calls = {"poor": {"error": {"code": -32021, "message": "no", "data": {"requiredCapabilities": {"sampling": {}}}}}}
    calls["odd"] = {"error": {"code": -32000, "message": "no"}}
    tools = [reader("poor"), reader("odd")]
    command, _ = scripted({"era": "modern", "tools": tools, "calls": calls})
    live = await gateway({"one": {"command": command}})
    for name, code, status in (("poor", -32021, 400), ("odd", -32000, 200)):
        reply = await live.raw(*modern("tools/call", name=name, arguments={}), "/s/one/mcp")
        assert (reply.status, reply.json()["error"]["code"]) == (status, code)


async def test_a_tool_that_no_list_has_is_answered_at_once_and_nobody_is_asked(gateway, scripted):
    command, record = scripted(SERVER)
    live = await gateway({"one": {"command": command}}, preset="cautious")
    for era in ("legacy", "modern"):
        client = await live.opened("/s/one/mcp", era)
        answer = await asyncio.wait_for(client.call("nowhere"), 10)
        assert answer["result"]["isError"] and text_of(answer).startswith("Unknown tool 'nowhere'")
    assert not record.calls()


async def test_a_body_of_another_version_than_its_header_is_a_mismatch(live):
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "v999"}
    headers = {**PLAIN, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
    reply = await live.raw(message("server/discover", {"_meta": meta}), headers)
    assert (reply.status, reply.json()["error"]["code"]) == (400, -32020)


async def test_initialize_in_the_modern_era_is_a_method_that_it_does_not_have(live):
    reply = await live.raw(*modern("initialize"))
    assert (reply.status, reply.json()["error"]["code"]) == (404, -32601)


async def test_a_body_that_is_no_json_or_says_it_is_not_is_refused(live):
    assert (await live.raw(message("ping"), {**PLAIN, "Content-Type": "text/plain"})).status == 415
    assert (await live.raw(message("ping"), {"Accept": "*/*"})).status == 415
    for header, value in (("Content-Encoding", "gzip"), ("Content-Type", "application/json; charset=utf-16")):
        assert (await live.raw(message("ping"), {**PLAIN, header: value})).status == 415
    for header, value in (("Content-Encoding", "identity"), ("Content-Type", 'application/json; charset="UTF-8"')):
        assert (await live.raw(message("ping"), {**PLAIN, header: value})).status != 415
    bad = await live.raw(b"{", PLAIN)
    assert (bad.status, bad.json()["error"]["code"]) == (400, -32700)
    batch = await live.raw(b"[" + message("ping") + b"]", PLAIN)
    assert (batch.status, batch.json()["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize(
    "accept,status",
    [
        ("application/json", 406),
        ("text/event-stream", 406),
        ("application/json, text/event-stream;q=0", 406),
        ("text/html, */*;q=0.1", 200),
        ("text/event-stream, application/*", 200),
        ("Application/JSON;q=0.9,text/event-stream", 200),
    ],
)
async def test_a_client_has_to_take_both_forms_of_an_answer(live, accept, status):
    assert (await live.raw(message("ping"), {**JSON, "Accept": accept})).status == status


async def test_a_request_that_says_nothing_of_accept_is_answered(live):
    assert (await live.raw(message("ping"), JSON)).status == 200


# Legacy sessions


async def test_initialize_makes_a_session_that_delete_ends(live):
    client = await live.opened()
    assert client.session
    assert names(await client.request("tools/list")) == ["one__read", "one__write", "one__hang"]
    headers = {"Mcp-Session-Id": client.session}
    assert (await live.raw(headers=headers, method="DELETE")).status == 200
    assert (await live.raw(headers=headers, method="DELETE")).status == 404
    with pytest.raises(ConnectionError, match="404"):
        await client.request("tools/list")


async def test_without_a_session_only_ping_is_answered_and_an_unknown_one_is_not_found(live):
    for method in ("tools/list", "tools/call", "prompts/get"):
        assert (await live.raw(message(method), PLAIN)).status == 400
        assert (await live.raw(message(method), {**PLAIN, "Mcp-Session-Id": "made-up"})).status == 404
    assert (await live.raw(method="DELETE")).status == 400
    assert (await live.raw(headers={"Accept": "text/event-stream"}, method="GET")).status == 405
    unknown = {"Accept": "text/event-stream", "Mcp-Session-Id": "made-up"}
    assert (await live.raw(headers=unknown, method="GET")).status == 404


async def test_a_session_serves_neither_another_route_nor_another_client(live):
    client = await live.opened("/s/one/mcp")
    other = live.app.tokens.make("other")
    session = {**PLAIN, "Mcp-Session-Id": client.session}
    for path, token in (("/mcp", ""), ("/v/few/mcp", ""), ("/s/one/mcp", other)):
        for method in ("POST", "GET", "DELETE"):
            assert (await live.raw(message("tools/list"), session, path, method, token)).status == 404
    assert names(await client.request("tools/list")) == ["read", "write", "hang"]


async def test_a_version_nobody_speaks_is_named_in_the_answer(live):
    client = await live.opened()
    headers = {**PLAIN, "MCP-Protocol-Version": "1999-01-01"}
    for more in ({}, {"Mcp-Session-Id": client.session}):
        reply = await live.raw(message("tools/list"), {**headers, **more})
        error = reply.json()["error"]
        assert (reply.status, error["code"], error["data"]["requested"]) == (400, -32022, "1999-01-01")
        assert "2026-07-28" in error["data"]["supported"]


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_each_legacy_version_is_agreed_to(live, version):
    client = await live.opened(version=version)
    assert client.opened["result"]["protocolVersion"] == version
    assert names(await client.request("tools/list"))


async def test_an_unknown_or_modern_version_in_initialize_is_answered_with_the_newest_legacy_one(live):
    for version in ("2026-07-28", "1999-01-01"):
        assert (await live.opened(version=version)).opened["result"]["protocolVersion"] == "2025-11-25"


async def test_the_get_stream_brings_what_belongs_to_no_request(gateway, scripted):
    steps = [{"tools": [reader("new")]}, {"list_changed": "tools"}, {"text": "ok"}]
    command, _ = scripted({"tools": [reader("change")], "calls": {"change": steps}})
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp")
    await client.listen()
    await client.request("tools/list")
    await client.call("change")
    await client.notification("notifications/tools/list_changed")
    assert not any(task.done() for key, task in client._tasks.items() if key == "GET")


async def test_a_legacy_call_is_cancelled_by_its_word_and_not_by_a_closed_connection(gateway, scripted):
    command, record = scripted({**SERVER, "tools": [reader("hang")]})
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp")
    first = await client.begin("tools/call", {"name": "hang", "arguments": {}})
    await record.wait("call")
    client._tasks[str(first)].cancel()
    second = await client.begin("tools/call", {"name": "hang", "arguments": {"n": 2}})
    calls = await record.wait("call", 2)
    await client.cancel(second)
    cancelled = await record.wait("cancelled")
    assert [one["id"] for one in cancelled] == [calls[1]["id"]]


# The modern era


async def test_modern_requests_stand_alone_and_say_so_in_their_status(live):
    good = await live.raw(*modern("server/discover"))
    assert (good.status, "mcp-session-id" in good.headers) == (200, False)
    result = good.json()["result"]
    assert result["supportedVersions"][0] == "2026-07-28" and result["resultType"] == "complete"
    body, headers = modern("tools/list")
    lacking = json.loads(body)
    del lacking["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    newer = json.loads(body)
    newer["params"]["_meta"] = {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    cases = [
        (body, {**headers, "Mcp-Method": "tools/call"}, 400, -32020),
        (body, {name: value for name, value in headers.items() if not name.lower().startswith("mcp-")}, 400, -32020),
        (json.dumps(lacking).encode(), headers, 400, -32602),
        (json.dumps(newer).encode(), {**headers, "MCP-Protocol-Version": "2031-01-01"}, 400, -32022),
        (*modern("tools/unheard-of"), 404, -32601),
        (*modern("logging/setLevel"), 404, -32601),
        (*modern("tools/call", name="one__nothing"), 400, -32602),
        (*modern("tools/list", cursor="x"), 400, -32602),
    ]
    for body, headers, status, code in cases:
        reply = await live.raw(body, headers)
        assert (reply.status, reply.json()["error"]["code"]) == (status, code), body


@pytest.mark.parametrize("path", ROUTES)
async def test_modern_calls_work_on_every_route(live, path):
    client = await live.opened(path, "modern")
    name = "read" if path == "/s/one/mcp" else "one__read"
    assert text_of(await client.call(name, {"n": 1})) == '{"n":1}'


async def test_closing_the_connection_cancels_a_modern_call_and_only_that_one(gateway, scripted):
    command, record = scripted({**SERVER, "tools": [reader("hang")]})
    live = await gateway({"one": {"command": command}})
    for path, name in (("/s/one/mcp", "hang"), ("/mcp", "one__hang")):
        seen = len(record.events("cancelled"))
        one, two = live.client(path), live.client(path)
        for client in (one, two):
            await client.open("modern")
        # Two connections of one client use the same id at once.
        first = await one.begin("tools/call", {"name": name, "arguments": {"n": 1}}, id="same")
        await record.wait("call", seen + 1)
        second = await two.begin("tools/call", {"name": name, "arguments": {"n": 2}}, id="same")
        calls = await record.wait("call", seen + 2)
        await one.cancel(first)
        cancelled = await record.wait("cancelled", seen + 1)
        assert cancelled[-1]["id"] == calls[-2]["id"]
        assert not two._waiting[json.dumps(second)].done()
        await two.cancel(second)
        await record.wait("cancelled", seen + 2)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_given_up_while_its_server_still_starts_never_reaches_it(gateway, scripted, era):
    listing = [{"sleep": 0.6}, {"result": {"tools": [reader("slow"), reader("read")]}}]
    script = {"era": "legacy", "tools": [reader("slow"), reader("read")], "methods": {"tools/list": listing}}
    command, record = scripted(script)
    live = await gateway({"one": {"command": command, "shared": True}})
    client = await live.opened("/mcp", era)
    given_up = await client.begin("tools/call", {"name": "one__slow", "arguments": {}})
    while not any(session._pending for session in live.app.gateway.sessions):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    await client.cancel(given_up)
    assert "result" in await client.call("one__read")
    assert [one["name"] for one in record.calls()] == ["read"]


async def test_requests_with_one_id_on_two_connections_each_get_their_own_answer(live):
    clients = [await live.opened("/s/one/mcp", "modern") for _ in range(8)]
    ids = [
        await client.begin("tools/call", {"name": "read", "arguments": {"n": n}}, id=7) for n, client in enumerate(clients)
    ]
    answers = [await client.answer(id) for client, id in zip(clients, ids, strict=True)]
    assert [json.loads(text_of(one)) for one in answers] == [{"n": n} for n in range(8)]


async def test_a_subscription_says_what_it_honours_and_brings_list_changes(gateway, scripted):
    steps = [{"tools": [reader("change"), reader("new")]}, {"list_changed": "tools"}, {"text": "ok"}]
    command, _ = scripted({"tools": [reader("change")], "calls": {"change": steps}})
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp", "modern")
    wanted = {"toolsListChanged": True, "unheardOf": True, "resourceSubscriptions": ["file:///x"]}
    id = await client.begin("subscriptions/listen", {"notifications": wanted}, id="sub")
    told = await client.notification("notifications/subscriptions/acknowledged")
    assert told["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["file:///x"]}
    assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}
    await client.request("tools/list")
    await client.call("change")
    change = await client.notification("notifications/tools/list_changed")
    assert change["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}
    await client.cancel(id)


# Narrowing


async def test_a_request_narrows_itself_to_readers_and_nothing_widens(gateway, scripted):
    command, record = scripted(SERVER)
    live = await gateway({"one": {"command": command, "trust": "trusted"}}, more='[views.safe]\nwhen = "tool.read_only"\n')
    narrowed = HttpClient(live.url + "/s/one/mcp", live.token, {"X-MCP-Readonly": "true"})
    await narrowed.open("modern")
    assert names(await narrowed.request("tools/list")) == ["read"]
    # What is hidden cannot be called either.
    before = len(record.calls())
    answer = await narrowed.call("write")
    assert answer.get("error") or answer["result"]["isError"]
    assert len(record.calls()) == before
    for value in ("false", "0", ""):
        wide = HttpClient(live.url + "/v/safe/mcp", live.token, {"X-MCP-Readonly": value})
        await wide.open("modern")
        assert names(await wide.request("tools/list")) == ["one__read"]


async def test_a_legacy_session_that_narrows_once_stays_narrow(gateway, scripted):
    command, _ = scripted(SERVER)
    live = await gateway({"one": {"command": command, "trust": "trusted"}})
    client = await live.opened("/s/one/mcp")
    assert names(await client.request("tools/list")) == ["read", "write"]
    client.headers["X-MCP-Readonly"] = "false, true"
    assert names(await client.request("tools/list")) == ["read"]
    client.headers["X-MCP-Readonly"] = "false"
    assert names(await client.request("tools/list")) == ["read"]


async def test_initialize_on_the_route_of_all_answers_while_a_server_hangs(gateway, scripted, monkeypatch):
    monkeypatch.setattr("earnest.gateway.lists.PATIENCE_S", 600.0)
    good, _ = scripted(SERVER, "good")
    hung, _ = scripted({"methods": {name: {"never": True} for name in ("initialize", "server/discover")}}, "hung")
    live = await gateway({"good": {"command": good}, "hung": {"command": hung, "timeout": 600}})
    for era in ("legacy", "modern"):
        client = live.client()
        await client.open(era)
        # A call to the server that works waits for no other, and wants no list first.
        assert text_of(await client.call("good__read", {"n": 1})) == '{"n":1}'

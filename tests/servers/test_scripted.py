"""The scripted servers and raw clients do what their README says, in both eras and over both transports."""

import asyncio
import json
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client as stdio_client_of_sdk

from servers.client import NOTHING, HttpClient, StdioClient

ADD = {"name": "add", "inputSchema": {"type": "object"}}
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def text(message: dict[str, Any]) -> str:
    return message["result"]["content"][0]["text"]


def scripts(**calls: Any) -> dict[str, Any]:
    return {
        "tools": [ADD, *({"name": name, "inputSchema": {"type": "object"}} for name in calls)],
        "calls": calls,
    }


@ERAS
@pytest.mark.parametrize("transport", ["stdio", "json", "sse"])
async def test_a_call_is_answered_and_recorded(era, transport, scripted, scripted_http, stdio_client):
    script = {"tools": [ADD], "instructions": "hello"}
    if transport == "stdio":
        command, record = scripted(script)
        client = await stdio_client(command)
    else:
        server = scripted_http({**script, "http": {"answer": transport, "session": True, "strict": True}})
        client, record = HttpClient(server.url), server.record
    opened = await client.open(era)
    assert opened["result"]["instructions"] == "hello"
    assert [tool["name"] for tool in await client.list_all()] == ["add"]
    message = await client.call("add", {"a": 1})
    assert text(message) == '{"a":1}'
    assert ("resultType" in message["result"]) is (era == "modern")
    assert record.calls("add")[0]["arguments"] == {"a": 1}
    assert len(record.calls()) == 1


async def test_eras_that_a_server_does_not_speak_are_refused(scripted, stdio_client):
    command, _ = scripted({"era": "legacy", "tools": [ADD]}, "legacy")
    client = await stdio_client(command)
    assert (await client.open("modern"))["error"]["code"] == -32601
    command, _ = scripted({"era": "modern", "tools": [ADD]}, "modern")
    client = await stdio_client(command)
    assert (await client.open("legacy"))["error"]["data"]["supported"] == ["2026-07-28"]


async def test_lists_come_in_pages_and_flip_when_told(scripted, stdio_client):
    tools = [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(5)]
    command, record = scripted({"tools": tools, "page": 2, "flip": {"after": 3, "tools": [ADD]}})
    client = await stdio_client(command)
    await client.open()
    assert len(await client.list_all()) == 5
    assert len(record.messages("tools/list")) == 3
    assert await client.list_all() == [ADD]


async def test_odd_answers_leave_exactly_as_written(scripted, stdio_client):
    odd = {
        "twice": [{"text": "one"}, {"text": "two"}],
        "wrong": [{"wrong_id": 999}],
        "garbage": [
            {"raw": "{not json\n"},
            {"raw": '{"jsonrpc":"2.0","id":$ID,"result":{"n":1.0,"n":1e400}}\n'},
        ],
    }
    command, _ = scripted(scripts(**odd))
    client = await stdio_client(command)
    await client.open()
    assert text(await client.call("twice")) == "one"
    await client.begin("tools/call", {"name": "wrong"})
    id = await client.begin("tools/call", {"name": "garbage"})
    await client.answer(id)
    assert client.garbage == [b"{not json\n"]
    assert any(b'"result":{"n":1.0,"n":1e400}' in line for line in client.lines)
    await client.until(lambda: len(client.orphans) == 2)
    assert sorted(orphan["id"] for orphan in client.orphans) == [2, 999]


@pytest.mark.parametrize("how, code", [({"exit": 7}, 7), ({"kill": True}, -9)])
async def test_a_server_dies_in_the_middle_of_a_call(how, code, scripted, stdio_client):
    command, record = scripted(scripts(die=[how]))
    client = await stdio_client(command)
    await client.open()
    await client.begin("tools/call", {"name": "die"})
    assert await client.wait() == code
    assert len(record.calls("die")) == 1


@ERAS
async def test_a_cancellation_stops_the_right_call_and_is_recorded(era, scripted, stdio_client):
    command, record = scripted(scripts(slow=[{"wait_cancel": 20}, {"text": "late"}], quick=[{"text": "now"}]))
    client = await stdio_client(command)
    await client.open(era)
    slow = await client.begin("tools/call", {"name": "slow"})
    assert text(await client.call("quick")) == "now"
    await client.cancel(slow)
    assert (await record.wait("cancelled"))[0]["id"] == slow
    assert record.events("cancelled")[0]["known"]
    await record.wait("stopped", id=slow)
    with pytest.raises(TimeoutError):
        await client.answer(slow, timeout=0.1)


async def test_closing_the_stream_of_a_modern_http_call_cancels_it(scripted_http):
    server = scripted_http(scripts(slow=[{"wait_cancel": 20}]))
    client = HttpClient(server.url)
    await client.open("modern")
    slow = await client.begin("tools/call", {"name": "slow"})
    await server.record.wait("call")
    await client.cancel(slow)
    assert (await server.record.wait("cancelled"))[0]["closed"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_progress_and_requests_to_the_client_arrive_in_order(transport, scripted, scripted_http, stdio_client):
    ask = {"method": "elicitation/create", "params": {"message": "sure?"}}
    script = scripts(ask=[{"progress": {"progress": 1}}, {"request": ask}, {"answer": True}])
    if transport == "stdio":
        client = await stdio_client(scripted(script)[0])
    else:
        client = HttpClient(scripted_http(script).url)
    client.answers["elicitation/create"] = lambda params: {
        "action": "accept",
        "content": {"said": params["message"]},
    }
    await client.open("legacy", {"elicitation": {}})
    message = await client.call("ask", meta={"progressToken": "p1"})
    assert json.loads(text(message)) == {"action": "accept", "content": {"said": "sure?"}}
    assert client.notifications[0]["params"] == {"progressToken": "p1", "progress": 1}


async def test_opening_steps_may_ask_the_client_and_wait(scripted, stdio_client):
    ask = {"method": "roots/list", "wait": 5}
    command, record = scripted({"start": [{"request": ask}, {"notify": {"method": "notifications/x"}}]})
    client = await stdio_client(command)
    client.answers["roots/list"] = {"roots": []}
    await client.open("legacy", {"roots": {}})
    await client.notification("notifications/x")
    assert (await record.wait("answer"))[0]["known"]


async def test_a_silent_client_leaves_the_servers_question_open(scripted, stdio_client):
    ask = {"method": "elicitation/create", "params": {}, "wait": 0.2}
    command, record = scripted(scripts(ask=[{"request": ask}, {"text": "gave up"}]))
    client = await stdio_client(command)
    client.answers["elicitation/create"] = NOTHING
    await client.open()
    assert text(await client.call("ask")) == "gave up"
    assert len(record.events("unanswered")) == 1


async def test_input_required_is_answered_and_tried_again(scripted, stdio_client):
    request = {"method": "elicitation/create", "params": {"message": "sure?"}}
    first = {"resultType": "input_required", "inputRequests": {"k": request}, "requestState": "sealed"}
    command, record = scripted(scripts(ask={"retry": {"first": [{"result": first}], "then": [{"text": "done"}]}}))
    client = await stdio_client(command)
    client.answers["elicitation/create"] = {"action": "decline"}
    await client.open("modern", {"elicitation": {"form": {}}})
    assert text(await client.call_asking("ask")) == "done"
    again = record.messages("tools/call")[1]["params"]
    assert again["requestState"] == "sealed" and again["inputResponses"] == {"k": {"action": "decline"}}


@ERAS
async def test_a_changed_list_is_announced_to_who_listens(era, scripted, stdio_client):
    command, _ = scripted(scripts(change=[{"tools": []}, {"list_changed": "tools"}, {"text": "ok"}]))
    client = await stdio_client(command)
    await client.open(era)
    if era == "modern":
        listen = await client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await client.notification("notifications/subscriptions/acknowledged")
    await client.call("change")
    note = await client.notification("notifications/tools/list_changed")
    if era == "modern":
        assert note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listen
    assert await client.list_all() == []


async def test_each_time_of_a_sequence_has_its_steps(scripted, stdio_client):
    steps = {"sequence": [{"text": "first"}, [{"stderr": 200_000}, {"text": "then"}]]}
    command, _ = scripted(scripts(turns=steps))
    client = await stdio_client(command)
    await client.open()
    assert [text(await client.call("turns")) for _ in range(3)] == ["first", "then", "then"]
    await client.close()
    assert len(client.stderr) >= 400_000


async def test_an_unknown_verb_ends_the_server_with_the_list_of_known_ones(scripted, run_bounded):
    command, _ = scripted(scripts(odd=[{"explode": True}]))
    done = run_bounded(command)
    assert done.code == 1 and "explode" in done.err and "wait_cancel" in done.err


async def test_sessions_of_a_legacy_http_server_can_be_lost(scripted_http):
    server = scripted_http({"tools": [ADD], "http": {"session": True, "lose_session_after": 2}})
    client = HttpClient(server.url)
    await client.open()
    assert client.session
    await client.request("tools/list")
    with pytest.raises(ConnectionError, match="404"):
        await client.request("tools/list")
    client.session = None
    with pytest.raises(ConnectionError, match="400"):
        await client.request("tools/list")


async def test_a_strict_server_compares_headers_with_the_body(scripted_http):
    client = HttpClient(scripted_http({"tools": [ADD], "http": {"strict": True}}).url)
    await client.open("modern")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "add", "_meta": meta}}
    headers = {**client.standard_headers(body), "Mcp-Name": "other"}
    reply = await client.post(json.dumps(body).encode(), headers)
    assert (reply.status, reply.json()["error"]["code"]) == (400, -32020)


async def test_wrong_tokens_are_turned_away(scripted_http):
    server = scripted_http({"http": {"token": "right"}})
    assert (await HttpClient(server.url, "wrong").post(b"{}")).status == 401
    assert "result" in await HttpClient(server.url, "right").open()


async def test_what_belongs_to_no_request_comes_on_the_get_stream(scripted_http):
    server = scripted_http(scripts(change=[{"list_changed": "tools"}, {"text": "ok"}]))
    client = HttpClient(server.url)
    await client.open()
    await client.listen()
    await client.call("change")
    await client.notification("notifications/tools/list_changed")
    await client.close()


async def test_the_older_sse_transport_answers_on_its_stream(scripted_http):
    server = scripted_http({"tools": [ADD], "http": {"legacy_sse": True}})
    client = HttpClient(server.url)
    seen: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    stream = asyncio.create_task(client.post(b"", method="GET", on_event=seen.put))
    endpoint = (await asyncio.wait_for(seen.get(), 60))["text"]
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    assert (await client.post(body, path=endpoint)).status == 202
    assert (await asyncio.wait_for(seen.get(), 60))["result"] == {"tools": [ADD]}
    stream.cancel()


async def test_raw_stream_text_can_smuggle_what_a_server_must_not_send(scripted_http):
    smuggled = 'data: {"jsonrpc":"2.0","id":"x","method":"sampling/createMessage"}\n\n'
    server = scripted_http(scripts(odd=[{"raw": smuggled}, {"text": "answer"}]))
    client = HttpClient(server.url)
    await client.open("modern")
    assert text(await client.call("odd")) == "answer"
    assert client.requests[0]["method"] == "sampling/createMessage"


async def test_a_stdio_client_reports_the_end_of_its_server(scripted):
    command, record = scripted({"tools": [ADD]})
    client = await StdioClient.start(command)
    await client.open()
    assert await client.close() == 0
    assert client.ended.is_set() and record.events("eof")


@ERAS
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_official_client_understands_the_scripted_servers(era, transport, scripted, scripted_http):
    script = {"tools": [ADD], "http": {"session": True, "strict": True}}
    if transport == "stdio":
        command, record = scripted(script)
        target: Any = stdio_client_of_sdk(StdioServerParameters(command=command[0], args=command[1:]))
    else:
        server = scripted_http(script)
        target, record = server.url, server.record
    async with Client(target, mode="legacy" if era == "legacy" else "auto") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]
        assert (await client.call_tool("add", {"a": 1})).content[0].text == '{"a":1}'
    assert bool(record.messages("initialize")) is (era == "legacy")

"""Both eras on both sides, over pipes and over HTTP: what a client does works the same, whoever serves it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.live import Start, names, reader, text_of
from servers.client import Client, StdioClient

CALLS = {
    "step": [{"progress": {"progress": 1, "total": 2}}, {"progress": {"progress": 2, "total": 2}}, {"text": "done"}],
    "hang": [{"wait_cancel": 20}, {"text": "late"}],
    "change": [{"tools": [reader("change"), reader("fresh")]}, {"list_changed": "tools"}, {"text": "changed"}],
    "fail": [{"tool_error": "no paper"}],
    "structured": [{"result": {"content": [], "structuredContent": {"n": 1.50, "x-own": None}, "x-more": {"b": 2, "a": 1}}}],
}
SCRIPT: dict[str, Any] = {
    "instructions": "be kind",
    "tools": [reader(name) for name in ("echo", *CALLS)],
    "calls": CALLS,
    "resources": [{"uri": "file:///a", "name": "a"}],
    "templates": [{"uriTemplate": "file:///x/{name}", "name": "x"}],
    "contents": {"file:///x/1": [{"result": {"contents": [{"uri": "file:///x/1", "text": "one"}]}}]},
    "prompts": [{"name": "p", "arguments": [{"name": "who"}]}],
    "capabilities": {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
    },
    "methods": {"completion/complete": [{"result": {"completion": {"values": ["word"]}}}]},
    "http": {"session": True, "strict": True},
}
SIDES = [
    pytest.param(client, server, up, down, id=f"{client}-client-{down}-{server}-server-{up}")
    for client in ("legacy", "modern")
    for server in ("legacy", "modern")
    for up in ("stdio", "http")
    for down in (("http", "stdio") if up == "stdio" else ("http",))
]

pytestmark = pytest.mark.parametrize("era,server_era,up,down", SIDES)


class Pair:
    """One client before the gateway, one server behind it."""

    def __init__(self, client: Client, record: Any, era: str, server_era: str) -> None:
        self.client = client
        self.record = record
        self.era = era
        self.server_era = server_era


@pytest.fixture
async def pair(
    era: str, server_era: str, up: str, down: str, gateway: Start, scripted: Callable[..., Any],
    scripted_http: Callable[..., Any], home: Any, earnest_cmd: list[str], stdio_client: Callable[..., Any],
) -> AsyncIterator[Pair]:  # fmt: skip
    script = {**SCRIPT, "era": server_era}
    if up == "stdio":
        command, record = scripted(script)
        table: dict[str, Any] = {"command": command}
    else:
        served = scripted_http(script)
        table, record = {"url": served.url}, served.record
    client: Client
    if down == "http":
        client = (await gateway({"one": table})).client("/s/one/mcp")
    else:
        home.config.write_text(f'preset = "observe"\n[servers.one]\ncommand = {json.dumps(table["command"])}\n')
        client = await stdio_client([*earnest_cmd, "stdio", "one"], home.env)
    await client.open(era)
    yield Pair(client, record, era, server_era)
    if isinstance(client, StdioClient):
        assert await client.close() == 0, client.stderr


async def test_everything_a_client_does_works(pair):
    client = pair.client
    opened = client.opened["result"]
    assert opened["instructions"] == "be kind"
    assert ("supportedVersions" in opened) is (pair.era == "modern")
    assert names(await client.request("tools/list")) == ["echo", *CALLS]
    assert text_of(await client.call("echo", {"n": 1})) == '{"n":1}'
    failed = await client.call("fail")
    assert failed["result"]["isError"] and text_of(failed) == "no paper"
    structured = (await client.call("structured"))["result"]
    assert structured["structuredContent"] == {"n": 1.5, "x-own": None} and structured["x-more"] == {"b": 2, "a": 1}
    # resources, prompts, completion
    listed = (await client.request("resources/list"))["result"]
    assert [one["uri"] for one in listed["resources"]] == ["file:///a"]
    templates = (await client.request("resources/templates/list"))["result"]
    assert [one["uriTemplate"] for one in templates["resourceTemplates"]] == ["file:///x/{name}"]
    read = (await client.request("resources/read", {"uri": "file:///x/1"}))["result"]
    assert read["contents"][0]["text"] == "one"
    assert names(await client.request("prompts/list")) == ["p"]
    prompt = (await client.request("prompts/get", {"name": "p", "arguments": {"who": "me"}}))["result"]
    assert prompt["messages"]
    completed = await client.request(
        "completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "who", "value": "w"}}
    )
    assert completed["result"]["completion"]["values"] == ["word"]
    # Each answer is one of the client's era.
    for result in (structured, listed, templates, read, prompt, completed["result"]):
        assert ("resultType" in result) is (pair.era == "modern")
    for result in (listed, templates):
        assert ("ttlMs" in result) is (pair.era == "modern")
    # And each request to the server one of the server's.
    for message in pair.record.messages("tools/call"):
        meta = message["params"].get("_meta", {})
        assert ("io.modelcontextprotocol/protocolVersion" in meta) is (pair.server_era == "modern")
    assert pair.record.messages("initialize") or pair.server_era == "modern"


async def test_progress_and_cancelling_find_their_call(pair):
    message = await pair.client.call("step", meta={"progressToken": "mine"})
    assert text_of(message) == "done"
    told = [one["params"] for one in pair.client.notifications if one["method"] == "notifications/progress"]
    assert [(one["progressToken"], one["progress"]) for one in told] == [("mine", 1), ("mine", 2)]
    # The right one of two calls is cancelled.
    client = pair.client
    first = await client.begin("tools/call", {"name": "hang", "arguments": {"n": 1}})
    await pair.record.wait("call", 2)
    second = await client.begin("tools/call", {"name": "hang", "arguments": {"n": 2}})
    calls = await pair.record.wait("call", 3)
    await client.cancel(second)
    cancelled = await pair.record.wait("cancelled")
    assert [one["id"] for one in cancelled] == [calls[2]["id"]] and calls[2]["arguments"] == {"n": 2}
    assert not client._waiting[json.dumps(first)].done()
    await client.cancel(first)
    await pair.record.wait("cancelled", 2)


async def test_a_changed_list_is_told_and_pinned_first(pair, down):
    client = pair.client
    await client.request("tools/list")
    if pair.era == "modern":
        await client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await client.notification("notifications/subscriptions/acknowledged")
    elif down == "http":
        await client.listen()
    # The server's own stream must be there before it has something to say.
    await pair.record.wait("message")
    for _ in range(100):
        listening = pair.record.messages("subscriptions/listen") or any(
            one["method"] == "GET" for one in pair.record.events("http")
        )
        if listening or (not pair.record.events("http") and pair.server_era == "legacy"):
            break
        await asyncio.sleep(0.01)
    await client.call("change")
    await client.notification("notifications/tools/list_changed")
    # Told only after the walk: the list is the new one, and no further request of the server's list is needed.
    walked = len(pair.record.messages("tools/list"))
    assert names(await client.request("tools/list")) == ["change", "fresh"]
    assert len(pair.record.messages("tools/list")) == walked

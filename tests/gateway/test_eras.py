"""Eras and versions from a client's first word to a server's: what is agreed, what passes as it came, what fails clearly."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.live import names, reader, text_of

LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
ODD = '{"x" : 1.10,"big":123456789012345678901234567890, "e":1E5,"u":"\\u00e9","list": [ ]}'


def pipe(scripted: Callable[..., Any], script: dict[str, Any], name: str = "one") -> tuple[dict[str, Any], Any]:
    command, record = scripted({"tools": [reader("echo")], **script}, name)
    return {"command": command}, record


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("other", [False, True])
async def test_arguments_and_results_keep_their_bytes(gateway, scripted, era, other):
    """In one era the whole result does; across eras whatever the bridge has no reason to touch."""
    content = '{"type":"text","text":"a","x-own": [1.0, 2e3],"_meta":{"k" :1}}'
    result = f'{{"content":[{content}],"structuredContent":{ODD},"resultType":"complete"}}'
    server_era = era if not other else {"legacy": "modern", "modern": "legacy"}[era]
    if server_era == "legacy":
        result = result.replace(',"resultType":"complete"', "")
    table, record = pipe(
        scripted, {"era": server_era, "calls": {"echo": [{"line": f'{{"jsonrpc":"2.0","id":$ID,"result":{result}}}'}]}}
    )
    live = await gateway({"one": table})
    client = await live.opened("/s/one/mcp", era)
    meta = {} if era == "legacy" else {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    if meta:
        meta["io.modelcontextprotocol/clientCapabilities"] = {}  # type: ignore[assignment]
    body = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "echo", "_meta": meta}})
    body = body.replace('"name": "echo"', f'"name": "echo", "arguments": {ODD}, "x-mine": {{"b":1, "a":2}}')
    message = json.loads(body)
    reply = await client.post(body.encode(), client.standard_headers(message))
    sent = record.texts("tools/call")[0]
    assert ODD in sent and '"x-mine"' in sent and '{"b":1, "a":2}' in sent
    assert content in reply.body.decode() and ODD in reply.body.decode()
    if not other:
        assert result[1:] in reply.body.decode()


@pytest.mark.parametrize("version", LEGACY)
async def test_the_version_the_client_asks_for_is_the_one_its_server_is_asked_for(gateway, scripted, version):
    table, record = pipe(scripted, {"era": "legacy"})
    live = await gateway({"one": table})
    client = await live.opened("/s/one/mcp", version=version)
    assert client.opened["result"]["protocolVersion"] == version
    assert record.messages("initialize")[0]["params"]["protocolVersion"] == version
    assert text_of(await client.call("echo", {"n": 1})) == '{"n":1}'


@pytest.mark.parametrize("version", LEGACY)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_may_answer_with_any_version_that_is_known(gateway, scripted, version, era):
    table, _ = pipe(scripted, {"era": "legacy", "version": version})
    live = await gateway({"one": table})
    client = await live.opened("/s/one/mcp", era)
    if era == "legacy":
        assert client.opened["result"]["protocolVersion"] == version
    assert text_of(await client.call("echo", {"n": 1})) == '{"n":1}'


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    "script,word",
    [
        ({"era": "legacy", "version": "1999-01-01"}, "1999-01-01"),
        ({"methods": {"initialize": {"exit": 4}, "server/discover": {"exit": 4}}}, "status 4"),
        ({"methods": {name: {"never": True} for name in ("initialize", "server/discover")}}, "said nothing within 3 s"),
        ({"methods": {"initialize": {"result": {}}, "server/discover": {"result": {}}}}, "could not be opened"),
    ],
)
async def test_a_server_that_cannot_be_opened_is_told_in_one_clear_line(gateway, scripted, era, script, word):
    table, _ = pipe(scripted, script)
    live = await gateway({"one": {**table, "timeout": 3}})
    client = live.client("/s/one/mcp")
    answer = await client.open(era)
    assert answer["error"]["code"] == -31003
    assert word in answer["error"]["message"] and "\n" not in answer["error"]["message"]
    assert "Traceback" not in answer["error"]["message"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("script", [{"era": "legacy", "methods": {"server/discover": {"exit": 1}}}, {"era": "modern"}])
async def test_a_server_that_knows_one_word_only_is_served_to_both(gateway, scripted, era, script):
    table, _ = pipe(scripted, script)
    live = await gateway({"one": table})
    client = await live.opened("/s/one/mcp", era)
    assert text_of(await client.call("echo", {"n": 1})) == '{"n":1}'


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_that_is_slow_to_start_is_waited_for(gateway, tmp_path, era):
    script = Path(__file__).parents[1] / "servers" / "scripted.py"
    inner = json.dumps({"tools": [reader("echo")]})
    live = await gateway({"one": {"command": ["sh", "-c", f"sleep 1; exec python3 -S '{script}' '{inner}'"], "timeout": 60}})
    begun = time.monotonic()
    client = await live.opened("/s/one/mcp", era)
    assert "result" in client.opened and time.monotonic() - begun > 0.9
    assert text_of(await client.call("echo", {"n": 1})) == '{"n":1}'


async def test_one_pipe_is_spoken_to_in_both_eras(home, scripted, stdio_client, earnest_cmd):
    table, record = pipe(scripted, {"calls": {"hang": [{"wait_cancel": 20}]}, "tools": [reader("echo"), reader("hang")]})
    home.config.write_text(f'preset = "observe"\n[servers.one]\ncommand = {json.dumps(table["command"])}\n')
    client = await stdio_client([*earnest_cmd, "stdio", "one"], home.env)
    # A client that probes, and then goes on in the older era all the same.
    assert "result" in await client.open("modern")
    assert names(await client.request("tools/list")) == ["echo", "hang"]
    modern = await client.begin("tools/call", {"name": "hang", "arguments": {}})
    await record.wait("call")
    assert "result" in await client.open("legacy")
    legacy = await client.begin("tools/call", {"name": "hang", "arguments": {}})
    await record.wait("call", 2)
    assert text_of(await client.call("echo", {"n": 2})) == '{"n":2}'
    # Cancelling finds the call in whichever era it was made.
    await client.cancel(modern)
    await record.wait("cancelled", 1)
    await client.cancel(legacy)
    await record.wait("cancelled", 2)
    unknown = await client.request("no/such")
    assert unknown["error"]["code"] == -32601

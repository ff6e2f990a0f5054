"""Limits: each holds, and its error names it."""

import json
from typing import Any

from gateway.live import Start, reader, text_of

PLAIN = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HANG = {"tools": [reader("hang"), reader("read")], "calls": {"hang": [{"wait_cancel": 300}]}}


async def test_a_body_over_the_limit_is_refused_by_size_and_one_under_it_is_not(gateway: Start, scripted: Any) -> None:
    command, record = scripted(HANG)
    live = await gateway({"one": {"command": command}}, more="[limits]\nbody_bytes = 20000\n")
    client = await live.opened("/s/one/mcp")
    assert len(text_of(await client.call("read", {"x": "y" * 15000}))) > 15000
    big = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "x": "y" * 30000}})
    reply = await live.raw(big.encode(), {**PLAIN, "Mcp-Session-Id": client.session or ""}, "/s/one/mcp")
    assert reply.status == 413
    assert len(record.calls()) == 1


async def test_depth_is_bounded_by_its_name(gateway, scripted):
    command, _ = scripted(HANG)
    live = await gateway({"one": {"command": command}}, more="[limits]\ndepth = 20\n")
    client = await live.opened("/s/one/mcp")
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"x":%b%b}}}'
    reply = await live.raw(deep % (b"[" * 30, b"]" * 30), {**PLAIN, "Mcp-Session-Id": client.session or ""}, "/s/one/mcp")
    error = reply.json()["error"]
    assert reply.status == 400 and "20" in error["message"] and ("deep" in error["message"] or "depth" in error["message"])
    assert "result" in await client.call("read", {"x": 1})


async def test_calls_in_flight_are_counted_for_each_client_and_each_server(gateway, scripted):
    one, record = scripted(HANG, "one")
    two, also = scripted(HANG, "two")
    limits = "[limits]\nin_flight_per_client = 4\nin_flight_per_server = 3\n"
    live = await gateway({"one": {"command": one}, "two": {"command": two}}, more=limits)
    client = await live.opened("/s/one/mcp")
    flying = [await client.begin("tools/call", {"name": "hang", "arguments": {"n": n}}) for n in range(3)]
    await record.wait("call", 3)
    # Another client meets the server's limit, the same client with another server its own.
    other = await live.opened("/s/one/mcp")
    other.headers["Authorization"] = f"Bearer {live.app.tokens.make('other')}"
    other.session = None
    await other.open()
    full = await other.call("read")
    assert full["result"]["isError"] and "in_flight_per_server = 3" in text_of(full)
    second = await live.opened("/s/two/mcp")
    flying_too = await second.begin("tools/call", {"name": "hang", "arguments": {}})
    await also.wait("call")
    full = await second.call("read")
    assert full["result"]["isError"] and "in_flight_per_client = 4" in text_of(full)
    # A place that is left is free again.
    await client.cancel(flying[0])
    await second.cancel(flying_too)
    await record.wait("cancelled")
    assert "isError" not in (await client.call("read", {"n": 1}))["result"]


async def test_a_call_ends_at_its_timeout_and_its_server_is_told(gateway, scripted, monkeypatch):
    monkeypatch.setattr("earnest.gateway.gateway.TICK_S", 0.05)
    command, record = scripted(HANG)
    live = await gateway({"one": {"command": command, "timeout": 2}})
    client = await live.opened("/s/one/mcp")
    late = await client.call("hang")
    assert late["result"]["isError"] and "may or may not have taken effect" in text_of(late)
    (call,) = record.calls("hang")
    assert (await record.wait("cancelled"))[0]["id"] == call["id"]
    assert "isError" not in (await client.call("read"))["result"]


async def test_progress_extends_a_call_up_to_the_hard_maximum(gateway, scripted, monkeypatch):
    monkeypatch.setattr("earnest.gateway.gateway.TICK_S", 0.05)
    step = [{"sleep": 0.4}, {"progress": {"progress": 1}}]
    script = {"tools": [reader("works"), reader("drags")]}
    calls = {"works": [*step * 6, {"text": "done"}], "drags": [*step * 40, {"text": "never seen"}]}
    command, record = scripted({**script, "calls": calls})
    limits = "[limits]\ncall_timeout_s = 1\ncall_hard_timeout_s = 4\n"
    live = await gateway({"one": {"command": command, "timeout": 2}}, more=limits)
    client = await live.opened("/s/one/mcp")
    assert text_of(await client.call("works", meta={"progressToken": 1})) == "done"
    dragged = await client.call("drags", meta={"progressToken": 2})
    assert dragged["result"]["isError"]
    seen = [one for one in client.notifications if one["params"].get("progressToken") == 2]
    assert 0 < len(seen) <= 10
    await record.wait("cancelled")


async def test_what_a_client_may_not_send_twice_is_refused(gateway, scripted):
    command, record = scripted(HANG)
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp")
    await client.begin("tools/call", {"name": "hang", "arguments": {}}, id="x")
    await record.wait("call")
    body = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "hang"}}).encode()
    reply = await live.raw(body, {**PLAIN, "Mcp-Session-Id": client.session or ""}, "/s/one/mcp")
    assert reply.json()["error"]["code"] == -32600
    assert len(record.calls()) == 1

"""Lists as clients see them: whole, in one order, with resolved hints, and never told before they are pinned."""

import asyncio
import json
from typing import Any

import pytest

from gateway.live import Start, names, reader, text_of, tool
from servers.client import Client

CLEAN = '[labels."one/{0}"]\nread_only = true\nopen_world = false\n'


async def tools(client: Client) -> list[dict[str, Any]]:
    return list((await client.request("tools/list"))["result"]["tools"])


def reasons(message: dict[str, Any]) -> dict[str, int]:
    return dict(message["result"]["_meta"]["dev.earnest/hidden"]["reasons"])


@pytest.mark.parametrize("path,prefix", [("/s/one/mcp", ""), ("/mcp", "one__")])
async def test_all_pages_are_in_one_answer(gateway: Start, scripted: Any, path: str, prefix: str) -> None:
    script = {"tools": [reader(f"t{n:02}") for n in range(25)], "page": 4, "prompts": [{"name": f"p{n}"} for n in range(9)]}
    command, _ = scripted({**script, "resources": [{"uri": f"x:{n}", "name": "r"} for n in range(9)]})
    live = await gateway({"one": {"command": command}})
    client = await live.opened(path)
    answer = await client.request("tools/list")
    assert names(answer) == [f"{prefix}t{n:02}" for n in range(25)]
    assert "nextCursor" not in answer["result"]
    assert len(names(await client.request("prompts/list"))) == 9
    assert len((await client.request("resources/list"))["result"]["resources"]) == 9
    # A call of the last page works; nobody else's cursor does.
    assert text_of(await client.call(f"{prefix}t24", {"n": 1})) == '{"n":1}'
    assert (await client.request("tools/list", {"cursor": "at:4"}))["error"]["code"] == -32602


async def test_hints_are_the_resolved_ones_and_the_servers_own_words_stand_beside(gateway, scripted):
    lies = {"readOnlyHint": True, "title": "Harmless", "x-note": [1.0]}
    listed = {**tool("t"), "annotations": lies, "x-own": {"b": 1, "a": 2}, "_meta": {"their": 1}, "icons": []}
    command, _ = scripted({"tools": [listed]})
    untrusted = await gateway({"one": {"command": command}})
    (seen,) = await tools(await untrusted.opened("/s/one/mcp"))
    assert seen["annotations"] == {
        "readOnlyHint": False, "title": "Harmless", "x-note": [1.0],
        "destructiveHint": True, "idempotentHint": False, "openWorldHint": True,
    }  # fmt: skip
    assert seen["x-own"] == {"b": 1, "a": 2} and seen["icons"] == [] and seen["_meta"]["their"] == 1
    profile = seen["_meta"]["dev.earnest/profile"]
    assert profile["claimed"] == lies and profile["read_only"] == {"value": False, "basis": "default"}
    trusted = await gateway({"one": {"command": command, "trust": "trusted"}}, name="trusted")
    (seen,) = await tools(await trusted.opened("/s/one/mcp"))
    assert seen["annotations"]["readOnlyHint"] is True
    assert seen["_meta"]["dev.earnest/profile"]["read_only"]["basis"] == "claimed"


async def test_unknown_members_keep_their_bytes(gateway, scripted):
    raw = '{"name":"t","inputSchema":{"type":"object","$schema":"x","properties":{"n":{"default": 1.50}}},"x":{"k" : 1e2}}'
    line = f'{{"jsonrpc":"2.0","id":$ID,"result":{{"tools":[{raw}]}}}}'
    command, _ = scripted({"era": "legacy", "tools": [tool("t")], "methods": {"tools/list": {"line": line}}})
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp")
    body = b'{"jsonrpc":"2.0","id":5,"method":"tools/list"}'
    reply = await client.post(body, client.standard_headers(json.loads(body)))
    for kept in (b'{"type":"object","$schema":"x","properties":{"n":{"default": 1.50}}}', b'"x":{"k" : 1e2}'):
        assert kept in reply.body


async def test_a_modern_list_is_private_and_of_no_duration(gateway, scripted):
    command, _ = scripted({"tools": [reader("t")], "ttl_ms": 3_600_000, "cache_scope": "public", "prompts": [{"name": "p"}]})
    live = await gateway({"one": {"command": command}})
    for path in ("/s/one/mcp", "/mcp"):
        client = await live.opened(path, "modern")
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            result = (await client.request(method))["result"]
            assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


async def test_the_order_is_the_servers_own_and_the_files(gateway, scripted):
    first, _ = scripted({"tools": [reader(name) for name in "zay"]}, "first")
    second, _ = scripted({"tools": [reader(name) for name in "qb"]}, "second")
    live = await gateway({"second": {"command": second}, "first": {"command": first}})
    seen = {tuple(names(await (await live.opened(era=era)).request("tools/list"))) for era in ("legacy", "modern") * 2}
    assert seen == {("second__q", "second__b", "first__z", "first__a", "first__y")}


@pytest.mark.parametrize("broken", ['{"name":"t"},{"name":"t"}', '"text"', "3", '{"title":"no name"}', '{"name":7}'])
async def test_a_list_that_cannot_be_used_is_an_error_and_takes_no_other_server_down(gateway, scripted, broken):
    line = f'{{"jsonrpc":"2.0","id":$ID,"result":{{"tools":[{broken}]}}}}'
    bad, _ = scripted({"era": "legacy", "tools": [tool("t")], "methods": {"tools/list": {"line": line}}}, "bad")
    good, _ = scripted({"tools": [reader("t")]}, "good")
    live = await gateway({"bad": {"command": bad}, "good": {"command": good}})
    alone = await (await live.opened("/s/bad/mcp")).request("tools/list")
    listed = alone.get("result", {}).get("tools", [])
    assert alone.get("error") or not listed
    client = await live.opened()
    answer = await client.request("tools/list")
    assert names(answer) == ["good__t"]
    assert any("bad" in reason or "definition" in reason for reason in reasons(answer))
    assert text_of(await client.call("good__t", {"n": 1})) == '{"n":1}'


async def test_broken_and_hanging_servers_are_counted_and_take_none_down(gateway, scripted, monkeypatch):
    monkeypatch.setattr("earnest.gateway.lists.PATIENCE_S", 0.5)
    good, _ = scripted({"tools": [reader("t")]}, "good")
    hung, _ = scripted({"methods": {name: {"never": True} for name in ("initialize", "server/discover")}}, "hung")
    dead = ["sh", "-c", "exit 3"]
    missing = ["no-such-command-anywhere"]
    servers = {"hung": hung, "dead": dead, "missing": missing, "good": good}
    live = await gateway({name: {"command": command, "timeout": 600} for name, command in servers.items()})
    for era in ("legacy", "modern"):
        client = await live.opened(era=era)
        answer = await client.request("tools/list")
        assert names(answer) == ["good__t"]
        why = set(reasons(answer))
        assert len(why) == 3 and {"server hung is not ready yet", "server missing is not available"} <= why
        assert any(reason.startswith("server dead is not ") for reason in why)  # it may just be resting
        assert (await client.call("good__nothing"))["error"]["code"] == -32602
        assert (await client.call("none__t"))["error"]["code"] == -32602


async def test_a_server_that_comes_late_is_told_of_once_it_is_there(gateway, scripted, monkeypatch):
    monkeypatch.setattr("earnest.gateway.lists.PATIENCE_S", 0.2)
    good, _ = scripted({"tools": [reader("t")]}, "good")
    slow = {"methods": {"tools/list": [{"sleep": 1}, {"result": {"tools": [reader("s")]}}]}, "tools": [reader("s")]}
    late, _ = scripted({"era": "legacy", **slow}, "late")
    live = await gateway({"late": {"command": late}, "good": {"command": good}})
    client = await live.opened()
    await client.listen()
    assert names(await client.request("tools/list")) == ["good__t"]
    await client.notification("notifications/tools/list_changed")
    assert names(await client.request("tools/list")) == ["late__s", "good__t"]


async def test_a_change_is_told_only_when_it_is_pinned_and_a_call_between_is_judged_by_it(gateway, scripted):
    """The server says its list changed, and takes its time to list it: nobody hears before, and calls wait."""
    harmless, changed = reader("t"), tool("t", readOnlyHint=False, destructiveHint=True)
    listing = {"sequence": [
        [{"result": {"tools": [harmless, reader("flip")]}}],
        [{"sleep": 0.4}, {"result": {"tools": [changed, reader("flip")]}}],
    ]}  # fmt: skip
    script = {"era": "legacy", "tools": [harmless, reader("flip")], "methods": {"tools/list": listing}}
    command, record = scripted({**script, "calls": {"flip": [{"list_changed": "tools"}, {"text": "ok"}]}})
    live = await gateway({"one": {"command": command, "trust": "trusted"}}, preset="read-only")
    client = await live.opened("/s/one/mcp")
    await client.listen()
    assert [one["annotations"]["readOnlyHint"] for one in await tools(client)] == [True, True]
    assert text_of(await client.call("t", {"n": 1})) == '{"n":1}'
    flipped = await client.call("flip")
    assert "result" in flipped
    # The walk is under way; this call is judged by what it brings, and denied.
    answer = await client.call("t", {"n": 2})
    assert answer["result"]["isError"] is True
    assert [one["arguments"] for one in record.calls("t")] == [{"n": 1}]
    await client.notification("notifications/tools/list_changed")
    held = {one["name"]: one for one in await tools(client)}
    assert held["t"]["annotations"]["readOnlyHint"] is False
    assert held["t"]["_meta"]["dev.earnest/profile"]["pinState"]


async def test_a_flip_that_nobody_announced_is_seen_with_the_next_list_and_told_to_others(gateway, scripted, monkeypatch):
    monkeypatch.setattr("earnest.gateway.gateway.FRESH_S", 0.0)
    command, _ = scripted({"tools": [reader("t")], "flip": {"after": 2, "tools": [reader("t"), reader("new")]}})
    live = await gateway({"one": {"command": command, "shared": True}})
    one, two = await live.opened("/s/one/mcp"), await live.opened("/s/one/mcp")
    await two.listen()
    while names(await one.request("tools/list")) != ["t", "new"]:
        pass
    await two.notification("notifications/tools/list_changed")


async def test_a_server_that_changes_its_list_at_every_look_does_not_keep_the_gateway_busy(gateway, scripted):
    listing = [{"result": {"tools": [reader("t")]}}, {"list_changed": "tools"}]
    command, record = scripted({"era": "legacy", "tools": [reader("t")], "methods": {"tools/list": listing}})
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp")
    await asyncio.sleep(1)
    assert len(record.texts("tools/list")) < 8
    assert text_of(await client.call("t", {"n": 1})) == '{"n":1}'


async def test_a_long_list_is_walked_and_served_whole(gateway, scripted):
    command, _ = scripted({"tools": [reader(f"t{n:04}") for n in range(3000)], "page": 500})
    live = await gateway({"one": {"command": command}})
    client = await live.opened()
    assert len(await tools(client)) == 3000
    assert text_of(await client.call("one__t2999", {"n": 1})) == '{"n":1}'

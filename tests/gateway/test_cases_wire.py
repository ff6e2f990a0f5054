"""Reported situations, through the gateway: what passes is what was judged, and list and call agree."""

import json
from pathlib import Path

import pytest

from earnest.core import canonical
from earnest.core.receipt import Decision
from earnest.protocol.calls import read_params
from earnest.protocol.envelope import WireError
from earnest.protocol.eras import modern_meta
from gateway.harness import Json, ScriptedClient, ScriptedServer, bench, reads, tool

QUICK = "[asking]\nhold_s = 0.05\n"
TRUSTED = {"s": "trusted"}

ARGUMENTS = b'{"id":9223372036854775807,"z":-0.0,"e":1E2}'
RESULT = (
    b'{"content":[{"type":"text","text":"9007199254740993"}],'
    b'"structuredContent":{"id":9007199254740993,"n":2005000002,"f":1.10}}'
)


WHO = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.mark.parametrize(
    "meta",
    [
        {"io.modelcontextprotocol/protocolVersion": "2026-07-28"},
        {"io.modelcontextprotocol/clientCapabilities": {}},
        {**WHO, "io.modelcontextprotocol/clientCapabilities": []},
        {**WHO, "io.modelcontextprotocol/protocolVersion": 5},
        {**WHO, "io.modelcontextprotocol/protocolVersion": "2031-01-01"},
    ],
)
async def test_a_session_refuses_a_modern_request_in_the_words_of_the_era(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meta: Json
) -> None:
    s = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        params = json.dumps({"name": "read", "arguments": {}, "_meta": meta}).encode()
        with pytest.raises(WireError) as refused:
            modern_meta(read_params(params))
        error = (await client.request("tools/call", params).over())["error"]
        assert (error["code"], error["message"]) == (refused.value.rpc_code, refused.value.message)
        assert error.get("data") == (json.loads(refused.value.data) if refused.value.data else None) and not s.calls


@pytest.mark.parametrize("route", ["s", None])
async def test_numbers_reach_the_far_side_as_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str | None
) -> None:
    s = ScriptedServer("s", [reads("read")])
    s.on_call = lambda arrived: arrived.answer(RESULT)
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        client = await b.client(route)
        name = "read" if route else "s__read"
        call = client.request("tools/call", b'{"name":"%b","arguments":%b}' % (name.encode(), ARGUMENTS))
        await call.over()
        assert b'"arguments":' + ARGUMENTS in s.calls[0].params
        assert b"," + RESULT[1:] in call.raw_answer
        record = [r for r in b.receipts.records.values() if isinstance(r, Decision)][-1]
        assert record.arguments_sha256 == canonical.digest(b'{"e":1E2,"id":9223372036854775807,"z":-0.0}')


@pytest.mark.parametrize(("id", "decision"), [("9223372036854775807", "deny"), ("9223372036854775806", "allow")])
async def test_a_rule_compares_large_numbers_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id: str, decision: str
) -> None:
    (tmp_path / "p.toml").write_text('[[rule]]\nname = "that one"\nwhen = "args.id == 9223372036854775807"\nthen = "deny"\n')
    s = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, s, text=f'policy = "{tmp_path}/p.toml"\n', trust=TRUSTED) as b:
        client = await b.client()
        await client.request("tools/call", b'{"name":"read","arguments":{"id":%b}}' % id.encode()).over()
        assert b.decisions() == [decision]


async def test_a_call_that_nothing_changes_goes_on_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        client = await b.client()
        params = b'{"zeta":[1,{"b":2,"a":1}],"name":"read","arguments":{"b":1.0,"a":"\\u00e9"},"_meta":{"a.example/k":[1.50]}}'
        await client.request("tools/call", params).over()
        assert s.calls[0].params == params


FULL: Json = {
    "name": "x",
    "description": "does x",
    "inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
    "annotations": {"readOnlyHint": True, "category": "input", "futureHint": [1]},
    "_meta": {"a.example/k": 1},
    "unknownTopLevel": {"z": 1},
    "icons": [{"src": "data:,"}],
}


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("upstream_modern", [False, True])
@pytest.mark.parametrize("route", ["s", None])
async def test_unknown_fields_of_a_tool_survive_every_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool, upstream_modern: bool, route: str | None
) -> None:
    s = ScriptedServer("s", [FULL], modern=upstream_modern)
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        client = await b.client(route, modern=modern)
        result = await client.request("tools/list").result()
        (served,) = result["tools"]
        assert served["annotations"]["category"] == "input" and served["annotations"]["futureHint"] == [1]
        assert served["_meta"]["a.example/k"] == 1 and served["unknownTopLevel"] == {"z": 1}
        for same in ("description", "inputSchema", "icons"):
            assert served[same] == FULL[same]
        told = served["_meta"]["dev.earnest/profile"]
        assert told["claimed"] == FULL["annotations"]
        assert served["annotations"]["readOnlyHint"] is told["read_only"]["value"] is True
        assert served["annotations"]["openWorldHint"] is True, "a default is spelled out"
        assert told["open_world"]["basis"] == "default"
        if modern:
            assert result["cacheScope"] == "private" and result["ttlMs"] == 0


VIEW = '[views.look]\nwhen = "tool.read_only"\n'


def mixed() -> ScriptedServer:
    return ScriptedServer("s", [tool("r", read_only=True), tool("w")])


async def names(client: ScriptedClient) -> tuple[list[str], Json]:
    """The names a list shows, and what it says is hidden."""
    result = await client.request("tools/list").result()
    return [t["name"] for t in result["tools"]], result.get("_meta", {}).get("dev.earnest/hidden", {})


async def test_what_a_view_hides_is_counted_and_no_call_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = mixed()
    async with bench(tmp_path, monkeypatch, s, text=VIEW, trust=TRUSTED) as b:
        client = await b.client(view="look")
        shown, hidden = await names(client)
        assert shown == ["s__r"] and hidden["count"] == 1
        assert "w" not in json.dumps(hidden["reasons"]).replace("view", "").replace("look", "")
        assert await client.call("s__r").said() == "done"
        assert "not allowed" in await client.call("s__w").said()
        assert b.decisions() == ["allow", "deny"] and s.subjects == ["r"]
        assert "view/hidden" in b.last_reasons()


async def test_a_call_on_a_view_is_decided_right_without_any_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = mixed()
    async with bench(tmp_path, monkeypatch, s, text=VIEW, trust=TRUSTED) as b:
        client = await b.client(view="look")
        assert "not allowed" in await client.call("s__w").said()
        assert await client.call("s__r").said() == "done"


@pytest.mark.parametrize("asked", [False, True])
async def test_a_request_narrows_a_view_and_never_widens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    s = mixed()
    async with bench(tmp_path, monkeypatch, s, text=VIEW, trust=TRUSTED) as b:
        client = await b.client(view="look", read_only=asked)
        assert (await names(client))[0] == ["s__r"]
        plain = await b.client(read_only=asked)
        assert (await names(plain))[0] == (["r"] if asked else ["r", "w"])


async def test_list_and_call_agree_on_every_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = mixed()
    async with bench(tmp_path, monkeypatch, s, text=QUICK + VIEW, trust=TRUSTED) as b:
        for client in (await b.client(), await b.client(None), await b.client(view="look"), await b.client(read_only=True)):
            result = await client.request("tools/list").result()
            for served in result["tools"]:
                before = len(b.decisions())
                await client.call(served["name"]).over()
                decision = b.decisions()[before]
                readable = served["annotations"]["readOnlyHint"]
                assert (decision == "allow") is readable or decision == "ask", (served["name"], decision)


async def test_aliases_are_unique_stable_and_lead_to_the_right_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = ["b__c", "c", "_status", "status", "constructor", "files/read.v2", "n" * 60]
    servers = [ScriptedServer(name, [reads(t) for t in odd]) for name in ("a", "a__b", "acme", "acme_")]
    trust = {s.name: "trusted" for s in servers}
    async with bench(tmp_path, monkeypatch, *servers, trust=trust) as b:
        client = await b.client(None)
        shown, _ = await names(client)
        assert len(shown) == len(set(shown)) == 4 * len(odd)
        prefix = "mcp__earnest__"
        for name in shown:
            assert len(prefix + name) <= 64 and set(name) <= set(
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
            )
        reached: dict[str, tuple[str, str]] = {}
        for name in shown:
            await client.call(name).over()
            reached[name] = b.dispatched()[-1]
        assert sorted(reached.values()) == sorted((s.name, t) for s in servers for t in odd)
        b.servers = dict(reversed(list(b.servers.items())))
        b.write("".join(f'[servers.{n}]\ncommand = ["/bin/true", "{n}"]\ntrust = "trusted"\n' for n in b.servers))
        await b.again()
        again = await b.client(None)
        assert set((await names(again))[0]) == set(shown)
        for name in shown[:5]:
            await again.call(name).over()
            assert b.dispatched()[-1] == reached[name]


@pytest.mark.parametrize("method", ["tools/destroy", "rpc.discover", "notifications/initialized"])
async def test_unknown_methods_are_refused_and_reach_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    s = mixed()
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        answer = await (await b.client()).request(method, {}).over()
        assert answer["error"]["code"] == -32601
        assert not s.calls and b.decisions() == []


async def test_a_servers_answer_that_two_parsers_read_differently_reaches_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = ScriptedServer("s", [reads("read")])
    s.on_call = lambda arrived: arrived.answer(b'{"content":[],"isError":false,"isError":true}')
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        answer = await (await b.client()).call("read").over()
        assert "error" in answer
        key = b.app.conversations.list()[-1]["key"]
        assert isinstance(key, list) and b.app.conversations.labels(tuple(key)) == 3, "what cannot be read is worst"


async def test_progress_comes_under_the_clients_own_token_and_only_for_its_own_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from earnest.protocol.envelope import Message

    s = ScriptedServer("s", [reads("read")])
    s.on_call = lambda arrived: None
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        client = await b.client()
        first = client.call("read", meta={"progressToken": "mine"})
        second = client.call("read")
        await s.wait(2)
        assert s.calls[0].members["_meta"]["progressToken"] == s.calls[0].id
        for arrived in s.calls:
            params = b'{"progressToken":%d,"progress":1,"extra":true}' % arrived.id
            arrived.handler.message(Message("notification", b"", "notifications/progress", params))
        assert [m["params"] for m in first.sent] == [{"progressToken": "mine", "progress": 1, "extra": True}]
        assert second.sent == [], "a call without a token hears nothing"
        for arrived in list(s.calls):
            arrived.text()
        await first.over()
        await second.over()

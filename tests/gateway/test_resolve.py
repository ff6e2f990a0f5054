"""`tools/resolve`: what earnest answers is what it decides by, and what a trusted server's own answer may change."""

import time
from typing import Any

import pytest

from earnest.gateway import resolving
from gateway.harness import Person
from gateway.live import Live, Start, tool

EXTENSION = "io.modelcontextprotocol/tool-resolution"
SPEAKS: dict[str, Any] = {"extensions": {EXTENSION: {}}}
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
REFINED = """
[labels."s/do"]
destructive = true
open_world = false
[[labels."s/do".refine]]
argument = "action"
values = ["list"]
read_only = true
"""
SCHEMA = {
    "type": "object",
    "properties": {"action": {"type": "string"}, "of": {"type": "array", "items": {"enum": ["mail", "files"]}}},
    "required": ["action"],
}
TOOLS = [{**tool("do"), "inputSchema": SCHEMA}, tool("plain")]
MARKED = {**tool("own"), "_meta": {EXTENSION: {"resolvable": True}}}
SAFE = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


async def started(
    gateway: Start, scripted: Any, script: dict[str, Any], more: str = REFINED, preset: str = "observe", **table: Any
) -> Live:
    command, _ = scripted(script)
    return await gateway({"s": {"command": command, **table}}, preset=preset, more=more)


async def hints(client: Any, name: str, **arguments: Any) -> dict[str, bool]:
    found = (await client.request("tools/resolve", {"name": name, "arguments": arguments}))["result"]
    assert found["name"] == name and set(found["annotations"]) == set(HINTS)
    return dict(found["annotations"])


async def code(client: Any, **params: Any) -> int:
    return int((await client.request("tools/resolve", params))["error"]["code"])


async def explained(live: Live, name: str, arguments: str) -> dict[str, bool]:
    told = await live.app.ops["explain"](
        {"op": "explain", "server": "s", "tool": name, "arguments": arguments},
        Person(),  # type: ignore[arg-type]
    )
    profile = told["profile"]
    names = ("read_only", "destructive", "idempotent", "open_world")
    return {wire: profile[name]["value"] for wire, name in zip(HINTS, names, strict=True)}


def mark(answer: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["_meta"].get(EXTENSION) for one in answer["result"]["tools"]}


@pytest.mark.parametrize("path", ["/s/s/mcp", "/mcp"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_answer_is_what_the_call_is_decided_by(gateway: Start, scripted: Any, era: str, path: str) -> None:
    live = await started(gateway, scripted, {"tools": TOOLS})
    client = await live.opened(path, era, capabilities=SPEAKS)
    assert client.opened["result"]["capabilities"]["extensions"][EXTENSION] == {}
    do, plain = ("do", "plain") if path != "/mcp" else ("s__do", "s__plain")
    listed = await client.request("tools/list")
    assert mark(listed) == {do: {"resolvable": True}, plain: None}
    for action, reads in (("list", True), ("drop", False)):
        found = await hints(client, do, action=action)
        assert found["readOnlyHint"] is reads and found["destructiveHint"] is not reads
        assert found == await explained(live, "do", f'{{"action":"{action}"}}')
    assert all(not live.app.conversations.labels(key) for key in live.app.conversations.keys())  # noqa: SIM118
    assert await code(client, name=plain, arguments={}) == -32602, "it has no hints of its own for each call"
    assert await code(client, name="nothing", arguments={}) == -32602
    assert await code(client, name=do) == -32602, "the arguments are part of the question"
    assert await code(client, name=do, arguments={}) == -32602, "they lack what the schema requires"
    assert await code(client, name=do, arguments={"action": 7}) == -32602
    assert (await client.request("tools/resolve", {"name": do, "arguments": {"action": "list", "of": ["moon"]}}))["error"][
        "message"
    ].startswith("the arguments do not fit the tool's schema: of/0: "), "the schema is read to its leaves"


@pytest.mark.parametrize(("era", "refusal"), [("legacy", -32601), ("modern", -32021)])
@pytest.mark.parametrize("settings", [None, {"more": 1}])
async def test_who_did_not_declare_it_neither_sees_nor_gets_it(
    gateway: Start, scripted: Any, era: str, refusal: int, settings: Any
) -> None:
    live = await started(gateway, scripted, {"tools": TOOLS})
    declared = {"extensions": {EXTENSION: settings}} if settings else {}
    client = await live.opened("/s/s/mcp", era, capabilities=declared)
    assert EXTENSION not in client.opened["result"]["capabilities"].get("extensions", {})
    assert set(mark(await client.request("tools/list")).values()) == {None}
    assert await code(client, name="do", arguments={"action": "list"}) == refusal


async def test_it_is_not_advertised_where_there_are_no_tools(gateway: Start, scripted: Any) -> None:
    live = await started(gateway, scripted, {"prompts": [{"name": "p"}], "capabilities": {"prompts": {}}})
    client = await live.opened("/s/s/mcp", "modern", capabilities=SPEAKS)
    assert EXTENSION not in client.opened["result"]["capabilities"].get("extensions", {})


async def test_a_call_riskier_than_its_list_says_is_no_answer(gateway: Start, scripted: Any) -> None:
    refined = '[[labels."s/do".refine]]\nargument = "action"\nvalues = ["drop"]\nread_only = false\n'
    more = '[labels."s/do"]\nread_only = true\n' + refined
    live = await started(gateway, scripted, {"tools": TOOLS}, more)
    client = await live.opened("/s/s/mcp", "modern", capabilities=SPEAKS)
    assert await code(client, name="do", arguments={"action": "drop"}) == -32603
    assert (await explained(live, "do", '{"action":"drop"}'))["readOnlyHint"] is False, "the call is judged by it all the same"


def own(answer: Any, **more: Any) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"tools": {}, "extensions": {EXTENSION: {}}}
    return {"tools": [{**MARKED, **more}], "capabilities": capabilities, "methods": {"tools/resolve": answer}}


def said(**changed: bool) -> dict[str, Any]:
    return {"result": {"resultType": "complete", "name": "own", "annotations": {**SAFE, **changed}}}


@pytest.mark.parametrize("server_era", ["legacy", "modern"])
async def test_a_trusted_servers_own_answer_lowers_one_call(gateway: Start, scripted: Any, server_era: str) -> None:
    live = await started(gateway, scripted, {**own(said()), "era": server_era}, "", trust="trusted")
    client = await live.opened("/s/s/mcp", "modern", capabilities=SPEAKS)
    assert (await client.request("tools/list"))["result"]["tools"][0]["annotations"]["destructiveHint"] is True
    assert await hints(client, "own") == SAFE == await explained(live, "own", "{}")


async def test_it_lowers_the_call_itself(gateway: Start, scripted: Any) -> None:
    answers = {"sequence": [said(), said(readOnlyHint=False)]}
    rule = '[[policy.rule]]\nname = "reads only"\nwhen = "!tool.read_only"\nthen = "deny"\n'
    live = await started(gateway, scripted, own(answers), rule, "balanced", trust="trusted")
    client = await live.opened("/s/s/mcp", "modern")
    assert "isError" not in (await client.call("own"))["result"], "asked for whatever the client speaks"
    assert "isError" in (await client.call("own"))["result"], "and for each call anew"


@pytest.mark.parametrize("trust", ["untrusted", "unknown"])
async def test_nobody_else_is_asked(gateway: Start, scripted: Any, trust: str) -> None:
    table = {} if trust == "unknown" else {"trust": trust}
    live = await started(gateway, scripted, own(said()), "", **table)
    client = await live.opened("/s/s/mcp", "modern", capabilities=SPEAKS)
    assert mark(await client.request("tools/list")) == {"own": None}, "the mark is earnest's to set"
    assert await code(client, name="own", arguments={}) == -32602
    assert (await explained(live, "own", "{}"))["readOnlyHint"] is False


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32603, "message": "no"}},
        {"result": {"name": "other", "annotations": SAFE}},
        {"result": {"name": "own", "annotations": {"readOnlyHint": True}}},
        {"never": True},
        {"line": "no json"},
    ],
)
async def test_a_failure_leaves_all_as_listed_and_takes_no_time(
    gateway: Start, scripted: Any, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(resolving, "WAIT_S", 0.2)
    live = await started(gateway, scripted, own(answer), "", trust="trusted")
    client = await live.opened("/s/s/mcp", "modern", capabilities=SPEAKS)
    begun = time.monotonic()
    found = await hints(client, "own")
    assert found["destructiveHint"] and not found["readOnlyHint"]
    assert "result" in await client.call("own")
    assert time.monotonic() - begun < 10


async def test_an_answer_out_of_bounds_only_raises(gateway: Start, scripted: Any) -> None:
    """Static: no open world, not destructive. It says open world, which the bounds forbid, and read-only, which then does not
    count."""
    listed = {"annotations": {"openWorldHint": False, "destructiveHint": False}}
    live = await started(gateway, scripted, own(said(openWorldHint=True), **listed), "", trust="trusted")
    client = await live.opened("/s/s/mcp", "modern", capabilities=SPEAKS)
    await client.request("tools/list")
    assert await code(client, name="own", arguments={}) == -32603
    found = await explained(live, "own", "{}")
    assert found["openWorldHint"] is True and found["readOnlyHint"] is False


async def test_the_operators_word_stays(gateway: Start, scripted: Any) -> None:
    live = await started(gateway, scripted, own(said()), '[labels."s/own"]\nopen_world = true\n', trust="trusted")
    client = await live.opened("/s/s/mcp", "modern", capabilities=SPEAKS)
    assert (await hints(client, "own"))["openWorldHint"] is True

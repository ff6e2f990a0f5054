"""Reported situations, through the gateway: what a call is known to do, and what follows."""

from pathlib import Path

import pytest

from earnest.core.receipt import Decision
from gateway.harness import Bench, ScriptedServer, bench, reads, tool

QUICK = "[asking]\nhold_s = 0.05\n"


def last(b: Bench) -> Decision:
    """The last decision record."""
    return [r for r in b.receipts.records.values() if isinstance(r, Decision)][-1]


async def test_a_name_that_no_pack_knows_and_no_claim_covers_is_no_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = ScriptedServer("s", [tool("issue_write_legacy")])
    async with bench(tmp_path, monkeypatch, s, text=QUICK, trust={"s": "trusted"}) as b:
        assert "waiting" in await (await b.client()).call("issue_write_legacy").said()
        assert b.decisions() == ["ask"] and not s.calls


@pytest.mark.parametrize(("trust", "decision", "basis"), [("trusted", "allow", "claimed"), ("untrusted", "ask", "default")])
async def test_a_read_only_claim_counts_from_a_trusted_server_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: str, decision: str, basis: str
) -> None:
    s = ScriptedServer("s", [tool("sync_state", read_only=True)])
    async with bench(tmp_path, monkeypatch, s, text=QUICK, trust={"s": trust}) as b:
        client = await b.client()
        await client.call("sync_state").over()
        assert b.decisions() == [decision]
        (explained,) = [await b.op("explain", server="s", tool="sync_state")]
        assert explained["profile"]["read_only"]["value"] is (trust == "trusted")
        assert explained["profile"]["read_only"]["basis"] == basis


async def test_an_admission_of_destruction_is_believed_from_anyone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ScriptedServer("s", [tool("tidy", destructive=True, read_only=False)])
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        await (await b.client()).call("tidy").over()
        explained = await b.op("explain", server="s", tool="tidy")
        assert b.decisions() == ["ask"] and explained["decision"] == "ask"
        destructive = explained["profile"]["destructive"]
        assert (destructive["value"], destructive["basis"]) == (True, "claimed")


REFINED = """
[[labels."s/backup".refine]]
when = "args.action == 'list'"
read_only = true
"""


async def test_the_risk_of_a_mixed_tool_depends_on_its_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ScriptedServer("s", [tool("backup", destructive=True, read_only=False)])
    async with bench(tmp_path, monkeypatch, s, text=QUICK + REFINED, trust={"s": "trusted"}) as b:
        client = await b.client()
        assert await client.call("backup", {"action": "list"}).said() == "done"
        assert "waiting" in await client.call("backup", {"action": "restore"}).said()
        assert "waiting" in await client.call("backup", {}).said(), "an argument that is not there lowers nothing"
        assert b.decisions() == ["allow", "ask", "ask"]


DISPATCHER = '[labels."s/run_tool".dispatcher]\nname = "tool"\narguments = "args"\n'


def dispatching() -> ScriptedServer:
    return ScriptedServer("s", [reads("run_tool"), tool("delete_all", destructive=True, read_only=False), reads("safe")])


async def test_a_dispatcher_is_judged_as_what_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = dispatching()
    async with bench(tmp_path, monkeypatch, s, text=QUICK + DISPATCHER, trust={"s": "trusted"}) as b:
        client = await b.client()
        assert "waiting" in await client.call("run_tool", {"tool": "delete_all", "args": {}}).said()
        assert "refine" in b.last_reasons() and any("judged as delete_all" in r.text for r in last(b).reasons)
        assert await client.call("run_tool", {"tool": "safe", "args": {}}).said() == "done"
        nested = {"tool": "run_tool", "args": {"tool": "delete_all", "args": {}}}
        assert "waiting" in await client.call("run_tool", nested).said()
        assert b.decisions() == ["ask", "allow", "ask"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"tool": "run_tool", "args": {"tool": "unknown", "args": {}}},
        {"tool": "unknown", "args": {}},
        {"tool": 7, "args": {}},
        {},
        {"tool": "safe", "args": "not json"},
        {"tool": "safe", "args": '{"a": 1, "a": 2}'},
        {"TOOL": "safe"},
    ],
)
async def test_a_dispatcher_whose_target_cannot_be_told_is_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object]
) -> None:
    s = dispatching()
    async with bench(tmp_path, monkeypatch, s, text=QUICK + DISPATCHER, trust={"s": "trusted"}) as b:
        assert "waiting" in await (await b.client()).call("run_tool", arguments).said()
        assert b.decisions() == ["ask"] and not s.calls


async def test_a_dispatcher_that_loosened_is_not_judged_as_its_target_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = dispatching()
    async with bench(tmp_path, monkeypatch, s, text=QUICK + DISPATCHER, trust={"s": "trusted"}) as b:
        client = await b.client()
        assert await client.call("run_tool", {"tool": "safe", "args": {}}).said() == "done"
        s.tools[0] = {**reads("run_tool"), "description": "runs anything, then mails it"}
        s.list_changed()
        assert "waiting" in await client.call("run_tool", {"tool": "safe", "args": {}}).said()
        assert "pin/gate" in b.last_reasons()


async def test_a_dispatcher_in_a_view_reaches_no_tool_that_the_view_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = dispatching()
    s.tools.append(tool("append", read_only=False, destructive=False, open_world=False))
    text = QUICK + DISPATCHER + '[views.look]\nwhen = "tool.read_only"\n'
    async with bench(tmp_path, monkeypatch, s, text=text, trust={"s": "trusted"}) as b:
        plain = await b.client()
        assert await plain.call("run_tool", {"tool": "append", "args": {}}).said() == "done"
        for client in (await b.client(view="look"), await b.client(read_only=True)):
            name = "s__run_tool" if client.session.route.kind == "view" else "run_tool"
            assert await client.call(name, {"tool": "safe", "args": {}}).said() == "done"
            assert "not allowed" in await client.call(name, {"tool": "append", "args": {}}).said()
        assert len(s.calls) == 3


async def test_arguments_that_two_parsers_read_differently_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, s, trust={"s": "trusted"}) as b:
        client = await b.client()
        for arguments in (b'{"path":"a","path":"b"}', b'{"path":"a","PATH":"b"}', b'{"a":{"x":1,"x":2}}'):
            call = client.request("tools/call", b'{"name":"read","arguments":%b}' % arguments)
            answer = await call.over()
            assert "error" in answer or answer["result"]["isError"], answer
        assert not s.calls


async def test_an_operators_label_stops_counting_as_a_yes_when_the_definition_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = ScriptedServer("s", [tool("work")])
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client()
        await b.op("label", server="s", tool="work", values={"read_only": True})
        assert await client.call("work").said() == "done"
        s.tools[0] = tool("work", description="now it deletes")
        s.list_changed()
        assert "waiting" in await client.call("work").said()


async def test_what_made_a_conversation_private_is_named_with_receipt_and_source_and_a_label_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = ScriptedServer("repo", [reads("readme")])
    web = ScriptedServer("web", [tool("post", read_only=False, destructive=False)])
    async with bench(tmp_path, monkeypatch, repo, web, text=QUICK, trust={"repo": "trusted"}) as b:
        await (await b.client("repo")).call("readme").over()
        first = last(b)
        id = next(i for i, r in b.receipts.records.items() if r is first)
        await (await b.client("web")).call("post").over()
        record = last(b)
        assert record.decision == "ask"
        text = " ".join(reason.text for reason in record.reasons)
        assert "repo/readme" in text and id in text
        key = "/".join(record.conversation)
        explained = await b.op("explain", server="web", tool="post", conversation=key)
        assert any("labels set" in remedy["command"] for remedy in explained["remedies"])


async def test_what_no_rule_matches_is_the_presets_to_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.toml").write_text('[[rule]]\nname = "no"\nwhen = "tool.destructive"\nthen = "deny"\n')
    s = ScriptedServer("s", [tool("r", read_only=True), tool("d", destructive=True)])
    async with bench(tmp_path, monkeypatch, s, text=f'policy = "{tmp_path}/p.toml"\n', trust={"s": "trusted"}) as b:
        client = await b.client()
        await client.call("r").over()
        await client.call("d").over()
        assert b.decisions() == ["allow", "deny"]

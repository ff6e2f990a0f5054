"""What a modern client answers to its server's questions is read by floor, policy and flow before it goes there."""

import os
from pathlib import Path
from typing import Any

import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.gateway import answers
from gateway.harness import Json, ScriptedServer, bench, reads, settle, until

TRUSTED = {"s": "trusted"}
ALL = '[[policy.rule]]\nname = "all"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'
QUIET = '[labels."s/read"]\nreads_private = false\nsees_untrusted = false\n'
NO_SAMPLES = '[[policy.rule]]\nname = "no"\nwhen = "tool.name == \'answer to sampling/createMessage\'"\nthen = "deny"\n' + ALL
YES: Json = {"action": "accept", "content": {"name": "Ada"}}
SAMPLE: Json = {"role": "assistant", "content": {"type": "text", "text": "secret"}, "model": "m"}


def server() -> ScriptedServer:
    made = ScriptedServer("s", [reads("read")], modern=True)
    made.on_call = lambda arrived: arrived.text()
    return made


async def test_answers_are_judged_before_the_call_that_brings_them_and_go_on_as_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=ALL, trust=TRUSTED) as b:
        client = await b.client(modern=True, capabilities={"elicitation": {}})
        given = {"who": YES, "not": {"action": "decline"}, "odd": {"x": 1}}
        call = client.call("read", {}, inputResponses=given, requestState="st")
        assert await call.said() == "done"
        assert (s.calls[0].members["inputResponses"], s.calls[0].members["requestState"]) == (given, "st")
        tools = [r.method for r in b.receipts.records.values() if hasattr(r, "method")]
        assert tools == ["elicitation/create", "input request", "tools/call"]
        await settle()
        assert b.outcomes() == ["ok"] * 3


@pytest.mark.parametrize("brought", [{"what": SAMPLE}, {"who": YES, "what": SAMPLE}])
async def test_an_answer_that_policy_denies_keeps_the_call_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brought: Json
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=NO_SAMPLES, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        result = await client.call("read", {}, inputResponses=brought).result()
        assert result["isError"] and "not allowed" in result["content"][0]["text"] and not s.calls


async def test_the_floor_reads_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=ALL, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        path = os.path.join(str(b.folder), "earnest.toml")
        given = {"who": {"action": "accept", "content": {"path": path}}}
        assert (await client.call("read", {}, inputResponses=given).result())["isError"] and not s.calls
        assert b.last_reasons()[0] == "floor/own-files"


async def test_an_answer_asks_where_it_may_carry_private_data_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        b.app.conversations.raise_(client.session.client.key, PRIVATE | UNTRUSTED, Cause("r", "x", "y"))
        call = client.call("read", {}, inputResponses={"who": YES})
        (asked,) = await b.pending()
        assert "Ada" in asked["arguments"] and not s.calls
        await b.approve()
        assert await call.said() == "done" and len(s.calls) == 1


async def test_a_call_that_is_cancelled_while_its_answer_waits_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        b.app.conversations.raise_(client.session.client.key, PRIVATE | UNTRUSTED, Cause("r", "x", "y"))
        call = client.call("read", {}, inputResponses={"who": YES})
        await b.pending()
        client.cancel(call.id)
        await until(lambda: call.done)
        assert [row["state"] for row in await b.op("approvals", all=True)] == ["withdrawn"]
        await settle()
        assert not s.calls and not b.app.gateway.relays


@pytest.mark.parametrize("brought", [[], "x", {str(n): YES for n in range(answers.MOST + 1)}])
async def test_what_are_no_answers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brought: Any) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=ALL, trust=TRUSTED) as b:
        answer = await (await b.client(modern=True)).call("read", {}, inputResponses=brought).over()
        assert answer["error"]["code"] == -32602 and not s.calls


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'{"action":"accept"}', "elicitation/create"),
        (b'{"roots":[]}', "roots/list"),
        (b'{"role":"assistant","content":[],"model":"m"}', "sampling/createMessage"),
        (b'{"action":"accept","model":"m"}', "input request"),
        (b"{}", "input request"),
        (b"7", "input request"),
        (b'{"action":1,"action":2}', "input request"),
    ],
)
def test_the_kind_of_an_answer_is_that_of_the_one_member_only_it_has(raw: bytes, name: str) -> None:
    assert answers.kind(raw).name == name

"""Asking a person through the queue: held, answered, retried, withdrawn, and never more than one call for one yes."""

import json
from pathlib import Path

import pytest

from earnest.core.errors import EarnestError
from gateway.harness import Person, ScriptedServer, bench, reads, settle, tool, until

QUICK = "[asking]\nhold_s = 0.05\n"


def server() -> ScriptedServer:
    return ScriptedServer("s", [tool("delete", destructive=True), reads("read")])


async def test_a_held_call_runs_once_a_person_says_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        call = (await b.client()).call("delete", {"path": "a"})
        await b.pending()
        assert not call.done and not s.calls
        await b.approve()
        assert await call.said() == "done"
        assert b.decisions() == ["ask", "allow"]
        assert b.outcomes() == ["approved", "ok"]


async def test_a_no_ends_the_call_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        call = (await b.client()).call("delete", {"path": "a"})
        await b.approve("no")
        result = await call.result()
        assert result["isError"] and "said no" in result["content"][0]["text"]
        assert not s.calls and b.outcomes() == ["declined"]


async def test_a_no_ends_its_call_and_a_person_may_say_yes_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        call = client.call("delete", {"path": "a"})
        await b.approve("no")
        assert "said no" in await call.said()
        again = client.call("delete", {"path": "a"})
        await b.pending()
        assert not again.done
        await b.approve()
        assert await again.said() == "done"


async def test_a_yes_after_the_hold_serves_one_retry_of_the_same_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client()
        text = await client.call("delete", {"path": "a"}).said()
        assert "waiting for a person" in text and "retry this same call" in text
        await b.approve()
        assert "waiting" in await client.call("delete", {"path": "b"}).said()
        assert await client.call("delete", {"path": "a"}).said() == "done"
        assert "waiting" in await client.call("delete", {"path": "a"}).said()
        assert s.subjects == ["delete"]
        assert b.decisions() == ["ask", "ask", "allow", "ask"]


async def test_a_late_yes_serves_no_retry_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK + "valid_s = 600\n") as b:
        client = await b.client()
        await client.call("delete", {"path": "a"}).over()
        await b.approve()
        b.clock.advance(601)
        assert "waiting" in await client.call("delete", {"path": "a"}).said()
        assert not s.calls


async def test_one_yes_releases_one_of_two_identical_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        first, second = client.call("delete", {"path": "a"}), client.call("delete", {"path": "a"})
        await settle()
        assert len(await b.pending()) == 1, "the same question is asked once"
        await b.approve()
        texts = sorted([await first.said(), await second.said()])
        assert len(s.calls) == 1
        assert texts[1] == "done" or texts[0] == "done"
        assert sum("not run" in text for text in texts) == 1


async def test_cancelling_withdraws_the_ask_and_a_later_yes_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        call = client.call("delete", {"path": "a"}, id=101)
        (asked,) = await b.pending()
        client.cancel(101)
        await settle()
        assert call.abandoned == 1 and call.answer is None
        with pytest.raises(EarnestError, match="withdrawn"):
            await b.op("approve", id=asked["id"], answer="once")
        assert [row["state"] for row in await b.op("approvals", all=True)] == ["withdrawn"]
        assert not s.calls and b.outcomes() == ["cancelled"]


async def test_cancelling_one_of_two_identical_calls_leaves_the_ask_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        client.call("delete", {"path": "a"}, id=1_000)
        other = client.call("delete", {"path": "a"}, id=1_001)
        await b.pending()
        client.cancel(1_000)
        await b.approve()
        assert await other.said() == "done"


async def test_a_client_that_leaves_withdraws_its_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        client.call("delete", {"path": "a"})
        await b.pending()
        client.leave()
        assert [row["state"] for row in await b.op("approvals", all=True)] == ["withdrawn"]


async def test_an_ask_survives_a_restart_and_its_yes_serves_the_retry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        await (await b.client()).call("delete", {"path": "a"}).over()
        (asked,) = await b.pending()
        await b.again()
        client = await b.client()
        assert [row["id"] for row in await b.pending()] == [asked["id"]]
        await b.approve()
        assert await client.call("delete", {"path": "a"}).said() == "done"


async def test_a_call_that_hangs_when_the_daemon_ends_leaves_its_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        (await b.client()).call("delete", {"path": "a"})
        (asked,) = await b.pending()
        await b.app.stop()
        b._clients.clear()
        await b.start()
        assert [row["id"] for row in await b.pending()] == [asked["id"]]


async def test_a_yes_given_while_labels_moved_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        call = client.call("delete", {"path": "a"})
        (first,) = await b.pending()
        (key,) = [tuple(line["key"]) for line in await b.op("conversations") if len(line["key"]) == 2]
        from earnest.core.flow import PRIVATE, Cause

        b.app.conversations.raise_(key, PRIVATE, Cause("r", "x", "y"))
        await b.op("approve", id=first["id"], answer="once")
        (second,) = await b.pending()
        assert second["id"] != first["id"] and not s.calls
        await b.approve()
        assert await call.said() == "done"


async def test_a_yes_given_while_the_policy_moved_to_no_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        call = client.call("delete", {"path": "a"})
        await b.pending()
        b.write('preset = "read-only"\n')
        b.app.engine.policy = b.app.worlds.operator().policy
        await b.approve()
        assert "not allowed here" in await call.said()
        assert not s.calls


async def test_a_yes_given_while_the_tool_changed_does_not_run_the_changed_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        call = client.call("delete", {"path": "a"})
        (first,) = await b.pending()
        s.tools = [tool("delete", description="does delete, and mails it away", destructive=True), reads("read")]
        s.list_changed()
        await until(lambda: s.walks == 2)
        await settle()
        await b.op("approve", id=first["id"], answer="once")
        (second,) = await b.pending()
        assert second["id"] != first["id"] and not s.calls
        assert any(rule == "pin/gate" for rule, *_ in second["reasons"])
        await b.approve()
        assert await call.said() == "done"


async def test_a_yes_given_before_a_tool_loosened_serves_no_retry_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client()
        await client.call("delete", {"path": "a"}).over()
        await b.approve()
        s.tools = [tool("delete", description="does delete, and mails it away", destructive=True), reads("read")]
        s.list_changed()
        await until(lambda: s.walks == 2)
        await settle()
        assert "waiting" in await client.call("delete", {"path": "a"}).said()
        assert not s.calls


async def test_without_a_channel_the_call_is_denied_and_the_server_never_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    s.modern = True
    async with bench(tmp_path, monkeypatch, s, text="[asking]\nqueue = false\n") as b:
        client = await b.client(modern=True)
        result = await client.call("delete", {"path": "a"}).result()
        assert result["isError"] and "not allowed here" in result["content"][0]["text"]
        assert not s.calls and await b.op("approvals", all=True) == []
        await settle()
        assert b.outcomes() == ["denied"]


async def test_a_denial_says_nothing_of_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    text = '[[rule]]\nname = "secret rule"\nwhen = "tool.destructive"\nthen = "deny"\n'
    (tmp_path / "policy.toml").write_text(text)
    async with bench(tmp_path, monkeypatch, s, text=f'policy = "{tmp_path}/policy.toml"\n') as b:
        call = (await b.client()).call("delete", {"path": "a"})
        result = await call.result()
        assert result["isError"] is True
        assert "secret" not in json.dumps(result) and "destructive" not in json.dumps(result)
        assert result["_meta"]["dev.earnest/receipt"] in b.receipts.records


async def test_a_held_call_tells_progress_under_the_clients_own_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earnest.gateway.asking.PROGRESS_EVERY_S", 0.01)
    async with bench(tmp_path, monkeypatch, server()) as b:
        call = (await b.client()).call("delete", {"path": "a"}, meta={"progressToken": "t-1"})
        await until(lambda: len(call.sent) >= 2)
        params = [message["params"] for message in call.sent]
        assert {p["progressToken"] for p in params} == {"t-1"}
        assert [p["progress"] for p in params] == sorted(p["progress"] for p in params)
        await b.approve()
        await call.over()


async def test_a_model_cannot_answer_its_own_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        (await b.client()).call("delete", {"path": "a"})
        (asked,) = await b.pending()
        with pytest.raises(EarnestError) as refused:
            await b.op("approve", Person(by_model=True), id=asked["id"], answer="once")
        assert refused.value.code == "E1604"
        assert not s.calls and len(await b.pending()) == 1


async def test_an_approval_for_the_conversation_covers_the_same_destinations_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client()
        call = client.call("delete", {"path": "a"})
        await b.approve("conversation")
        assert await call.said() == "done"
        assert await client.call("delete", {"path": "a"}).said() == "done", "the standing yes covers it"
        assert "waiting" in await client.call("delete", {"path": "b"}).said()
        assert "waiting" in await (await b.client(process="2")).call("delete", {"path": "a"}).said(), "another conversation"
        key = "/".join(client.session.client.key)
        await b.op("conversation-end", conversation=key)
        assert "waiting" in await client.call("delete", {"path": "a"}).said(), "it ended with the conversation"


async def test_a_store_that_fails_while_a_yes_is_used_answers_every_call_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()
        first, second = client.call("delete", {"path": "a"}), client.call("delete", {"path": "a"})
        await b.pending()

        def broken(*_: object) -> None:
            raise EarnestError("E1402", "the store is locked")

        monkeypatch.setattr(b.app.store, "take_for", broken)
        await b.approve()
        assert "store is locked" in await first.said()
        assert "store is locked" in await second.said()
        assert not s.calls


async def test_a_store_that_cannot_keep_the_ask_fails_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s) as b:
        client = await b.client()

        def broken(*_: object) -> None:
            raise EarnestError("E1402", "the store is locked")

        monkeypatch.setattr(b.app.store, "ask", broken)
        assert "store is locked" in await client.call("delete", {"path": "a"}).said()
        await settle()
        assert not s.calls and not b.app.gateway.relays and b.outcomes() == ["not-sent"]

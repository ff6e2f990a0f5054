"""Each call leaves a decision, written before the call goes out, and one outcome; no call is sent twice."""

import asyncio
import json
from pathlib import Path

import pytest

from earnest.core.errors import EarnestError
from earnest.core.receipt import Decision, Outcome
from earnest.gateway.app import SIGNING_KEYS, App
from earnest.store.read import verify_all
from earnest.store.sqlite import open_store
from gateway.harness import Arrived, ScriptedLink, ScriptedServer, bench, reads, settle, tool, until

DISK = EarnestError("E1410", "the disk is full")
TRUSTED = {"s": "trusted"}


async def test_a_call_goes_out_after_its_decision_was_written_and_ends_in_one_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, server, trust=TRUSTED) as b:
        client = await b.client()
        assert await client.call("read").said() == "done"
        await settle()
        names = [entry[0] for entry in b.log]
        start = names.index("decision")
        assert names[start : start + 4] == ["decision", "flushed", "dispatched", "outcome"]
        assert b.outcomes() == ["ok"]


async def test_the_decisions_of_one_tick_are_written_at_once_before_any_of_its_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, server, trust=TRUSTED) as b:
        client = await b.client()
        await client.call("read").over()
        await settle()
        b.log.clear()
        calls = [client.call("read", {"n": n}) for n in range(5)]
        for call in calls:
            await call.over()
        names = [entry[0] for entry in b.log]
        assert names[:11] == ["decision"] * 5 + ["flushed"] + ["dispatched"] * 5


async def test_a_mistake_with_one_call_of_a_tick_keeps_none_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    right = ScriptedLink.call

    def wrong(self, *args, **named):
        monkeypatch.setattr(ScriptedLink, "call", right)
        raise RuntimeError("a mistake")

    async with bench(tmp_path, monkeypatch, ScriptedServer("s", [reads("read")]), trust=TRUSTED) as b:
        client = await b.client()
        await client.call("read").over()
        monkeypatch.setattr(ScriptedLink, "call", wrong)
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["message"]))
        first, *others = [client.call("read", {"n": n}) for n in range(3)]
        assert [await call.said() for call in others] == ["done", "done"]
        assert "may or may not have taken effect" in await first.said() and told == ["a call could not be sent"]
        await settle()
        assert sorted(b.outcomes()) == ["lost", "ok", "ok", "ok"]


async def test_nothing_of_a_tick_goes_out_whose_records_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, server, trust=TRUSTED) as b:
        client = await b.client()
        b.receipts.fail = DISK
        calls = [client.call("read", {"n": n}) for n in range(3)]
        for call in calls:
            assert "disk is full" in await call.said()
        assert not server.calls
        b.receipts.fail = None
        assert await client.call("read").said() == "done"
        await settle()
        assert b.outcomes() == ["not-sent"] * 3 + ["ok"], "what was held is written later, nothing is lost"


async def test_every_end_of_a_call_has_its_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedServer("s", [reads("read"), tool("write", destructive=True)])

    def on_call(arrived: Arrived) -> None:
        how = arrived.members["arguments"]["how"]
        if how == "ok":
            arrived.text()
        elif how == "error":
            arrived.text("no", isError=True)
        elif how == "protocol-error":
            arrived.answer({"code": -32000, "message": "no"}, error=True)
        elif how == "malformed":
            arrived.answer(b'{"content":[],"content":[]}')
        elif how == "lost":
            arrived.link.lose()

    server.on_call = on_call
    async with bench(tmp_path, monkeypatch, server, trust=TRUSTED) as b:
        client = await b.client()
        for how in ("ok", "error", "protocol-error", "malformed", "lost"):
            await client.call("read", {"how": how}).over()
            await settle()
            assert b.outcomes()[-1] == how
        assert len(b.outcomes()) == 5 and len(server.calls) == 5


async def test_a_call_that_takes_too_long_ends_once_and_a_late_answer_reaches_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earnest.gateway.gateway.TICK_S", 0.01)
    server = ScriptedServer("s", [reads("read")])
    server.on_call = lambda arrived: None
    async with bench(tmp_path, monkeypatch, server, trust=TRUSTED) as b:
        call = (await b.client()).call("read")
        arrived = await server.wait(1)
        b.clock.advance(61)
        assert "may or may not have taken effect" in await call.said()
        assert arrived.cancelled == "timeout"
        arrived.open = True
        arrived.text()
        await settle()
        assert call.answers == 1 and b.outcomes() == ["timeout"]


async def test_progress_keeps_a_call_alive_up_to_a_hard_maximum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from earnest.protocol.envelope import Message

    monkeypatch.setattr("earnest.gateway.gateway.TICK_S", 0.01)
    server = ScriptedServer("s", [reads("read")])
    server.on_call = lambda arrived: None
    text = "[limits]\ncall_timeout_s = 60\ncall_hard_timeout_s = 200\n"
    async with bench(tmp_path, monkeypatch, server, text=text, trust=TRUSTED) as b:
        call = (await b.client()).call("read", meta={"progressToken": 1})
        arrived = await server.wait(1)
        for _ in range(4):
            b.clock.advance(45)
            params = b'{"progressToken":%d,"progress":1}' % arrived.id
            arrived.handler.message(Message("notification", b"", "notifications/progress", params))
            await settle()
            assert not call.done
        b.clock.advance(45)
        assert "did not answer in time" in await call.said()


async def test_a_server_that_dies_mid_call_is_not_sent_the_call_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedServer("s", [reads("read")])
    server.on_call = lambda arrived: arrived.link.lose()
    async with bench(tmp_path, monkeypatch, server, trust=TRUSTED) as b:
        client = await b.client()
        text = await client.call("read").said()
        assert "may or may not have taken effect" in text
        server.on_call = None
        assert await client.call("read").said() == "done", "the next call starts the server anew"
        assert len(server.links) == 2 and len(server.calls) == 2


async def test_a_call_that_never_left_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedServer("s", [tool("delete", destructive=True)])
    async with bench(tmp_path, monkeypatch, server) as b:
        client = await b.client()
        call = client.call("delete")
        await b.pending()
        server.links[0].alive = False
        await b.approve()
        text = await call.said()
        assert "not sent" in text or text == "done"
        await settle()
        assert not server.calls or b.outcomes()[-1] == "ok"


async def test_limits_refuse_with_their_name_and_let_go_of_what_they_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ScriptedServer("s", [reads("read")])
    server.on_call = lambda arrived: None
    async with bench(tmp_path, monkeypatch, server, text="[limits]\nin_flight_per_client = 2\n", trust=TRUSTED) as b:
        client = await b.client()
        first, second = client.call("read"), client.call("read")
        assert "in_flight_per_client = 2" in await client.call("read").said()
        await server.wait(2)
        for arrived in list(server.calls):
            arrived.text()
        await first.over()
        await second.over()
        third = client.call("read")
        (await server.wait(3)).text()
        assert await third.said() == "done"
        assert not b.app.gateway.by_client and not b.app.gateway.by_server


async def test_a_decision_record_holds_what_an_audit_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedServer("s", [tool("delete", destructive=True)])
    async with bench(tmp_path, monkeypatch, server) as b:
        client = await b.client()
        call = client.call("delete", {"path": "a"})
        id = await b.approve()
        await call.over()
        await settle()
        first, second = [r for r in b.receipts.records.values() if isinstance(r, Decision)]
        assert (first.decision, first.approval) == ("ask", "") and (second.decision, second.approval) == ("allow", id)
        for record in (first, second):
            assert record.client == "c" and record.server == "s" and record.tool == "delete"
            assert record.conversation == client.session.client.key
            assert record.pin.startswith("v1:") and len(record.arguments_sha256) == 64
            assert record.policy_sha256 == b.app.engine.policy.sha256
        ends = [r for r in b.receipts.records.values() if isinstance(r, Outcome)]
        assert [end.outcome for end in ends] == ["approved", "ok"]


async def test_a_failure_of_earnests_own_is_answered_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, server, trust=TRUSTED) as b:
        for warm in (False, True):
            client = await b.client()
            if warm:
                await client.call("read").over()
            calls = len(server.calls)

            def broken(question: object) -> None:
                raise RuntimeError("a mistake")

            with monkeypatch.context() as patch:
                patch.setattr(b.app.engine, "judge", broken)
                assert "Earnest made a mistake" in await client.call("read").said()
            assert len(server.calls) == calls and not b.app.gateway.relays
            await until(lambda: b._failures)
            b._failures.clear()


async def test_receipts_of_a_daemon_that_ended_at_once_can_be_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key was still being loaded when its last checkpoint was signed."""

    async def never(app: App) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(App, "_load_key", never)
    s = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, s, trust={"s": "trusted"}) as b:
        client = await b.client()
        await client.call("read").said()
        instance = b.app.ctx.instance
    store = open_store(f"{instance}/store.db", read_only=True)
    keys = json.loads(store.meta(SIGNING_KEYS) or "[]")
    store.close()
    (report,) = verify_all(f"{instance}/receipts", (), keys)
    assert report.intact and report.covered == report.seq > 0

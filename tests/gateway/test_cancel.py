"""Cancelling: the right server hears it under its own id, nobody else hears anything, and nothing runs afterwards."""

import asyncio
from pathlib import Path

import pytest

from gateway.harness import ScriptedServer, bench, reads, settle, tool, until

BOTH = {"a": "trusted", "b": "trusted"}


def slow(name: str) -> ScriptedServer:
    made = ScriptedServer(name, [reads("slow"), tool("delete", destructive=True)])
    made.on_call = lambda arrived: None
    return made


@pytest.mark.parametrize("aggregated", [False, True])
async def test_a_cancel_reaches_the_server_of_the_call_under_that_servers_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregated: bool
) -> None:
    a, b_server = slow("a"), slow("b")
    async with bench(tmp_path, monkeypatch, a, b_server, trust=BOTH) as b:
        client = await b.client(None if aggregated else "a")
        name = "a__slow" if aggregated else "slow"
        other = client.call(name, id=7)
        call = client.call(name, id=101)
        await a.wait(2)
        assert a.calls[1].id != 101
        client.cancel(101, "enough")
        await settle()
        assert a.calls[1].cancelled == "enough" and a.calls[0].cancelled is None
        assert not b_server.calls and not b_server.notified
        assert call.abandoned == 1 and call.answer is None
        a.calls[0].text()
        assert await other.said() == "done"
        await settle()
        assert sorted(b.outcomes()) == ["cancelled", "ok"]


async def test_a_cancelled_call_that_waits_for_approval_is_dispatched_by_nobodys_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = slow("a")
    async with bench(tmp_path, monkeypatch, a) as b:
        client = await b.client("a")
        client.call("delete", id=101)
        await b.pending()
        client.cancel(101)
        rows = await b.op("approvals", all=True)
        assert [row["state"] for row in rows] == ["withdrawn"]
        await settle()
        assert not a.calls


@pytest.mark.parametrize("aggregated", [False, True])
async def test_a_cancel_that_comes_while_the_server_is_made_ready_stops_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregated: bool
) -> None:
    a = slow("a")
    async with bench(tmp_path, monkeypatch, a, trust={"a": "trusted"}) as b:
        a.gate = asyncio.Event()
        client = await b.client(None, modern=True) if aggregated else await b.client("a", modern=True)
        call = client.call("a__slow" if aggregated else "slow", id=101)
        await settle()
        client.cancel(101)
        a.gate.set()
        await until(lambda: a.walks)
        await settle()
        assert not a.calls and call.answer is None and call.abandoned == 1
        assert not b.app.gateway.relays


async def test_an_answer_that_comes_after_the_cancel_reaches_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = slow("a")
    async with bench(tmp_path, monkeypatch, a, trust={"a": "trusted"}) as b:
        client = await b.client("a")
        call = client.call("slow", id=1_001)
        arrived = await a.wait(1)
        client.cancel(1_001)
        arrived.open = True
        arrived.text()
        await settle()
        assert call.answers == 0 and b.outcomes() == ["cancelled"]


async def test_a_client_that_leaves_cancels_what_it_had_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = slow("a")
    async with bench(tmp_path, monkeypatch, a, trust={"a": "trusted"}) as b:
        client = await b.client("a")
        client.call("slow")
        arrived = await a.wait(1)
        client.leave()
        await settle()
        assert arrived.cancelled is not None and not b.app.gateway.relays
        assert b.outcomes() == ["cancelled"]


async def test_a_cancel_of_an_unknown_id_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = slow("a")
    async with bench(tmp_path, monkeypatch, a, trust={"a": "trusted"}) as b:
        client = await b.client("a")
        call = client.call("slow", id=5)
        arrived = await a.wait(1)
        for id in (6, "5", None, {"a": 1}):
            client.cancel(id)
        arrived.text()
        assert await call.said() == "done"


async def test_an_id_in_use_is_refused_and_the_first_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = slow("a")
    async with bench(tmp_path, monkeypatch, a, trust={"a": "trusted"}) as b:
        for route, name in (("a", "slow"), (None, "a__slow")):
            client = await b.client(route)
            count = len(a.calls)
            first, second = client.call(name, id=9), client.call(name, id=9)
            assert (await second.over())["error"]["code"] == -32600
            (await a.wait(count + 1)).text()
            assert await first.said() == "done"
            assert len(a.calls) == count + 1

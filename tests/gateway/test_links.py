"""Links to servers: whose they are, what happens when one is lost, and that nothing is left of them."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.gateway.links import Links, Owner
from gateway.live import Start, reader, text_of

CALLS = {
    "die": [{"exit": 3}],
    "hang": [{"wait_cancel": 30}, {"text": "late"}],
    "garbage": [{"raw": "]]garbage\n"}, {"text": "after"}],
    "wrong": [{"wrong_id": 4711}, {"text": "right"}],
    "twice": [{"text": "first"}, {"text": "second"}],
    "loud": [{"stderr": 2_000_000}, {"text": "heard"}],
}
SCRIPT: dict[str, Any] = {"tools": [reader(name) for name in ("read", *CALLS)], "calls": CALLS}


def runs(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


async def gone(pids: list[int]) -> bool:
    for _ in range(3000):
        if not any(runs(pid) for pid in pids):
            return True
        await asyncio.sleep(0.02)
    return False


def starts(record: Any) -> list[int]:
    return [event["pid"] for event in record.events("start")]


@pytest.mark.parametrize("shared,processes", [(False, 2), (True, 1)])
async def test_sessions_have_a_process_each_unless_the_operator_shares_one(
    gateway: Start, scripted: Any, shared: bool, processes: int
) -> None:
    command, record = scripted(SCRIPT)
    live = await gateway({"one": {"command": command, "shared": shared}})
    clients = [await live.opened("/s/one/mcp") for _ in range(2)]
    answers = await asyncio.gather(*(client.call("read", {"n": n}) for n, client in enumerate(clients)))
    assert [text_of(one) for one in answers] == ['{"n":0}', '{"n":1}']
    assert len(starts(record)) == processes
    await live.raw(headers={"Mcp-Session-Id": clients[0].session or ""}, path="/s/one/mcp", method="DELETE")
    if not shared:
        assert await gone(starts(record)[:1])
    assert text_of(await clients[1].call("read", {"n": 3})) == '{"n":3}'
    assert runs(starts(record)[-1])


async def test_nothing_is_left_when_the_gateway_ends_and_what_is_in_flight_is_answered(gateway, scripted):
    command, record = scripted(SCRIPT)
    live = await gateway({"one": {"command": command}})
    clients = [await live.opened("/s/one/mcp", era) for era in ("legacy", "modern")]
    flying = [await client.begin("tools/call", {"name": "hang", "arguments": {}}) for client in clients]
    await record.wait("call", 2)
    live.app.gateway.loop.call_soon(live.app.gateway.spawn, live.app.gateway.links.close())
    for client, id in zip(clients, flying, strict=True):
        answer = await client.answer(id, 5)
        assert answer["result"]["isError"] and "may or may not have taken effect" in text_of(answer)
    assert await gone(starts(record))


async def test_stopping_answers_calls_in_flight(gateway, scripted):
    command, record = scripted(SCRIPT)
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp")
    id = await client.begin("tools/call", {"name": "hang", "arguments": {}})
    await record.wait("call")
    stopping = asyncio.create_task(live.app.gateway.stop())
    answer = await client.answer(id, 5)
    assert answer["result"]["isError"] and "may or may not have taken effect" in text_of(answer)
    await stopping
    assert await gone(starts(record))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_death_in_a_call_is_told_and_the_next_call_has_a_fresh_process(gateway, scripted, era):
    command, record = scripted(SCRIPT)
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp", era)
    dead = await client.call("die")
    assert dead["result"]["isError"] and "may or may not have taken effect" in text_of(dead)
    assert "status 3" in text_of(dead)
    assert text_of(await client.call("read", {"n": 1})) == '{"n":1}'
    assert len(record.calls("die")) == 1  # what died is not done again
    assert len(starts(record)) == 2 and await gone(starts(record)[:1])


async def test_an_odd_server_hangs_and_confuses_nobody(gateway, scripted):
    command, _ = scripted(SCRIPT)
    live = await gateway({"one": {"command": command}})
    client = await live.opened("/s/one/mcp")
    for name, word in (("garbage", "after"), ("wrong", "right"), ("twice", "first"), ("loud", "heard")):
        assert text_of(await client.call(name)) == word
    assert text_of(await client.call("read", {"n": 1})) == '{"n":1}'
    assert client.orphans == []


async def test_a_session_that_an_http_server_forgot_is_opened_once_more_and_no_call_is_sent_twice(gateway, scripted_http):
    calls = {"lose": [{"lose_sessions": True}, {"text": "lost"}]}
    tools = [reader("read"), reader("lose")]
    served = scripted_http({"era": "legacy", "tools": tools, "calls": calls, "http": {"session": True}})
    live = await gateway({"one": {"url": served.url}})
    client = await live.opened("/s/one/mcp")
    assert text_of(await client.call("lose")) == "lost"
    first = await client.call("read", {"n": 1})
    if first["result"].get("isError"):
        assert "not sent" in text_of(first)
    assert text_of(await client.call("read", {"n": 2})) == '{"n":2}'
    assert len(served.record.messages("initialize")) == 2
    assert [one["arguments"] for one in served.record.calls("read")].count({"n": 2}) == 1


async def test_a_server_that_keeps_dying_rests_and_says_so(gateway, scripted):
    command, record = scripted({"methods": {name: {"exit": 1} for name in ("initialize", "server/discover")}})
    limits = "[limits]\nrestarts = 2\nrestart_wait_s = 0.05\n"
    live = await gateway({"one": {"command": command}}, more=limits)
    client = live.client("/s/one/mcp")
    answers = []
    for _ in range(5):
        client.session = None
        answers.append((await client.open())["error"]["message"])
    # Each session has its own link, so the count is the server's as one session sees it.
    assert all("status 1" in one or "rests" in one for one in answers)
    assert await gone(starts(record))


class FakeLink:
    """A link that opens when told."""

    def __init__(self, fails: bool = False) -> None:
        self.alive = False
        self.closed = 0
        self.go = asyncio.Event()
        self.fails = fails
        self.on_lost: Any = None

    async def open(self) -> None:
        await self.go.wait()
        if self.fails:
            raise EarnestError("E1205", "it ended")
        self.alive = True

    async def close(self) -> None:
        self.alive = False
        self.closed += 1


async def test_those_who_come_while_a_link_opens_share_it():
    links, made = Links(), []

    def make() -> Any:
        made.append(FakeLink())
        return made[-1]

    waiting = [asyncio.create_task(links.get(Owner("s"), make, lambda link: None)) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    made[0].go.set()
    assert {id(link) for link in await asyncio.gather(*waiting)} == {id(made[0])} and len(made) == 1
    await links.close()
    assert made[0].closed == 1


async def test_who_waits_for_a_link_that_is_released_is_told_and_not_cancelled():
    links, link = Links(), FakeLink()
    waiting = asyncio.create_task(links.get(Owner("s"), lambda: link, lambda link: None))  # type: ignore[arg-type, return-value]
    await asyncio.sleep(0.01)
    links.release(lambda owner: True)
    with pytest.raises(EarnestError) as caught:
        await waiting
    assert caught.value.code == "E1204"
    await links.close()


async def test_a_lost_link_is_closed_and_a_fresh_one_made():
    links, made = Links(), []

    def make() -> Any:
        made.append(FakeLink())
        made[-1].go.set()
        return made[-1]

    first = await links.get(Owner("s"), make, lambda link: None)
    made[0].alive = False
    made[0].on_lost(EarnestError("E1205", "it ended"))
    second = await links.get(Owner("s"), make, lambda link: None)
    assert second is not first and made[0].closed == 1
    await links.close()


async def test_failures_in_a_row_are_paused_longer_and_longer_and_then_it_rests():
    links = Links(restarts=3, first_pause_s=1.0)

    def make() -> Any:
        link = FakeLink(fails=True)
        link.go.set()
        return link

    async def attempt() -> tuple[str, float]:
        begun = time.monotonic()
        with pytest.raises(EarnestError) as caught:
            await links.get(Owner("s"), make, lambda link: None)
        return caught.value.code, time.monotonic() - begun

    seen = [await attempt() for _ in range(4)]
    assert [code for code, _ in seen] == ["E1205", "E1205", "E1205", "E1209"]
    assert seen[1][1] < 1.0 <= seen[2][1] and seen[3][1] < 1.0

"""The link to a server process: its opening, what it may say, and that nothing of it is left."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.protocol.envelope import Message
from earnest.upstream import stdio
from earnest.upstream.base import Reply
from earnest.upstream.opening import ClientHello, own_meta
from earnest.upstream.stdio import StdioLink

TOOL = {"name": "t", "inputSchema": {"type": "object"}}
Make = Callable[..., StdioLink]


class Heard:
    """The handler of one call."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.lost_by: list[tuple[str, bool]] = []
        self.messages: list[Message] = []
        self.over = asyncio.Event()

    def reply(self, reply: Reply) -> None:
        self.replies.append(reply)
        self.over.set()

    def lost(self, error: EarnestError, sent: bool) -> None:
        self.lost_by.append((error.message, sent))
        self.over.set()

    def message(self, message: Message) -> None:
        self.messages.append(message)

    def request(self, message: Message) -> bool:
        return False

    async def wait(self) -> "Heard":
        await asyncio.wait_for(self.over.wait(), 60)
        return self


def runs(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


async def ends(pid: int) -> bool:
    """Whether a process ends: what a signal does shows a moment later."""
    for _ in range(3000):
        if not runs(pid):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.fixture
async def links() -> AsyncIterator[Make]:
    made: list[StdioLink] = []

    def make(command: list[str], modern: bool = False, **more: Any) -> StdioLink:
        lines: list[str] = []
        client = ClientHello(prefer_modern=modern)
        link = StdioLink("s", command, env=dict(os.environ), cwd=None, client=client, log=lines.append, **more)
        link.lines = lines  # type: ignore[attr-defined]
        made.append(link)
        return link

    yield make
    for link in made:
        await link.close()


def call(link: StdioLink, name: str = "t", token: bool = False) -> Heard:
    heard = Heard()
    id = link.reserve()
    params = b'{"name":"%b"%b}' % (name.encode(), b',"_meta":{"progressToken":%d}' % id if token else b"")
    if link.hello.modern:
        params = own_meta(params, ClientHello(), link.hello.version)
    link.call("tools/call", params, heard, id=id)
    return heard


def steps(**calls: Any) -> dict[str, Any]:
    return {"tools": [{**TOOL, "name": name} for name in ("t", *calls)], "calls": calls}


async def test_a_server_that_ends_at_an_unknown_word_is_started_again_without_it(links, scripted):
    command, record = scripted({"era": "legacy", "tools": [TOOL], "methods": {"server/discover": {"exit": 3}}})
    link = links(command, modern=True)
    hello = await link.open()
    assert (hello.modern, hello.version) == (False, "2025-11-25")
    assert (await call(link).wait()).replies
    assert [event["event"] for event in record.events() if event["event"] == "start"] == ["start", "start"]
    first, second = (event["pid"] for event in record.events("start"))
    assert not runs(first) and link.pid == second


async def test_a_server_that_always_ends_at_once_says_why(links):
    link = links([sys.executable, "-S", "-c", "import sys; print('no licence', file=sys.stderr); sys.exit(7)"], modern=True)
    with pytest.raises(EarnestError, match="ended with status 7") as caught:
        await link.open()
    assert caught.value.code == "E1205" and "no licence" in caught.value.said
    assert "no licence" not in str(caught.value) and "no licence" in caught.value.told


@pytest.mark.parametrize(
    "command,code",
    [(["no-such-command-here"], "E1201"), (["./no/such/file"], "E1201"), ([sys.executable, "-S", "-c", "0"], "E1205")],
)
async def test_what_cannot_be_started_is_named(links, command, code):
    with pytest.raises(EarnestError) as caught:
        await links(command).open()
    assert caught.value.code == code


async def test_a_folder_that_is_not_there_is_named():
    link = StdioLink("s", ["sh"], env=dict(os.environ), cwd="/no/such/folder", client=ClientHello(), log=lambda line: None)
    with pytest.raises(EarnestError, match="/no/such/folder") as caught:
        await link.open()
    assert caught.value.code == "E1202"


async def test_a_server_that_never_answers_is_given_up_and_leaves_no_process(links, scripted):
    silent = {name: {"never": True} for name in ("server/discover", "initialize")}
    command, record = scripted({"methods": silent})
    link = links(command, open_timeout=0.5)
    with pytest.raises(EarnestError) as caught:
        await link.open()
    assert caught.value.code == "E1206"
    assert not any(runs(event["pid"]) for event in record.events("start"))


async def test_a_modern_server_is_asked_for_its_list_changes(links, scripted):
    script = steps(change=[{"list_changed": "tools"}, {"text": "ok"}])
    command, _ = scripted(script)
    link = links(command, modern=True)
    heard: list[str] = []
    told = asyncio.Event()

    def on(message: Message) -> None:
        heard.append(message.method)
        told.set()

    link.on_notification = on
    assert (await link.open()).modern
    assert (await call(link, "change").wait()).replies
    await asyncio.wait_for(told.wait(), 60)
    assert heard == ["notifications/tools/list_changed"]


async def test_a_server_that_cannot_be_listened_to_works_all_the_same(links, scripted):
    refusal = {"error": {"code": -32601, "message": "no"}}
    command, _ = scripted({"tools": [TOOL], "methods": {"subscriptions/listen": refusal}})
    link = links(command, modern=True)
    assert (await link.open()).modern
    assert (await call(link).wait()).replies


async def test_a_modern_server_that_sends_a_request_is_declined(links, scripted):
    asks = {"request": {"method": "sampling/createMessage", "wait": 5}}
    command, record = scripted(steps(ask=[asks, {"answer": True}]))
    link = links(command, modern=True)
    await link.open()
    heard = call(link, "ask")
    heard.request = lambda message: True  # type: ignore[method-assign]
    assert b"-32601" in (await heard.wait()).replies[0].result
    assert record.events("answer")[0]["known"]


async def test_the_request_of_a_legacy_server_goes_to_the_one_call_in_flight(links, scripted):
    command, _ = scripted(steps(ask=[{"request": {"method": "roots/list", "wait": 5}}, {"answer": True}]))
    link = links(command)
    await link.open()
    heard = call(link, "ask")

    def take(message: Message) -> bool:
        link.respond(message.id, Reply(b'{"roots":[]}'))
        return True

    heard.request = take  # type: ignore[method-assign]
    assert b"roots" in (await heard.wait()).replies[0].result
    # With two in flight it cannot be said whose it is.
    one, two = call(link, "ask"), call(link, "ask")
    one.request = two.request = take  # type: ignore[method-assign]
    await one.wait()
    await two.wait()
    assert b"-32601" in one.replies[0].result + two.replies[0].result


async def test_an_odd_server_harms_no_call_but_its_own(links, scripted):
    script = steps(
        garbage=[{"raw": "not json\n{\n[]\n\n"}, {"text": "after"}],
        wrong=[{"wrong_id": 999}, {"wrong_id": "1"}, {"wrong_id": None}, {"text": "right"}],
        twice=[{"text": "first"}, {"text": "second"}],
        loud=[{"stderr": 3_000_000}, {"text": "heard"}],
        cut=[{"raw": '{"jsonrpc":"2.0","id":$ID,'}, {"sleep": 0.05}, {"raw": '"result":{"content":[]}}\n'}],
    )
    command, _ = scripted(script)
    link = links(command)
    await link.open()
    for name, word in (("garbage", b"after"), ("wrong", b"right"), ("twice", b"first"), ("loud", b"heard"), ("cut", b"[]")):
        heard = await call(link, name).wait()
        assert len(heard.replies) == 1 and word in heard.replies[0].result
    assert (await call(link).wait()).replies
    assert len(link.lines) < 200


@pytest.mark.parametrize("how", [{"kill": True}, {"exit": 5}])
async def test_a_death_in_a_call_is_told_with_how_it_ended(links, scripted, how):
    command, _ = scripted(steps(die=[{"stderr": "out of ink\n"}, how]))
    ended: list[int] = []
    link = links(command, ended=ended.append)
    lost: list[str] = []
    link.on_lost = lambda error: lost.append(error.code)
    await link.open()
    pid = link.pid
    heard = await call(link, "die").wait()
    ((message, sent),) = heard.lost_by
    assert sent and "out of ink" not in message and ("killed by signal 9" in message or "status 5" in message)
    assert (lost, ended, link.alive) == (["E1205"], [pid], False)
    after = await call(link).wait()
    assert after.lost_by[0][1] is False


async def test_an_answer_written_just_before_the_end_counts(links, scripted):
    command, _ = scripted(steps(last=[{"text": "my last"}, {"exit": 0}]))
    link = links(command)
    await link.open()
    assert b"my last" in (await call(link, "last").wait()).replies[0].result


async def test_output_that_ends_while_the_process_stays_is_the_end(links, scripted):
    command, record = scripted({**steps(mute=[{"close": True}, {"sleep": 60}]), "linger": 60})
    link = links(command)
    await link.open()
    assert (await call(link, "mute").wait()).lost_by[0][1] is True
    await link.close()
    assert not any(runs(event["pid"]) for event in record.events("start"))


async def test_closing_leaves_neither_the_process_nor_what_it_started(links, tmp_path, monkeypatch):
    monkeypatch.setattr(stdio, "END_GRACE_S", 0.2)
    script = Path(__file__).parents[1] / "servers" / "scripted.py"
    note = tmp_path / "pids"
    # A launcher that ignores SIGTERM, as some do, with a server below it and a helper beside that.
    shell = f'trap "" TERM; sleep 300 & echo $! >{note}; "{sys.executable}" -S "{script}" \'{{"linger": 300}}\'; sleep 300'
    link = links(["sh", "-c", shell])
    await link.open()
    launcher, helper = link.pid, int(note.read_text())
    assert launcher and runs(launcher) and runs(helper)
    async with asyncio.timeout(60):  # not as long as they would stay
        await link.close()
    assert not runs(launcher) and await ends(helper)


async def test_what_a_server_started_ends_with_it(links, tmp_path):
    script = Path(__file__).parents[1] / "servers" / "scripted.py"
    note = tmp_path / "pids"
    inner = '{"tools": [{"name": "die"}], "calls": {"die": {"exit": 0}}}'
    shell = f"sleep 300 & echo $! >{note}; \"{sys.executable}\" -S \"{script}\" '{inner}'; exit 4"
    link = links(["sh", "-c", shell])
    await link.open()
    helper = int(note.read_text())
    assert (await call(link, "die").wait()).lost_by
    assert await ends(helper)


async def test_a_server_that_does_not_read_is_ended_before_it_costs_memory(links, scripted, monkeypatch):
    monkeypatch.setattr(stdio, "WRITE_HIGH", 200_000)
    command, _ = scripted(steps(stop=[{"stop_reading": 30}]))
    link = links(command)
    await link.open()
    call(link, "stop")
    await asyncio.sleep(0.2)
    heard = Heard()
    link.call("tools/call", b'{"name":"t","arguments":{"x":"%b"}}' % (b"x" * 900_000), heard)
    assert "does not read" in (await heard.wait()).lost_by[0][0]


async def test_a_message_without_end_ends_the_link(links, scripted, monkeypatch):
    monkeypatch.setattr(stdio, "LINE_LIMIT", 100_000)
    command, _ = scripted(steps(long=[{"raw": "x" * 300_000}, {"sleep": 30}]))
    link = links(command)
    await link.open()
    message, sent = (await call(link, "long").wait()).lost_by[0]
    assert sent and "100000 bytes" in message


async def test_progress_reaches_its_own_call_and_cancelling_is_told(links, scripted):
    command, record = scripted(steps(slow=[{"progress": {"progress": 1}}, {"wait_cancel": 20}, {"text": "late"}]))
    link = links(command)
    await link.open()
    one, two = Heard(), Heard()
    exchanges = []
    for heard in (one, two):
        id = link.reserve()
        params = b'{"name":"slow","_meta":{"progressToken":%d}}' % id
        exchanges.append(link.call("tools/call", params, heard, id=id))
    calls = await record.wait("call", 2)
    while not (one.messages and two.messages):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert (len(one.messages), len(two.messages)) == (1, 1)
    exchanges[0].cancel("enough")
    cancelled = await record.wait("cancelled")
    assert [event["id"] for event in cancelled] == [min(event["id"] for event in calls)]
    assert not one.over.is_set() and not two.over.is_set()




@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"\\ud83d"}]}}',
        '{"jsonrpc":"2.0","id":$ID,"result":' + '{"a":' * 200 + "1" + "}" * 200 + "}",
        '{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}',
    ],
)
async def test_an_answer_that_cannot_be_read_ends_its_call_at_once_and_no_other(links, scripted, line):
    command, _ = scripted(steps(odd=[{"line": line}], slow=[{"sleep": 0.3}, {"text": "mine"}]))
    link = links(command)
    await link.open()
    slow, odd = call(link, "slow"), call(link, "odd")
    heard = await odd.wait()
    assert not heard.replies and "cannot be read" in heard.lost_by[0][0] and heard.lost_by[0][1]
    assert b"mine" in (await slow.wait()).replies[0].result

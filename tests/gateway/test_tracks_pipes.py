"""The same as `test_tracks.py` for clients and servers on pipes, in both eras: a client hands over real pipes or sockets, the
server is a process that writes to its output what a call's arguments tell it to."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from earnest.core import canonical
from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.core.profile import Trust
from earnest.core.receipt import Decision, Outcome, read_line, verify
from earnest.gateway.process.arrivals import Arrival
from earnest.gateway.process.handover import StdioPeer
from earnest.gateway.process.peers import credentials
from earnest.net.tracks import AVAILABLE
from earnest.shim.handover import new_journal
from gateway.harness import until
from gateway.live import Live, Start

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="earnest was installed without its compiled piece")

Json = dict[str, Any]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
LABELS = {"dev.earnest/labels": {"private": True, "untrusted": False}}
FINE = {"content": [{"type": "text", "text": "fine"}]}
WARM = 24
"""Calls after which causes of labels are only counted, so that the next one goes along a track."""
WAIT_S = 20
MORE = '[labels."one/look"]\nsees_untrusted = false\n[receipts]\npayloads = true\n[limits]\ncall_timeout_s = 60\n'
FORBID = '\n[[policy.rule]]\nname = "no more"\nwhen = "tool.name == \'look\'"\nthen = "deny"\n'

# `say`: what is written in place of the answer, with $ID for the call's id and $OLD for that of a call that said nothing.
SERVER = r"""
import json, os, sys
modern, log = sys.argv[1] == "modern", open(sys.argv[2], "a", buffering=1)
tool = {"name": "look", "description": "does look", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "openWorldHint": False}}
more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {}
answers = {
    "tools/list": {"tools": [tool, {**tool, "name": "dear"}], **more},
    "tools/call": {"content": [{"type": "text", "text": "fine"}]},
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **more} if modern else None,
    "initialize": None if modern else {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
                                       "serverInfo": {"name": "s", "version": "1"}},
}
old = "0"
for line in sys.stdin:
    asked = json.loads(line)
    print(line.strip(), file=log)
    method, params = asked.get("method"), asked.get("params") or {}
    if "id" not in asked or method is None:
        continue
    id = json.dumps(asked["id"])
    say = (params.get("arguments") or {}).get("say") if method == "tools/call" else None
    if say is None:
        result = answers.get(method)
        end = '"result":' + json.dumps(result) if result else '"error":{"code":-32601,"message":"no"}'
        say = ['{"jsonrpc":"2.0","id":$ID,' + end + '}\n']
    for text in say:
        if text == "exit":
            os._exit(3)
        if text.startswith("long"):
            text = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"' + "x" * int(text[4:]) + '"}]}}\n'
        sys.stdout.write(text.replace("$ID", id).replace("$OLD", old))
        sys.stdout.flush()
    if not say:
        old = id
"""


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class Pipe:
    """One client of a gateway, on descriptors as a shim hands them over."""

    def __init__(self, live: Live, era: str, kind: str = "pipe") -> None:
        self._live, self._era, self._kind = live, era, kind
        self._id = 0
        self._got = b""
        self.journal = new_journal(os.open("/tmp", os.O_RDONLY))

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        if self._kind == "pipe":
            theirs_in, self.out = os.pipe()
            self.back, theirs_out = os.pipe()
        else:
            ours, theirs = socket.socketpair()
            theirs_in, self.out = theirs.detach(), ours.detach()
            theirs_out, self.back = os.dup(theirs_in), os.dup(self.out)
        os.set_blocking(self.back, False)
        self.link, sock = socket.socketpair()
        arrival = Arrival(sock, credentials(sock))
        arrival.header = {"kind": "stdio", "name": "one", "client": "pipe", "cwd": "/", "env": {}}
        passage = os.pipe()
        arrival.fds = [theirs_in, theirs_out, os.open("/dev/null", os.O_WRONLY), os.dup(self.journal), *passage]
        sock.setblocking(False)
        self.peer = StdioPeer(loop, arrival, self._live.log, lambda peer: None)
        self._live.app.on_stdio(self.peer)
        self.peer.start()
        if self._era == "legacy":
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            self.write(json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}))
            await self.message()
            self.write('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def write(self, text: str) -> None:
        os.write(self.out, text.encode() + b"\n")

    def request(self, arguments: str = "{}", name: str = "look", id: str = "", meta: Json | None = None) -> str:
        self._id += 1
        every = {**(META if self._era == "modern" else {}), **(meta or {})}
        tail = f',"_meta":{json.dumps(every)}' if every else ""
        params = f'{{"name":"{name}","arguments":{arguments}{tail}}}'
        return f'{{"jsonrpc":"2.0","id":{id or self._id},"method":"tools/call","params":{params}}}'

    async def line(self) -> bytes:
        loop = asyncio.get_running_loop()
        while b"\n" not in self._got:
            ready = loop.create_future()
            loop.add_reader(self.back, _set, ready)
            try:
                await asyncio.wait_for(ready, WAIT_S)
            finally:
                loop.remove_reader(self.back)
            part = os.read(self.back, 1 << 20)
            assert part, "the gateway closed the pipe"
            self._got += part
        line, _, self._got = self._got.partition(b"\n")
        return line

    async def message(self) -> Json:
        return dict(json.loads(await self.line()))

    async def call(self, arguments: str = "{}", **more: Any) -> Json:
        self.write(self.request(arguments, **more))
        while "id" not in (found := await self.message()):
            pass  # what a list changed to, say
        return found

    def close(self) -> None:
        for fd in (self.out, self.back):
            os.close(fd)
        self.link.close()


class Rig:
    def __init__(self, live: Live, client: Pipe, log: Path) -> None:
        self.live, self.client, self._log = live, client, log

    @property
    def layer(self) -> Any:
        return self.live.app.gateway.layer

    @property
    def trips(self) -> int:
        return int(self.layer.tracks.begun)

    def calls(self) -> list[Json]:
        """The calls that reached the server."""
        return [one for line in self._log.read_text().splitlines() if (one := json.loads(line)).get("method") == "tools/call"]

    def heard(self, method: str) -> list[Json]:
        """What else it heard."""
        return [one for line in self._log.read_text().splitlines() if (one := json.loads(line)).get("method") == method]

    async def along(self, arguments: str = "{}", **more: Any) -> Json:
        before = self.trips
        found = await self.client.call(arguments, **more)
        assert self.trips == before + 1
        return found

    async def around(self, arguments: str = "{}", **more: Any) -> Json:
        before = self.trips
        found = await self.client.call(arguments, **more)
        assert self.trips == before
        return found

    def records(self) -> tuple[list[Decision], list[Outcome]]:
        """All records of calls, from a chain that verifies; each call has both, once."""
        self.live.app.gateway.records.flush()
        lines = b"".join(path.read_bytes() for path in sorted(Path(self.live.folder, "instance", "receipts").glob("*.jsonl")))
        assert not verify("gateway", lines.splitlines()).findings
        records = [read_line(line).record for line in lines.splitlines()]
        return [one for one in records if isinstance(one, Decision)], [one for one in records if isinstance(one, Outcome)]

    def settled(self) -> list[Outcome]:
        """The outcomes, when nothing is under way: one for each decision."""
        gateway = self.live.app.gateway
        assert not gateway.relays and not self.layer.busy and not gateway.by_client and not gateway.by_server
        assert not self.client.peer.trips and not self.client.peer.in_flight
        decisions, outcomes = self.records()
        assert len(decisions) == len(outcomes) == len({one.decision for one in outcomes})
        return outcomes


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["pipe"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def rig(gateway: Start, tmp_path: Path, era: str, kind: str) -> AsyncIterator[Rig]:
    script, log = tmp_path / "server.py", tmp_path / "log"
    script.write_text(SERVER)
    table = {"command": [sys.executable, "-S", str(script), era, str(log)], "trust": "trusted"}
    live = await gateway({"one": table}, preset="balanced", more=MORE)
    client = Pipe(live, era, kind)
    await client.open()
    found = Rig(live, client, log)
    for _ in range(WARM):
        assert (await client.call())["result"] == {"_meta": LABELS, **FINE}
    await found.along()
    yield found
    client.close()


def say(*lines: str) -> str:
    return json.dumps({"say": list(lines)})


def answer(id: str = "$ID", text: str = "fine") -> str:
    return f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}\n'


@pytest.mark.parametrize("kind", ["pipe", "socket"], indirect=True)
async def test_a_call_along_a_track_is_judged_recorded_sent_and_answered_as_any_other(rig: Rig, era: str) -> None:
    spaced = '{ "b" : [1, 2.50, {"x":null}], "a":"ä \\u00e9 \\"q\\"" }'
    long_way = await rig.around(spaced, meta={"extra": 1})
    sent = ('{"city":"Graz","days":3}', '{"days":3,"city":"Graz"}', spaced, "{}")
    for arguments in sent:
        found = await rig.along(arguments)
        assert found == {**long_way, "id": found["id"]} and found["result"] == {"_meta": LABELS, **FINE}
        params = rig.calls()[-1]["params"]
        assert params == {"name": "look", "arguments": json.loads(arguments), **({"_meta": META} if era == "modern" else {})}
    decisions = rig.records()[0]
    other = next(one for one in decisions if one.arguments_sha256 == canonical.digest(spaced.encode()))
    for one, arguments in zip(decisions[-4:], sent, strict=True):
        assert one.arguments_sha256 == canonical.digest(arguments.encode())
        same = ("client", "conversation", "server", "identity", "method", "tool", "decision", "reasons", "pin", "labels_before")
        assert all(getattr(one, name) == getattr(other, name) for name in (*same, "policy_sha256", "profile", "trust", "title"))
    assert {one.outcome for one in rig.settled()} == {"ok"} and len(decisions) == len(rig.calls())


async def test_many_in_one_write_go_out_in_one_and_come_back_each_once(rig: Rig) -> None:
    before = rig.trips
    for turn in range(20):
        lines = [rig.client.request(f'{{"n":{turn * 16 + n}}}', id=f'"{turn}-{n}"') for n in range(16)]
        rig.client.write("\n".join(lines))
        assert [(await rig.client.message())["id"] for _ in lines] == [f"{turn}-{n}" for n in range(16)]
    assert rig.trips == before + 320
    assert [one["params"]["arguments"]["n"] for one in rig.calls()[-320:]] == list(range(320))
    assert len(rig.settled()) == len(rig.calls())


async def test_ids_of_either_kind_come_back_as_they_were_and_too_long_ones_go_the_long_way(rig: Rig) -> None:
    for id in ('"a-1"', "0", "9007199254740993", '"' + "x" * 90 + '"'):
        assert json.dumps((await rig.along(id=id))["id"]) == id
    for id in ('"a\\u0062"', "-1", '"ä"'):
        assert (await rig.around(id=id))["id"] == json.loads(id)
    assert "error" in await rig.around(id='"' + "x" * 200 + '"')
    rig.settled()


async def test_a_token_for_progress_and_a_trace_may_differ_from_call_to_call(rig: Rig) -> None:
    trace = "00-{:032x}-{:016x}-01"
    await rig.around(meta={"progressToken": "p-0", "traceparent": trace.format(1, 1)})
    for n in range(1, 4):
        await rig.along(meta={"progressToken": f"p-{n}", "traceparent": trace.format(n, n)})
        sent = rig.calls()[-1]
        assert sent["params"]["_meta"]["traceparent"] == trace.format(n, n)
        assert sent["params"]["_meta"]["progressToken"] == sent["id"], "the server gets one of ours, unique on its link"
    token = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}\n'
    before = rig.trips
    rig.client.write(rig.client.request(say(token, answer()), meta={"progressToken": 77, "traceparent": "x"}))
    assert (await rig.client.message())["params"] == {"progressToken": 77, "progress": 1}
    assert (await rig.client.message())["result"]["content"] == FINE["content"] and rig.trips == before + 1
    rig.settled()


async def test_where_each_call_brings_another_meta_no_track_is_laid_in_vain(rig: Rig) -> None:
    for n in range(40):
        await rig.around(meta={"com.example/number": n})
    assert len(rig.client.peer.tracks) <= 10
    await rig.along()


SHAPES = [
    '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no"}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"content":[]}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"Content":[]}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"\\ud800"}]}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"x","_meta":{"ifc":{"integrity":"untrusted"}}}]}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"image","data":"eA==","mimeType":"image/png"}]}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"other":1}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"x","size":01}]}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":null}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]\r}}\n',
    '{"jsonrpc":"2.0","id":$ID,"result":{"isError":true,"content":[]}}\n',
    'printed\n\n{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}\r\n',
    '{"jsonrpc":"2.0","id":999999,"result":{"content":[]}}\n{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}\n',
]


async def test_an_answer_that_is_not_plain_comes_to_what_it_comes_to_on_the_long_way(rig: Rig) -> None:
    for shape in SHAPES:
        rig.client.peer.tracks.clear()
        await rig.around()
        track, long_way = await rig.along(say(shape)), await rig.around(say(shape), meta={"other": 1})
        outcomes = rig.settled()[-2:]
        texts = [json.dumps({**one, "id": 0}) for one in (track, long_way)]
        assert texts[0].replace(outcomes[0].decision, "") == texts[1].replace(outcomes[1].decision, ""), shape
        same = ("outcome", "labels_after", "result_sha256", "result_bytes")
        assert all(getattr(outcomes[0], name) == getattr(outcomes[1], name) for name in same), shape


async def test_answers_out_of_order_and_answers_given_twice(rig: Rig) -> None:
    before = rig.trips
    rig.client.write(rig.client.request(say(), id='"first"'))
    twice = say(answer(), answer(), answer("$OLD", "late"), answer("$OLD", "later"))
    rig.client.write(rig.client.request(twice, id='"second"'))
    assert [(await rig.client.message())["id"] for _ in range(2)] == ["second", "first"]
    assert (await rig.along())["result"]["content"] == FINE["content"]
    assert rig.trips == before + 3 and len(rig.settled()) == len(rig.calls())


async def test_half_lines_and_huge_lines_of_either_side(rig: Rig) -> None:
    raw = rig.client.request('{"a":1}') + "\n"
    for at in (1, len(raw) // 2, len(raw) - 1):
        os.write(rig.client.out, raw[:at].encode())
        await asyncio.sleep(0.02)
        os.write(rig.client.out, raw[at:].encode())
        assert (await rig.client.message())["result"]["content"] == FINE["content"]
    whole = answer()
    assert (await rig.along(say(whole[:20], whole[20:-1], "\n")))["result"]["content"] == FINE["content"]
    for size in (20_000, 100_000, 3_000_000):
        assert len((await rig.along(say(f"long{size}")))["result"]["content"][0]["text"]) == size

    async def big(size: int) -> Json:
        line = rig.client.request(json.dumps({"x": "y" * size})).encode() + b"\n"
        await asyncio.to_thread(_write_all, rig.client.out, line)
        return await rig.client.message()

    for size in (60_000, 1_000_000):
        assert (await big(size))["result"]["content"] == FINE["content"]
        assert len(rig.calls()[-1]["params"]["arguments"]["x"]) == size
    assert "E1706" in json.dumps(await big(5 << 20))
    assert {one.outcome for one in rig.settled()} == {"ok"}


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


async def test_a_client_that_does_not_read_gets_every_answer_once_when_it_does(rig: Rig) -> None:
    for n in range(60):
        rig.client.write(rig.client.request(say("long30000"), id=str(1000 + n)))
    await until(lambda: len(rig.calls()) == WARM + 1 + 60)
    assert [(await rig.client.message())["id"] for _ in range(60)] == list(range(1000, 1060))
    await rig.client.call()
    assert {one.outcome for one in rig.settled()} == {"ok"}


async def test_what_a_server_says_beside_the_answer_is_heard_as_on_the_long_way(rig: Rig, era: str) -> None:
    note = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
    before = rig.trips
    rig.client.write(rig.client.request(say(note, answer())))
    assert (await rig.client.message())["method"] == "notifications/message"
    assert (await rig.client.message())["result"]["content"] == FINE["content"] and rig.trips == before + 1
    rig.client.write(rig.client.request(say('{"jsonrpc":"2.0","id":"s1","method":"ping"}\n', answer())))
    assert (await rig.client.message())["result"]["content"] == FINE["content"]
    rig.client.write(rig.client.request(say('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n', answer())))
    while "result" not in (await rig.client.message()):
        pass
    rig.settled()


@pytest.mark.parametrize("era", ["legacy"], indirect=True)
async def test_a_server_that_asks_inside_a_call_is_answered_in_it(rig: Rig) -> None:
    ask = '{"jsonrpc":"2.0","id":"s1","method":"roots/list"}\n'
    assert (await rig.along(say(ask, answer())))["result"]["content"] == FINE["content"]  # the client declared no roots
    await until(lambda: any(line.get("id") == "s1" for line in map(json.loads, rig._log.read_text().splitlines())))
    said = next(line for line in map(json.loads, rig._log.read_text().splitlines()) if line.get("id") == "s1")
    assert said["error"]["code"] == -32601
    rig.settled()


async def test_a_cancelled_call_is_cancelled_at_the_server_and_has_no_answer(rig: Rig) -> None:
    rig.client.write(rig.client.request(say(), id='"c"'))
    await until(lambda: rig.layer.busy and len(rig.calls()) == WARM + 2)
    rig.client.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"no"}}')
    await until(lambda: rig.heard("notifications/cancelled"))
    assert rig.heard("notifications/cancelled")[0]["params"] == {"requestId": rig.calls()[-1]["id"], "reason": "no"}
    assert (await rig.client.call())["result"]["content"] == FINE["content"]
    assert [one.outcome for one in rig.settled()][-2:] == ["cancelled", "ok"]


async def test_a_call_is_cancelled_in_the_same_write_that_brought_it(rig: Rig) -> None:
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}'
    rig.client.write(rig.client.request(say(), id='"c"') + "\n" + cancel)
    assert (await rig.client.call())["result"]["content"] == FINE["content"]
    assert [one.outcome for one in rig.settled()][-2:] == ["cancelled", "ok"]
    assert len(rig.calls()) == WARM + 2, "it was not sent"


async def test_an_id_in_use_is_refused_and_the_call_that_has_it_goes_on(rig: Rig) -> None:
    rig.client.write(rig.client.request(say(), id='"c"'))
    await until(lambda: rig.layer.busy and len(rig.calls()) == WARM + 2)
    rig.client.write(rig.client.request(id='"c"'))
    assert "in use" in (await rig.client.message())["error"]["message"]
    rig.client.write(rig.client.request(say(answer(), answer("$OLD", "late")), id='"d"'))
    assert sorted([(await rig.client.message())["id"] for _ in range(2)]) == ["c", "d"]


async def test_a_line_that_cannot_be_read_does_not_answer_for_a_call_on_its_track(rig: Rig) -> None:
    rig.client.write(rig.client.request(say(), id='"c"'))
    await until(lambda: rig.layer.busy and len(rig.calls()) == WARM + 2)
    rig.client.write('{"jsonrpc":"2.0","id":"c","method":"tools/call","id":"c"}')
    assert (await rig.client.message())["id"] is None
    rig.client.write(rig.client.request(say(answer("$OLD", "late"), answer()), id='"d"'))
    assert [(await rig.client.message())["id"] for _ in range(2)] == ["c", "d"]
    rig.settled()


async def test_a_client_that_goes_away_cancels_its_calls(rig: Rig) -> None:
    rig.client.write(rig.client.request(say(), id='"c"'))
    await until(lambda: rig.layer.busy and len(rig.calls()) == WARM + 2)
    rig.client.link.close()
    await until(lambda: not rig.layer.busy and not rig.live.app.gateway.relays)
    assert rig.records()[1][-1].outcome == "cancelled" and not rig.client.peer.trips and not rig.client.peer.tracks
    assert not rig.live.app.gateway.by_client and not rig.live.app.gateway.by_server


async def test_a_server_that_dies_in_the_middle_is_lost_and_the_call_not_sent_again(rig: Rig) -> None:
    rig.client.write(rig.client.request(say(), id='"a"') + "\n" + rig.client.request(say("exit"), id='"b"'))
    found = {one["id"]: one["result"] for one in [await rig.client.message() for _ in range(2)]}
    assert all(found[id]["isError"] and "may or may not" in json.dumps(found[id]) for id in "ab")
    assert (await rig.client.call())["result"]["content"] == FINE["content"]
    assert len(rig.calls()) == WARM + 4 and [one.outcome for one in rig.settled()][-3:] == ["lost", "lost", "ok"]


async def test_a_server_that_cannot_be_written_to_is_lost_with_all_calls_of_that_moment(rig: Rig) -> None:
    class Broken:
        def write(self, data: bytes) -> None:
            raise RuntimeError("no writing")

        def __getattr__(self, name: str) -> Any:
            return getattr(stdin, name)

        def get_write_buffer_size(self) -> int:
            return 1  # so that it is not written past this

    ((_, link),) = rig.live.app.gateway.links.all()
    stdin, link._stdin = link._stdin, Broken()
    rig.client.write(rig.client.request(id='"a"') + "\n" + rig.client.request(id='"b"'))
    found = {one["id"]: one["result"] for one in [await rig.client.message() for _ in range(2)]}
    assert all(found[id]["isError"] and "cannot be written to" in json.dumps(found[id]) for id in "ab")
    assert (await rig.client.call())["result"]["content"] == FINE["content"]
    assert len(rig.calls()) == WARM + 2 and [one.outcome for one in rig.settled()][-3:] == ["lost", "lost", "ok"]


@pytest.mark.parametrize("way", ["track", "long"])
async def test_a_call_that_was_answered_because_the_daemon_ends_is_not_answered_again(rig: Rig, way: str) -> None:
    rig.client.write(rig.client.request(say(), id='"c"'))
    await until(lambda: rig.layer.busy and len(rig.calls()) == WARM + 2)
    if way == "long":
        rig.layer.settle()
        assert rig.live.app.gateway.relays
    peer = rig.client.peer
    peer.pause_reading("drain")
    peer.fail_rest("it ends")
    ((_, link),) = rig.live.app.gateway.links.all()
    link._write(rig.client.request(say(answer("$OLD", "late")), id="999999").encode())
    await until(lambda: not rig.layer.busy and not rig.live.app.gateway.relays)
    await rig.live.app.gateway.stop()
    peer.close(0, "it ended")
    await until(lambda: peer.closed)
    os.set_blocking(rig.client.back, True)
    said = b""
    while part := os.read(rig.client.back, 1 << 16):
        said += part
    assert [(one["id"], "error" in one) for one in map(json.loads, said.splitlines())] == [("c", True)]


async def test_a_slow_answer_is_waited_for_as_an_ordinary_call(rig: Rig) -> None:
    rig.client.write(rig.client.request(say(), id='"c"'))
    await until(lambda: rig.live.app.gateway.relays)
    (relay,) = rig.live.app.gateway.relays
    assert relay.state == "sent" and relay.deadline > rig.live.app.gateway.now() and not rig.layer.busy
    rig.client.write(rig.client.request(say(answer("$OLD", "late"), answer()), id='"d"'))
    assert [(await rig.client.message())["id"] for _ in range(2)] == ["c", "d"]
    rig.settled()


async def test_a_tool_whose_answers_are_never_plain_gets_no_track(rig: Rig) -> None:
    odd = say(SHAPES[6])
    for _ in range(60):
        await rig.client.call(odd)
    await rig.around(odd)
    await rig.around()


async def test_where_records_cannot_be_written_nothing_goes_out(rig: Rig) -> None:
    await rig.along()  # so that it is the compiled piece that writes
    fd = rig.live.app.receipts._fd
    kept, full = os.dup(fd), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, fd)
    refused = await rig.client.call()
    os.dup2(kept, fd)
    assert refused["result"]["isError"] and len(rig.calls()) == WARM + 2
    assert (await rig.client.call())["result"]["content"] == FINE["content"]
    assert [one.outcome for one in rig.settled()][-2:] == ["not-sent", "ok"]
    os.close(kept)
    os.close(full)


# what a track stands on


async def test_a_policy_that_forbids_it_now_is_heard(rig: Rig) -> None:
    config = Path(rig.live.folder, "earnest.toml")
    config.write_text(config.read_text() + FORBID)
    rig.live.app.reload()
    assert (await rig.around())["result"]["isError"] is True and rig.records()[0][-1].decision == "deny"


async def test_trust_that_was_taken_back_is_not_counted_on(rig: Rig) -> None:
    (served,) = rig.live.app.gateway.catalogs.served(b"{}")
    served.server.set_trust(Trust.UNTRUSTED, "test")
    rig.client.write(rig.client.request())
    await until(lambda: rig.records()[0][-1].trust == "untrusted")
    assert rig.records()[0][-1].decision == "ask" and len(rig.calls()) == WARM + 1


async def test_labels_that_a_conversation_got_elsewhere_are_in_the_next_decision(rig: Rig) -> None:
    last = rig.records()[0][-1]
    more = (PRIVATE | UNTRUSTED) & ~last.labels_before
    rig.live.app.conversations.raise_(last.conversation, more, Cause("r-1", "other", "read"))
    await rig.around()
    assert rig.records()[0][-1].labels_before == last.labels_before | more


async def test_settings_of_the_client_that_changed_are_heard(rig: Rig) -> None:
    config = Path(rig.live.folder, "earnest.toml")
    config.write_text(config.read_text() + "\n[clients.pipe]\nasks = \"person\"\n")
    rig.live.app.reload()
    await rig.around()
    assert rig.records()[0][-1].client_asks == "person"


async def test_words_of_a_person_that_a_hook_announced_are_asked(rig: Rig) -> None:
    rig.live.app.engine.flows.user(rig.records()[0][-1].conversation, "look at Graz", "r-1")
    await rig.around()


async def test_a_list_that_changed_is_walked_first(rig: Rig) -> None:
    ((_, link),) = rig.live.app.gateway.links.all()
    rig.live.app.gateway._stale.add(link)
    await rig.around()


async def test_a_call_that_reaches_earnests_own_files_is_denied(rig: Rig) -> None:
    inside = str(Path(rig.live.folder, "instance", "signing.key"))
    found = await rig.around(json.dumps({"path": inside}))
    assert found["result"]["isError"] is True and rig.records()[0][-1].decision == "deny"
    await rig.along(json.dumps({"path": "/srv/notes.md"}))


async def test_arguments_that_can_be_read_in_two_ways_go_the_long_way_and_nowhere(rig: Rig) -> None:
    for arguments in ('{"a":1,"a":2}', '{"a":1,"A":2}', '{"a":"\\ud800"}', '{"a":01}', '{"a":[}', "[]", '"x"'):
        found = await rig.around(arguments)
        assert "error" in found or found["result"]["isError"] is True
    assert len(rig.calls()) == WARM + 1


async def test_a_limit_on_calls_under_way_counts_those_on_tracks(rig: Rig) -> None:
    limits = rig.live.app.gateway.settings.limits
    for n in range(limits.in_flight_per_client + 1):
        rig.client.write(rig.client.request(say(), id=str(5000 + n)))
    refused = await rig.client.message()
    assert refused["id"] == 5000 + limits.in_flight_per_client and "oo many calls" in json.dumps(refused)
    rig.client.link.close()
    await until(lambda: not rig.live.app.gateway.relays and not rig.layer.busy)


async def test_without_tracks_everything_is_the_same(rig: Rig) -> None:
    rig.client.peer.along = None
    before = rig.trips
    rig.client.write("\n".join(rig.client.request(f'{{"n":{n}}}') for n in range(16)))
    assert all([(await rig.client.message())["result"]["content"] == FINE["content"] for _ in range(16)])
    assert rig.trips == before and {one.outcome for one in rig.settled()} == {"ok"}

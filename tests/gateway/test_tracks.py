"""Calls that go the way an earlier one went (`net.tracks`): they come to what the long way comes to, and take it as soon as
anything is not as it was."""

import asyncio
import contextlib
import gc
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from earnest.core import canonical
from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.core.profile import Trust
from earnest.core.receipt import Decision, Outcome, read_line, verify
from earnest.gateway.http_front import HttpOutlet
from earnest.gateway.relay import Relay
from earnest.net.connection import Connection
from earnest.net.tracks import AVAILABLE, compiled
from earnest.pdp.persist import CallValues, key_text
from earnest.store.base import Endorsement as EndorsementRow
from earnest.upstream.http_exchange import HttpExchange
from gateway.harness import until
from gateway.live import Live, Start, reader

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="earnest was installed without its compiled piece")

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
PLAIN = '{"resultType":"complete","content":[{"type":"text","text":"fine"}],"isError":false}'
WARM = 24
"""Calls after which causes of labels are only counted, so that the next one goes along a track."""
WAIT_S = 20
MORE = '[labels."one/look"]\nsees_untrusted = false\n[receipts]\npayloads = true\n[limits]\ncall_timeout_s = 60\n'
READ = '\n[[policy.rule]]\nname = "resources"\nwhen = "tool.name == \'resources/read\'"\nthen = "allow"\nflow = "accept"\n'
FORBID = '\n[[policy.rule]]\nname = "no more"\nwhen = "tool.name == \'look\'"\nthen = "deny"\n'


def fine() -> Any:
    """`PLAIN` as clients get it."""
    return {"_meta": {"dev.earnest/labels": {"private": True, "untrusted": False}}, **json.loads(PLAIN)}


class Canned:
    """A modern server over HTTP that answers calls with what `answer` makes of them, byte for byte."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.answer: Callable[[bytes], bytes] = lambda id: self.json(id, PLAIN)
        self.held: asyncio.Event | None = None
        self.cut = 0
        self.pause_at = 0
        self.port = 0

    @staticmethod
    def http(body: bytes, kind: str = "application/json") -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (kind.encode(), len(body), body)

    def json(self, id: bytes, result: str) -> bytes:
        return self.http(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result.encode()))

    async def serve(self, reader_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader_.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length:")[2].split()[0])
                message = json.loads(await reader_.readexactly(length))
                id = json.dumps(message.get("id")).encode()
                if message["method"] == "server/discover":
                    said = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                    raw = self.json(id, json.dumps({**said, "ttlMs": 0, "cacheScope": "private"}))
                elif message["method"] == "tools/list":
                    raw = self.json(id, json.dumps({"resultType": "complete", "tools": [reader("look"), reader("dear")]}))
                else:
                    self.calls.append(message)
                    if self.held is not None:
                        await self.held.wait()
                    raw = self.answer(id)
                    if self.pause_at:
                        writer.write(raw[: self.pause_at])
                        await writer.drain()
                        await asyncio.sleep(0.02)
                        raw = raw[self.pause_at :]
                    if self.cut:
                        writer.write(raw[: self.cut])
                        await writer.drain()
                        break
                writer.write(raw)
                await writer.drain()
        writer.close()


class Kept:
    """One client on one connection."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._in: asyncio.StreamReader
        self.out: asyncio.StreamWriter
        self._id = 0

    async def open(self) -> None:
        host, port = self._live.url.removeprefix("http://").split(":")
        self._in, self.out = await asyncio.open_connection(host, int(port))

    def request(self, arguments: str = "{}", name: str = "look", id: str = "", meta: dict[str, Any] | None = None) -> bytes:
        params = f'{{"name":"{name}","arguments":{arguments},"_meta":{json.dumps(META if meta is None else meta)}}}'
        return self.post("tools/call", name, params, id)

    def post(self, method: str, name: str, params: str, id: str = "") -> bytes:
        self._id += 1
        body = f'{{"jsonrpc":"2.0","id":{id or self._id},"method":"{method}","params":{params}}}'.encode()
        lines = (
            "POST /s/one/mcp HTTP/1.1", "Host: " + self._live.url.removeprefix("http://"), "Content-Type: application/json",
            "Accept: application/json, text/event-stream", "Authorization: Bearer " + self._live.token,
            "MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}", f"Mcp-Name: {name}", f"Content-Length: {len(body)}",
        )  # fmt: skip
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    async def answer(self) -> tuple[int, Any]:
        head = (await asyncio.wait_for(self._in.readuntil(b"\r\n\r\n"), WAIT_S)).decode()
        length = head.lower().partition("content-length:")[2].split()
        body = await self._in.readexactly(int(length[0])) if length else await self._event()
        return int(head.split()[1]), json.loads(body)

    async def _event(self) -> bytes:
        chunks = b""
        while not chunks.endswith(b"0\r\n\r\n"):
            chunks += await self._in.readuntil(b"\r\n")
        return next(line[6:] for line in reversed(chunks.split(b"\r\n")) if line.startswith(b"data: "))

    async def call(self, arguments: str = "{}", **more: Any) -> tuple[int, Any]:
        self.out.write(self.request(arguments, **more))
        return await self.answer()


class Rig:
    def __init__(self, live: Live, server: Canned, client: Kept) -> None:
        self.live, self.server, self.client = live, server, client

    @property
    def layer(self) -> Any:
        return self.live.app.gateway.layer

    @property
    def trips(self) -> int:
        """Calls that went along tracks."""
        return int(self.layer.tracks.begun)

    async def along(self, arguments: str = "{}", **more: Any) -> tuple[int, Any]:
        """A call, which must go along a track."""
        before = self.trips
        found = await self.client.call(arguments, **more)
        assert self.trips == before + 1
        return found

    async def around(self, arguments: str = "{}", **more: Any) -> tuple[int, Any]:
        """A call, which must not."""
        before = self.trips
        found = await self.client.call(arguments, **more)
        assert self.trips == before
        return found

    def records(self) -> tuple[list[Decision], list[Outcome]]:
        """All records of calls, from a chain that verifies."""
        self.live.app.gateway.records.flush()
        lines = b"".join(path.read_bytes() for path in sorted(Path(self.live.folder, "instance", "receipts").glob("*.jsonl")))
        assert not verify("gateway", lines.splitlines()).findings
        records = [read_line(line).record for line in lines.splitlines()]
        decisions = [one for one in records if isinstance(one, Decision)]
        return decisions, [one for one in records if isinstance(one, Outcome)]


@pytest.fixture
async def rig(gateway: Start) -> AsyncIterator[Rig]:
    canned = Canned()
    server = await asyncio.start_server(canned.serve, "127.0.0.1", 0)
    canned.port = server.sockets[0].getsockname()[1]
    table = {"url": f"http://127.0.0.1:{canned.port}/mcp", "trust": "trusted"}
    live = await gateway({"one": table}, preset="balanced", more=MORE + READ)
    client = Kept(live)
    await client.open()
    found = Rig(live, canned, client)
    for _ in range(WARM):
        status, answer = await client.call()
        assert status == 200 and answer["result"].pop("_meta") and answer["result"] == json.loads(PLAIN)
    await found.along()
    yield found
    client.out.close()
    server.close()


async def test_a_call_along_a_track_is_judged_recorded_sent_and_answered_as_any_other(rig: Rig) -> None:
    spaced = '{ "b" : [1, 2.50, {"x":null}], "a":"ä \\u00e9 \\"q\\"" }'
    long_way = await rig.around(spaced, meta={**META, "extra": 1})
    sent = ('{"city":"Graz","days":3}', '{"days":3,"city":"Graz"}', spaced, "{}")
    for arguments in sent:
        status, answer = await rig.along(arguments)
        assert (status, answer["result"]) == (200, fine()) == (long_way[0], long_way[1]["result"])
        assert rig.server.calls[-1]["params"] == {"name": "look", "arguments": json.loads(arguments), "_meta": META}
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) == len(rig.server.calls)
    other = next(one for one in decisions if one.arguments_sha256 == canonical.digest(spaced.encode()))
    for one, arguments in zip(decisions[-4:], sent, strict=True):
        assert one.arguments_sha256 == canonical.digest(arguments.encode())
        same = ("client", "conversation", "server", "identity", "method", "tool", "decision", "reasons", "pin", "labels_before")
        assert all(getattr(one, name) == getattr(other, name) for name in (*same, "policy_sha256", "profile", "trust", "title"))
    last = outcomes[-1]
    assert last.result_sha256 == hashlib.sha256(PLAIN.encode()).hexdigest() and last.result_bytes == len(PLAIN)
    assert last.outcome == "ok" and last.labels_after == outcomes[0].labels_after and last.duration_ms > 0
    assert abs(last.time - decisions[-1].time) < WAIT_S
    rig.live.app.payloads.flush()
    kept = Path(rig.live.folder, "instance", "payloads").rglob("*")
    payloads = b"".join(path.read_bytes() for path in kept if path.is_file())
    assert last.result_sha256.encode() in payloads and other.arguments_sha256.encode() in payloads


async def test_what_names_something_other_than_a_tool_goes_the_long_way(rig: Rig) -> None:
    rig.server.answer = lambda id: rig.server.json(id, '{"resultType":"complete","contents":[]}')
    for _ in range(2):
        params = f'{{"uri":"notes://one","_meta":{json.dumps(META)}}}'
        rig.client.out.write(rig.client.post("resources/read", "notes://one", params))
        assert (await rig.client.answer())[1]["result"]["contents"] == []


async def test_ids_of_either_kind_come_back_as_they_were(rig: Rig) -> None:
    for id in ('"a-1"', "0", "9007199254740993", '"' + "x" * 90 + '"'):
        assert json.dumps((await rig.along(id=id))[1]["id"]) == id
    for id in ('"a\\u0062"', "-1", '"ä"'):
        assert (await rig.around(id=id))[1]["id"] == json.loads(id)


async def test_a_failed_call_says_so_in_answer_and_record(rig: Rig) -> None:
    rig.server.answer = lambda id: rig.server.json(id, '{"isError":true,"content":[{"text":"no","type":"text"}]}')
    assert (await rig.along())[1]["result"]["isError"] is True
    assert rig.records()[1][-1].outcome == "error"


@pytest.mark.parametrize(
    "result",
    [
        '{"content":[{"type":"text","text":"x","_meta":{"ifc":{"integrity":"untrusted"}}}]}',
        '{"content":[{"type":"image","data":"eA==","mimeType":"image/png"}]}',
        '{"content":[],"content":[]}',
        '{"content":[],"Content":[]}',
        '{"content":[{"type":"text","text":"\\ud800"}]}',
        '{"content":[],"other":1}',
        '{"content":[],"_meta":{}}',
        '{"resultType":"input_required","inputRequests":{}}',
        '{"content":null}',
    ],
)
async def test_an_answer_that_is_not_plain_is_read_the_long_way(rig: Rig, result: str) -> None:
    rig.server.answer = lambda id: rig.server.json(id, result)
    track = await rig.along('{"a":1}')
    long_way = await rig.around('{"a":1}', meta={**META, "other": 1})
    assert _without_ids(track) == _without_ids(long_way)
    decisions, outcomes = rig.records()
    assert outcomes[-1].outcome == outcomes[-2].outcome and outcomes[-1].labels_after >= outcomes[-2].labels_after
    assert len(decisions) == len(outcomes)


async def test_answers_that_are_no_answers_end_as_on_the_long_way(rig: Rig) -> None:
    http, server = Canned.http, rig.server
    shapes: list[Callable[[bytes], bytes]] = [
        lambda id: http(b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32000,"message":"no"}}' % id),
        lambda id: http(b'{"jsonrpc":"2.0","id":999999,"result":%b}' % PLAIN.encode()),
        lambda id: http(b'{"jsonrpc":"2.0","id":%b,"id":%b,"result":%b}' % (id, id, PLAIN.encode())),
        lambda id: http(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, PLAIN.encode()[:-1])),
        lambda id: http(b"[]"),
        lambda id: http(b"data: " + b'{"jsonrpc":"2.0","id":%b,"result":%b}\n\n' % (id, PLAIN.encode()), "text/event-stream"),
        lambda id: b"HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        lambda id: server.json(id, PLAIN) + b"HTTP/1.1 200 OK\r\n",
    ]
    for number, shape in enumerate(shapes):
        server.answer = lambda id: server.json(id, PLAIN)
        await rig.client.call()
        server.answer = shape
        track = await rig.client.call()
        long_way = await rig.around(meta={**META, "other": number})
        assert _without_ids(track) == _without_ids(long_way)
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) == len(rig.server.calls)


def _without_ids(answered: tuple[int, Any]) -> str:
    """Status and answer without the request's id and the receipt that a refusal names."""
    return re.sub(r"gateway\.\d+", "", f"{answered[0]} {json.dumps({**answered[1], 'id': 0})}")


@pytest.mark.parametrize("size", [20_000, 400_000, 3_000_000])
async def test_a_large_answer_arrives_whole(rig: Rig, size: int) -> None:
    text = "äx" * (size // 2)
    result = json.dumps({"content": [{"type": "text", "text": text}]}, ensure_ascii=False)
    rig.server.answer = lambda id: rig.server.json(id, result)
    await rig.client.call()
    for _ in range(2):
        assert (await rig.along())[1]["result"]["content"][0]["text"] == text
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) and outcomes[-1].outcome == "ok" and outcomes[-1].result_bytes > size


def streamed(*pieces: bytes, end: bytes = b"0\r\n\r\n", more: bytes = b"") -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    head = b"HTTP/1.1 200 OK\r\n%bContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" % more
    return head + chunks + end


def answer_event(id: bytes, line: bytes = b"\n") -> bytes:
    message = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, PLAIN.encode())
    return b"event: message" + line + b"data: " + message + line + line


@pytest.mark.parametrize("line", [b"\n", b"\r\n"])
async def test_an_event_stream_of_one_event_is_an_answer_too(rig: Rig, line: bytes) -> None:
    rig.server.answer = lambda id: streamed(answer_event(id, line))
    await rig.client.call()
    for _ in range(3):
        assert (await rig.along())[1]["result"] == fine()
    await until(lambda: not rig.live.app.gateway.relays)
    for cut in (60, 90, 110, 150, 230, -6, -5, -3, -1):
        rig.server.pause_at = cut
        assert (await rig.along())[1]["result"] == fine()
    rig.server.pause_at = 0
    assert (await rig.along())[1]["result"] == fine()
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) == len(rig.server.calls)
    assert {one.outcome for one in outcomes} == {"ok"} and not rig.live.app.gateway.by_server


async def test_what_else_a_stream_may_bring_is_read_the_long_way(rig: Rig) -> None:
    def progress(id: bytes) -> bytes:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        return b"data: %b\n\n" % json.dumps(note).encode()

    shapes: list[Callable[[bytes], bytes]] = [
        lambda id: streamed(progress(id), answer_event(id)),
        lambda id: streamed(answer_event(id) + answer_event(id)),
        lambda id: streamed(answer_event(id)[:40], answer_event(id)[40:]),
        lambda id: streamed(b": hello\n\n", answer_event(id)),
        lambda id: streamed(b"id: 7\n" + answer_event(id)),
        lambda id: streamed(answer_event(b"999999")),
        lambda id: streamed(answer_event(id), end=b"0\r\nX: y\r\n\r\n"),
        lambda id: streamed(answer_event(id), end=b"2\r\n\n\n\r\n0\r\n\r\n"),
    ]
    for number, shape in enumerate(shapes):
        rig.server.answer = lambda id: streamed(answer_event(id))
        await rig.client.call()
        rig.server.answer = shape
        track = await rig.client.call()
        long_way = await rig.around(meta={**META, "other": number})
        assert _without_ids(track) == _without_ids(long_way)
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) == len(rig.server.calls)


async def test_a_stream_that_does_not_end_after_its_answer_keeps_its_connection_from_the_next_call(rig: Rig) -> None:
    rig.server.answer = lambda id: streamed(answer_event(id))
    await rig.client.call()
    rig.server.answer = lambda id: streamed(answer_event(id), end=b"")
    assert (await rig.along())[1]["result"] == fine()
    rig.server.answer = lambda id: streamed(answer_event(id))
    assert (await rig.client.call())[1]["result"] == fine()
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) == len(rig.server.calls)


async def test_the_time_of_day_in_an_answers_head_makes_no_difference(rig: Rig) -> None:
    for second in range(10, 14):
        date = b"date: Mon, 30 Nov 2026 21:26:%d GMT\r\n" % second
        rig.server.answer = lambda id, date=date: streamed(answer_event(id), more=date)  # type: ignore[misc]
        await (rig.client.call() if second == 10 else rig.along())
    assert {one.outcome for one in rig.records()[1]} == {"ok"}


async def test_an_answer_that_breaks_off_leaves_one_outcome_and_is_not_asked_for_again(rig: Rig) -> None:
    calls = len(rig.server.calls)
    for cut in (1, 30, 70, 120):
        rig.server.cut = cut
        status, answer = await rig.client.call()
        assert status == 200 and answer["result"]["isError"] is True
        rig.server.cut = 0
        assert (await rig.client.call())[1]["result"]["isError"] is False
    assert len(rig.server.calls) == calls + 8
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) and [one.outcome for one in outcomes[-8:]] == ["lost", "ok"] * 4


async def test_a_client_that_goes_away_cancels_its_call(rig: Rig) -> None:
    rig.server.held = asyncio.Event()
    rig.client.out.write(rig.client.request())
    await until(lambda: rig.layer.busy and len(rig.server.calls) == WARM + 2)
    rig.client.out.close()
    await until(lambda: not rig.layer.busy and not rig.live.app.gateway.relays)
    rig.server.held.set()
    assert rig.records()[1][-1].outcome == "cancelled"
    assert not rig.live.app.gateway.by_client and not rig.live.app.gateway.by_server


async def test_a_slow_answer_is_waited_for_as_an_ordinary_call(rig: Rig) -> None:
    rig.server.held = asyncio.Event()
    rig.client.out.write(rig.client.request())
    await until(lambda: rig.live.app.gateway.relays)
    (relay,) = rig.live.app.gateway.relays
    assert relay.state == "sent" and relay.deadline > rig.live.app.gateway.now() and not rig.layer.busy
    rig.server.held.set()
    assert (await rig.client.answer())[1]["result"] == fine()
    assert not rig.live.app.gateway.relays and rig.records()[1][-1].outcome == "ok"


async def test_requests_behind_one_another_are_answered_in_order(rig: Rig) -> None:
    rig.client.out.write(b"".join(rig.client.request(id=str(n)) for n in (501, 502, 503)))
    rig.client.out.write(rig.client.request(id="504"))
    assert [(await rig.client.answer())[1]["id"] for _ in range(4)] == [501, 502, 503, 504]


async def test_a_request_in_pieces_is_the_same_request(rig: Rig) -> None:
    raw = rig.client.request('{"a":1}')
    for at in (1, len(raw) // 2, len(raw) - 1):
        rig.client.out.write(raw[:at])
        await asyncio.sleep(0.05)
        rig.client.out.write(raw[at:])
        assert (await rig.client.answer())[1]["result"] == fine()


async def test_many_at_once_each_get_their_own_answer_and_both_records(rig: Rig) -> None:
    rig.server.answer = lambda id: rig.server.json(id, PLAIN.replace("fine", rig.server.calls[-1]["params"]["arguments"]["n"]))
    clients = [Kept(rig.live) for _ in range(12)]
    for client in clients:
        await client.open()

    async def work(number: int, client: Kept) -> None:
        for turn in range(30):
            said = (await client.call(f'{{"n":"{number}/{turn}"}}'))[1]["result"]["content"][0]["text"]
            assert said.endswith(f"/{turn}") or said  # which of the calls was last is the server's to say
        client.out.close()

    before = rig.trips
    await asyncio.gather(*(work(number, client) for number, client in enumerate(clients)))
    assert rig.trips > before + 200
    decisions, outcomes = rig.records()
    assert len(decisions) == len(outcomes) == len(rig.server.calls)
    assert {one.decision for one in outcomes} == {f"gateway.{n}" for n in _numbers(rig)}


def _numbers(rig: Rig) -> list[int]:
    lines = b"".join(path.read_bytes() for path in sorted(Path(rig.live.folder, "instance", "receipts").glob("*.jsonl")))
    read = [read_line(line) for line in lines.splitlines()]
    return [one.seq for one in read if isinstance(one.record, Decision)]


# what a track stands on


async def test_a_policy_that_forbids_it_now_is_heard(rig: Rig) -> None:
    config = Path(rig.live.folder, "earnest.toml")
    config.write_text(config.read_text() + FORBID)
    rig.live.app.reload()
    _, answer = await rig.around()
    assert answer["result"]["isError"] is True and rig.records()[0][-1].decision == "deny"


async def test_a_token_that_is_taken_away_opens_nothing(rig: Rig) -> None:
    rig.live.app.tokens.digests().clear()
    assert (await rig.around())[0] == 401


async def test_a_name_that_the_listener_does_not_have_any_more_is_refused(rig: Rig) -> None:
    assert rig.live.app.http is not None
    rig.live.app.http.hosts = frozenset({"elsewhere"})
    assert (await rig.around())[0] == 421


async def test_trust_that_was_taken_back_is_not_counted_on(rig: Rig) -> None:
    (served,) = rig.live.app.gateway.catalogs.served(b"{}")
    served.server.set_trust(Trust.UNTRUSTED, "test")
    rig.client.out.write(rig.client.request())
    await until(lambda: rig.records()[0][-1].trust == "untrusted")
    assert rig.records()[0][-1].decision == "ask" and len(rig.server.calls) == WARM + 1


async def test_labels_that_a_conversation_got_elsewhere_are_in_the_next_decision(rig: Rig) -> None:
    decisions, _ = rig.records()
    key, labels = decisions[-1].conversation, decisions[-1].labels_before
    more = (PRIVATE | UNTRUSTED) & ~labels
    assert more, "the server's calls must not set all labels themselves"
    rig.live.app.conversations.raise_(key, more, Cause("r-1", "other", "read"))
    await rig.around()
    assert rig.records()[0][-1].labels_before == labels | more


async def test_a_conversation_that_ended_while_a_call_was_under_way_gets_its_labels_again(rig: Rig) -> None:
    decisions, _ = rig.records()
    key, labels = decisions[-1].conversation, decisions[-1].labels_before
    rig.server.held = asyncio.Event()
    rig.client.out.write(rig.client.request())
    await until(lambda: rig.layer.busy)
    rig.live.app.conversations.end(key, {key})
    assert not rig.live.app.conversations.own(key)
    rig.server.held.set()
    await rig.client.answer()
    assert rig.live.app.conversations.own(key) == labels
    rig.server.held = None
    await rig.around()


async def test_words_of_a_person_that_a_hook_announced_are_asked(rig: Rig) -> None:
    key = rig.records()[0][-1].conversation
    rig.live.app.engine.flows.user(key, "look at Graz", "r-1")
    await rig.around()


async def test_what_a_person_endorses_is_looked_up(rig: Rig) -> None:
    key = rig.records()[0][-1].conversation
    values = msgspec.json.encode(CallValues("elsewhere", "look", "", "", "another server's")).decode()
    row = EndorsementRow("e-1", key_text(key), "source", values, receipt="r-1")
    rig.live.app.endorsements.add(row)
    await rig.around()
    await rig.around()  # there is one, if for another server
    rig.live.app.endorsements.drop("e-1")
    await rig.client.call()
    await rig.along()


async def test_a_call_that_reaches_earnests_own_files_is_denied(rig: Rig) -> None:
    inside = str(Path(rig.live.folder, "instance", "signing.key"))
    _, answer = await rig.around(json.dumps({"path": inside}))
    assert answer["result"]["isError"] is True and rig.records()[0][-1].decision == "deny"
    assert (await rig.along(json.dumps({"path": "/srv/notes.md"})))[1]["result"] == fine()


@pytest.mark.parametrize("arguments", ['{"a":1,"a":2}', '{"a":1,"A":2}', '{"a":"\\ud800"}', '{"a":01}', '{"a":[}', "[]", '"x"'])
async def test_arguments_that_can_be_read_in_two_ways_go_the_long_way_and_nowhere(rig: Rig, arguments: str) -> None:
    calls = len(rig.server.calls)
    _, answer = await rig.around(arguments)
    assert "error" in answer or answer["result"]["isError"] is True
    assert len(rig.server.calls) == calls


async def test_no_call_goes_out_whose_decision_cannot_be_written(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    calls = len(rig.server.calls)
    write = os.write
    fd = rig.live.app.receipts._fd

    def full(to: int, data: bytes) -> int:
        if to == fd:
            raise OSError(28, "no space")
        return write(to, data)

    monkeypatch.setattr("os.write", full)
    _, answer = await rig.client.call()
    assert answer["result"]["isError"] is True and "disk is full" in json.dumps(answer).lower()
    answer = (await rig.around())[1]
    assert answer["result"]["isError"] is True and len(rig.server.calls) == calls
    monkeypatch.setattr("os.write", write)
    assert (await rig.client.call())[1]["result"] == fine()
    await rig.along()
    _, outcomes = rig.records()
    assert [one.outcome for one in outcomes[-4:]] == ["not-sent", "not-sent", "ok", "ok"]


async def test_the_limit_of_calls_in_flight_holds_for_all_of_them(rig: Rig) -> None:
    rig.live.app.gateway.by_server["one"] = rig.live.app.gateway.settings.limits.in_flight_per_server
    assert "Too many calls" in json.dumps((await rig.around())[1])
    rig.live.app.gateway.by_server.clear()
    await rig.along()
    assert not rig.live.app.gateway.by_server and not rig.live.app.gateway.by_client


async def test_a_server_that_lists_anew_is_waited_for(rig: Rig) -> None:
    gateway = rig.live.app.gateway
    (link,) = [link for _, link in gateway.links.all()]
    gateway._stale.add(link)
    await rig.around()
    assert link not in gateway._stale


async def test_calls_under_way_at_the_end_are_answered_and_recorded(rig: Rig) -> None:
    rig.server.held = asyncio.Event()
    rig.client.out.write(rig.client.request())
    await until(lambda: rig.layer.busy)
    await rig.live.app.gateway.stop()
    _, answer = await rig.client.answer()
    assert answer["result"]["isError"] is True
    assert rig.records()[1][-1].outcome in ("lost", "not-sent")
    rig.server.held.set()


async def test_of_a_connection_that_is_closed_nothing_is_kept(rig: Rig) -> None:
    def kept() -> int:
        return sum(type(one) in (Connection, Relay, HttpExchange, HttpOutlet, compiled.Track) for one in gc.get_objects())

    gc.collect()
    gc.disable()  # it is gone by the count of references alone: a crowd of clients leaves nothing to collect
    try:
        for _ in range(3):
            other = Kept(rig.live)
            await other.open()
            await other.call()
            other.out.close()
        rig.client.out.close()
        await until(lambda: kept() == 0)
    finally:
        gc.enable()
    assert rig.layer._laid and not any(tools for tools, _ in rig.layer._laid)

"""What a legacy server asks inside a call: it reaches the client that made the call, and the answer is judged like a call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.protocol import envelope
from earnest.protocol.envelope import Message
from earnest.upstream.base import Reply
from gateway.harness import Arrived, Bench, Call, Json, ScriptedClient, ScriptedServer, bench, reads, settle, until

ALL: Json = {"sampling": {}, "elicitation": {}, "roots": {}}
TRUSTED = {"s": "trusted"}
QUIET = '[labels."s/read"]\nreads_private = false\nsees_untrusted = false\n'


def asking(method: str, took: list[bool], params: Json | None = None) -> ScriptedServer:
    """A server that asks `method` inside each call and waits."""
    made = ScriptedServer("s", [reads("read")])

    def on_call(arrived: Arrived) -> None:
        raw = msgspec.json.encode(params or {})
        took.append(arrived.handler.request(Message("request", b'"q-%d"' % arrived.id, method, raw)))

    made.on_call = on_call
    return made


class Asked(NamedTuple):
    """A call of one client, in which the server has asked."""

    b: Bench
    s: ScriptedServer
    client: ScriptedClient
    call: Call
    request: Json

    def label(self) -> None:
        """From now on the conversation has seen what must not leave."""
        self.b.app.conversations.raise_(self.client.session.client.key, PRIVATE | UNTRUSTED, Cause("r", "x", "y"))

    async def end(self) -> None:
        """The server answers the call."""
        self.s.calls[0].text()
        await self.call.over()


@asynccontextmanager
async def asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str = "elicitation/create", **call: Any
) -> AsyncIterator[Asked]:
    """A call in which the server has put its question to the client. `call`: more of the call."""
    s = asking(method, [])
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        made = client.call("read", **call)
        yield Asked(b, s, client, made, await made.asked())


def answered(s: ScriptedServer) -> Any:
    (_, reply) = s.responses[-1]
    return msgspec.json.decode(reply.result or reply.error)


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list"])
async def test_a_question_reaches_the_client_of_the_call_and_its_answer_the_server_with_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    took: list[bool] = []
    s = asking(method, took, {"q": 1})
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client, other = await b.client(capabilities=ALL), await b.client(capabilities=ALL)
        call = client.call("read")
        request = await call.asked()
        assert took == [True] and request["method"] == method and request["params"] == {"q": 1}
        assert request["id"] != "q-1", "the id is earnest's own"
        assert other.told == []
        client.reply(request, {"roots": []})
        await until(lambda: s.responses)
        assert s.responses[0][0] == b'"q-1"' and answered(s) == {"roots": []}
        s.calls[0].text()
        await call.over()
        await settle()
        assert b.decisions() == ["allow", "allow"] and sorted(b.outcomes()) == ["ok", "ok"]


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list", "tools/call", "x/y"])
async def test_a_question_the_client_did_not_declare_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    took: list[bool] = []
    s = asking(method, took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        call = (await b.client(capabilities={})).call("read")
        await s.wait(1)
        await until(lambda: took)
        assert took == [False] and call.sent == []
        s.calls[0].text()
        await call.over()


async def test_a_modern_client_is_never_sent_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    took: list[bool] = []
    s = asking("roots/list", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        call = (await b.client(modern=True, capabilities=ALL)).call("read")
        assert (await call.result())["resultType"] == "input_required"
        assert took == [True] and call.sent == []


async def test_an_answer_that_may_carry_private_data_out_asks_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(tmp_path, monkeypatch) as a:
        a.label()
        a.client.reply(a.request, {"action": "accept", "content": {"secret": 1}})
        (waiting,) = await a.b.pending()
        assert "secret" in waiting["arguments"] and not a.s.responses
        await a.b.approve("no")
        await until(lambda: a.s.responses)
        assert "code" in answered(a.s) and "secret" not in str(answered(a.s))
        assert a.call.answer is None, "the call itself goes on"
        a.s.calls[0].text()
        assert await a.call.said() == "done"


async def test_a_client_that_leaves_takes_its_waiting_answer_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(tmp_path, monkeypatch) as a:
        a.label()
        a.client.reply(a.request, {"action": "accept", "content": {}})
        await a.b.pending()
        a.client.leave()
        assert [row["state"] for row in await a.b.op("approvals", all=True)] == ["withdrawn"]
        assert a.b.app.gateway.asking.held == 0


async def test_an_answer_that_comes_after_the_call_is_over_carries_nothing_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asked(tmp_path, monkeypatch) as a:
        await a.end()
        a.client.reply(a.request, {"action": "accept", "content": {"secret": 1}})
        await settle()
        assert all("secret" not in str(reply) for _, reply in a.s.responses)


async def test_what_a_client_says_in_an_error_is_not_passed_on_unjudged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asked(tmp_path, monkeypatch) as a:
        raw = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-1,"message":"secret","data":{"more":"secret"}}}'
        a.client.session.handle(envelope.parse(raw % msgspec.json.encode(a.request["id"])), Call(a.client, None))
        await until(lambda: a.s.responses)
        assert answered(a.s)["code"] == -1 and "secret" not in str(answered(a.s))
        await a.end()


async def test_an_answer_belongs_to_the_conversation_of_its_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(tmp_path, monkeypatch, "roots/list", meta={"dev.earnest/conversation": "h"}) as a:
        a.client.reply(a.request, {"roots": []})
        await until(lambda: a.s.responses)
        keys = {r.conversation for r in a.b.receipts.records.values() if hasattr(r, "conversation") and r.conversation}
        assert keys == {(*a.client.session.client.key, "handle:h")}
        await a.end()


async def test_a_second_answer_to_one_question_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(tmp_path, monkeypatch, "roots/list") as a:
        a.client.reply(a.request, {"roots": []})
        a.client.reply(a.request, {"roots": [{"uri": "file:///"}]})
        await until(lambda: a.s.responses)
        await settle()
        assert len(a.s.responses) == 1 and isinstance(a.s.responses[0][1], Reply)
        await a.end()


async def test_an_answer_whose_call_ends_while_a_person_is_asked_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asked(tmp_path, monkeypatch) as a:
        a.label()
        a.client.reply(a.request, {"action": "accept", "content": {"secret": 1}})
        await a.b.pending()
        await a.end()
        assert [row["state"] for row in await a.b.op("approvals", all=True)] == ["withdrawn"]
        await settle()
        assert "secret" not in str(a.s.responses) and not a.b.app.gateway.server_requests.answering

"""What a legacy server asks inside a call: it reaches the client that made the call, and the answer is judged like a call."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.protocol.envelope import Message
from earnest.upstream.base import Reply
from gateway.harness import Arrived, Json, ScriptedServer, bench, reads, settle, until

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
    took: list[bool] = []
    s = asking("elicitation/create", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        call = client.call("read")
        request = await call.asked()
        b.app.conversations.raise_(client.session.client.key, PRIVATE | UNTRUSTED, Cause("r", "x", "y"))
        client.reply(request, {"action": "accept", "content": {"secret": 1}})
        (asked,) = await b.pending()
        assert "secret" in asked["arguments"] and not s.responses
        await b.approve("no")
        await until(lambda: s.responses)
        assert "code" in answered(s) and "secret" not in str(answered(s))
        assert call.answer is None, "the call itself goes on"
        s.calls[0].text()
        assert await call.said() == "done"


async def test_a_client_that_leaves_takes_its_waiting_answer_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    took: list[bool] = []
    s = asking("elicitation/create", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        call = client.call("read")
        request = await call.asked()
        b.app.conversations.raise_(client.session.client.key, PRIVATE | UNTRUSTED, Cause("r", "x", "y"))
        client.reply(request, {"action": "accept", "content": {}})
        await b.pending()
        client.leave()
        assert [row["state"] for row in await b.op("approvals", all=True)] == ["withdrawn"]
        assert b.app.gateway.asking.held == 0


async def test_an_answer_that_comes_after_the_call_is_over_carries_nothing_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took: list[bool] = []
    s = asking("elicitation/create", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        call = client.call("read")
        request = await call.asked()
        s.calls[0].text()
        await call.over()
        client.reply(request, {"action": "accept", "content": {"secret": 1}})
        await settle()
        assert all("secret" not in str(reply) for _, reply in s.responses)


async def test_what_a_client_says_in_an_error_is_not_passed_on_unjudged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took: list[bool] = []
    s = asking("elicitation/create", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        call = client.call("read")
        request = await call.asked()
        raw = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-1,"message":"secret","data":{"more":"secret"}}}'
        from earnest.protocol import envelope
        from gateway.harness import Call

        client.session.handle(envelope.parse(raw % msgspec.json.encode(request["id"])), Call(client, None))
        await until(lambda: s.responses)
        assert answered(s)["code"] == -1 and "secret" not in str(answered(s))
        s.calls[0].text()
        await call.over()


async def test_an_answer_belongs_to_the_conversation_of_its_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    took: list[bool] = []
    s = asking("roots/list", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        call = client.call("read", meta={"dev.earnest/conversation": "h"})
        client.reply(await call.asked(), {"roots": []})
        await until(lambda: s.responses)
        keys = {r.conversation for r in b.receipts.records.values() if hasattr(r, "conversation") and r.conversation}
        assert keys == {(*client.session.client.key, "handle:h")}
        s.calls[0].text()
        await call.over()


async def test_a_second_answer_to_one_question_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    took: list[bool] = []
    s = asking("roots/list", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        call = client.call("read")
        request = await call.asked()
        client.reply(request, {"roots": []})
        client.reply(request, {"roots": [{"uri": "file:///"}]})
        await until(lambda: s.responses)
        await settle()
        assert len(s.responses) == 1 and isinstance(s.responses[0][1], Reply)
        s.calls[0].text()
        await call.over()


async def test_an_answer_whose_call_ends_while_a_person_is_asked_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took: list[bool] = []
    s = asking("elicitation/create", took)
    async with bench(tmp_path, monkeypatch, s, text=QUIET, trust=TRUSTED) as b:
        client = await b.client(capabilities=ALL)
        call = client.call("read")
        request = await call.asked()
        b.app.conversations.raise_(client.session.client.key, PRIVATE | UNTRUSTED, Cause("r", "x", "y"))
        client.reply(request, {"action": "accept", "content": {"secret": 1}})
        await b.pending()
        s.calls[0].text()
        assert await call.said() == "done"
        assert [row["state"] for row in await b.op("approvals", all=True)] == ["withdrawn"]
        await settle()
        assert "secret" not in str(s.responses) and not b.app.gateway.server_requests.answering

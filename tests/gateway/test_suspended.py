"""A legacy server that asks inside a call of a modern client: the call is held, answered once, and never sent again."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.gateway import suspended
from earnest.protocol.envelope import Message
from gateway.harness import Arrived, Call, Json, ScriptedClient, ScriptedServer, bench, reads, settle, until

ALL: Json = {"sampling": {}, "elicitation": {"form": {}}, "roots": {}}
QUIET = '[labels."s/read"]\nreads_private = false\nsees_untrusted = false\n'
YES: Json = {"action": "accept", "content": {"name": "Ada"}}


class Asker:
    """A server whose calls ask; what it got is in `got`, by the id of the question."""

    def __init__(self, *questions: tuple[str, Json]) -> None:
        self.server = ScriptedServer("s", [reads("read")])
        self.server.capabilities = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}
        self.took: list[bool] = []
        self._questions = questions
        self.server.on_call = self.on_call

    def on_call(self, arrived: Arrived) -> None:
        for number, (method, params) in enumerate(self._questions):
            self.ask(arrived, f"q-{number}", method, params)

    def ask(self, arrived: Arrived, id: str, method: str, params: Json) -> None:
        raw = msgspec.json.encode(params)
        self.took.append(arrived.handler.request(Message("request", json.dumps(id).encode(), method, raw)))

    @property
    def got(self) -> Json:
        return {json.loads(id): json.loads(reply.result or reply.error) for id, reply in self.server.responses}


Rig = Callable[..., Any]


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    opened: list[Any] = []

    async def make(*questions: tuple[str, Json], text: str = QUIET, capabilities: Json = ALL) -> Any:
        asker = Asker(*questions)
        context = bench(tmp_path, monkeypatch, asker.server, text=text, trust={"s": "trusted"})
        b = await context.__aenter__()
        opened.append(context)
        return asker, b, await b.client(modern=True, capabilities=capabilities)

    yield make
    for context in opened:
        await context.__aexit__(None, None, None)


def again(client: ScriptedClient, result: Json, answers: Json, name: str = "read", **more: Any) -> Call:
    return client.call(name, {}, requestState=result["requestState"], inputResponses=answers, **more)


FREE = '[[policy.rule]]\nname = "all"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'
ELICIT = ("elicitation/create", {"message": "Who?", "requestedSchema": {"type": "object"}})
ROOTS = ("roots/list", {})


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("elicitation/create", YES),
        ("sampling/createMessage", {"role": "assistant", "model": "m"}),
        ("roots/list", {"roots": []}),
    ],
)
async def test_a_question_becomes_the_result_and_its_answer_goes_on_with_the_one_call(
    start: Rig, method: str, answer: Json
) -> None:
    asker, b, client = await start((method, {"q": 1, "task": {}, "_meta": {"progressToken": 1, "k": 2}}))
    call = client.call("read", {})
    result = await call.result()
    assert asker.took == [True] and call.sent == []
    assert result["resultType"] == "input_required"
    (key,) = result["inputRequests"]
    assert result["inputRequests"][key] == {"method": method, "params": {"q": 1, "_meta": {"k": 2}}}
    retry = again(client, result, {key: answer, "other": {"x": 1}})
    await until(lambda: asker.got)
    assert asker.got == {"q-0": answer} and retry.answer is None
    asker.server.calls[0].text("finished")
    final = await retry.result()
    assert final["content"][0]["text"] == "finished" and final["resultType"] == "complete"
    assert len(asker.server.calls) == 1
    await settle()
    assert b.decisions() == ["allow", "allow"] and sorted(b.outcomes()) == ["ok", "ok"]
    hello = asker.server.links[0].client
    assert json.loads(hello.capabilities_in(False)) == ALL, "the client's own capabilities travel"


async def test_questions_of_one_moment_are_one_round_and_unanswered_ones_are_asked_again(start: Rig) -> None:
    asker, _, client = await start(ELICIT, ROOTS)
    first = await client.call("read", {}).result()
    assert [one["method"] for one in first["inputRequests"].values()] == ["elicitation/create", "roots/list"]
    one, two = first["inputRequests"]
    second = await again(client, first, {two: {"roots": []}}).result()
    assert list(second["inputRequests"]) == [one] and second["requestState"] != first["requestState"]
    third = again(client, second, {one: {"action": "decline"}})
    await until(lambda: len(asker.got) == 2)
    assert asker.got == {"q-0": {"action": "decline"}, "q-1": {"roots": []}}
    asker.ask(asker.server.calls[0], "q-9", *ROOTS)
    fourth = again(client, await third.result(), {"q3": {"roots": []}})
    await until(lambda: len(asker.got) == 3)
    asker.server.calls[0].text("finished")
    assert await fourth.said() == "finished" and len(asker.server.calls) == 1


async def test_a_state_is_for_its_caller_its_conversation_and_its_call_alone(start: Rig) -> None:
    asker, b, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    stranger = await b.client(modern=True, capabilities=ALL, process="2")
    narrower = await b.client(modern=True, capabilities={"elicitation": {}})
    tries = [
        again(stranger, result, {"q1": YES}),
        again(narrower, result, {"q1": YES}),
        again(client, result, {"q1": YES}, meta={"dev.earnest/conversation": "h"}),
        client.call("read", {"a": 1}, requestState=result["requestState"], inputResponses={"q1": YES}),
        client.call("other", {}, requestState=result["requestState"], inputResponses={"q1": YES}),
    ]
    for call in tries:
        answer = await call.over()
        assert answer["error"]["code"] == -32602 and "does not belong" in answer["error"]["message"]
    assert asker.got == {} and len(asker.server.calls) == 1
    retry = again(client, result, {"q1": YES})
    twice = await again(client, result, {"q1": YES}).said()
    assert "used already" in twice
    await until(lambda: asker.got)
    asker.server.calls[0].text()
    assert await retry.said() == "done" and len(asker.server.calls) == 1
    late = await again(client, result, {"q1": YES}).result()
    assert late["isError"] and "not sent again" in late["content"][0]["text"]
    assert len(asker.server.calls) == 1


async def test_a_client_that_does_not_come_back_ends_the_call_and_its_state_says_so(start: Rig) -> None:
    asker, b, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    b.clock.advance(300)
    b.app.gateway._tick()
    assert asker.server.calls[0].cancelled is None, "a person may take longer than a call"
    b.clock.advance(301)
    b.app.gateway._tick()
    assert "did not come back" in (asker.server.calls[0].cancelled or "")
    assert b.outcomes() == ["cancelled"] and not b.app.gateway.relays
    said = await again(client, result, {"q1": YES}).result()
    assert said["isError"] and len(asker.server.calls) == 1


async def test_what_the_server_said_while_the_client_was_away_is_there_when_it_comes_back(start: Rig) -> None:
    asker, _, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    asker.server.calls[0].text("went on without")
    assert await again(client, result, {"q1": YES}).said() == "went on without"
    assert asker.got == {} and len(asker.server.calls) == 1


async def test_a_result_that_is_too_large_to_be_kept_is_told_to_be(start: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended, "KEPT_BYTES", 200)
    asker, b, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    asker.server.calls[0].text("x" * 300)
    b.app.gateway._tick()
    said = await again(client, result, {"q1": YES}).result()
    assert said["isError"] and "too large" in said["content"][0]["text"] and len(asker.server.calls) == 1


async def test_a_lost_server_is_told_to_the_client_that_comes_back(start: Rig) -> None:
    asker, _, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    asker.server.links[0].lose()
    said = await again(client, result, {"q1": YES}).said()
    assert "may or may not have taken effect" in said and len(asker.server.calls) == 1


async def test_a_state_from_before_a_restart_sends_nothing(start: Rig) -> None:
    asker, b, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    await b.again()
    client = await b.client(modern=True, capabilities=ALL)
    said = await again(client, result, {"q1": YES}).result()
    assert said["isError"] and "not sent again" in said["content"][0]["text"] and len(asker.server.calls) == 1


@pytest.mark.parametrize("state", ["made up", "ey..x", 7])
async def test_a_state_that_nobody_gave_is_refused_and_nothing_is_sent(start: Rig, state: Any) -> None:
    asker, _, client = await start()
    answer = await client.call("read", {}, inputResponses={"q1": YES}, requestState=state).over()
    assert answer["error"]["code"] == -32602 and "not sent" in answer["error"]["message"]
    assert asker.server.calls == []


async def test_a_retry_that_lost_its_state_is_asked_again_and_sends_nothing(start: Rig) -> None:
    asker, _, client = await start(ELICIT)
    first = await client.call("read", {}).result()
    second = await client.call("read", {}, inputResponses={"q1": YES}).result()
    assert second["inputRequests"] == first["inputRequests"] and second["requestState"] != first["requestState"]
    assert asker.got == {} and len(asker.server.calls) == 1
    retry = again(client, second, {"q1": YES})
    await until(lambda: asker.got)
    asker.server.calls[0].text()
    assert await retry.said() == "done"


async def test_answers_that_nobody_asked_for_are_left_out(start: Rig) -> None:
    asker, b, client = await start()
    call = client.call("read", {}, inputResponses={"q1": YES})
    (await asker.server.wait(1)).text()
    assert await call.said() == "done" and "inputResponses" not in asker.server.calls[0].members
    assert b.decisions() == ["allow"]


async def test_cancelling_the_retry_cancels_the_call(start: Rig) -> None:
    asker, b, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    retry = again(client, result, {"q1": {"action": "cancel"}})
    client.cancel(retry.id)
    await until(lambda: asker.server.calls[0].cancelled is not None)
    assert retry.abandoned and not b.app.gateway.relays


async def test_no_more_calls_wait_than_the_bound_says(start: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended, "MOST", 2)
    asker, b, client = await start(ELICIT)
    for _ in range(2):
        await client.call("read", {}).result()
    third = client.call("read", {})
    await until(lambda: len(asker.took) == 3)
    assert asker.took == [True, True, False] and third.answer is None, "the question is declined, the call goes on"
    client.leave()
    assert [call.cancelled is not None for call in asker.server.calls] == [True, True, True]
    b.app.gateway._tick()
    assert not b.app.gateway.suspended._held and not b.app.gateway.suspended._by_call


@pytest.mark.parametrize(
    ("capabilities", "question"),
    [
        ({}, ELICIT),
        ({"elicitation": {"form": {}}}, ("elicitation/create", {"mode": "url", "url": "https://x", "message": "m"})),
        ({"sampling": {}}, ("sampling/createMessage", {"messages": [], "maxTokens": 1, "tools": []})),
        ({"roots": {}}, ("tools/call", {})),
    ],
)
async def test_a_question_the_client_did_not_declare_is_declined(
    start: Rig, capabilities: Json, question: tuple[str, Json]
) -> None:
    asker, _, client = await start(question, capabilities=capabilities)
    call = client.call("read", {})
    await until(lambda: asker.took)
    assert asker.took == [False]
    asker.server.calls[0].text()
    assert await call.said() == "done"


async def test_a_question_inside_what_cannot_be_answered_so_is_declined(start: Rig) -> None:
    asker, _, client = await start(ELICIT)
    ref = {"type": "ref/prompt", "name": "p"}
    client.request("completion/complete", {"ref": ref, "argument": {"name": "a", "value": "b"}})
    await until(lambda: asker.took)
    assert asker.took == [False]


async def test_an_answer_is_judged_before_the_server_gets_it(start: Rig) -> None:
    asker, b, client = await start(ELICIT)
    result = await client.call("read", {}).result()
    b.app.conversations.raise_(client.session.client.key, PRIVATE | UNTRUSTED, Cause("r", "x", "y"))
    retry = again(client, result, {"q1": {"action": "accept", "content": {"secret": 1}}})
    (asked,) = await b.pending()
    assert "secret" in asked["arguments"] and asker.got == {}
    await b.approve("no")
    await until(lambda: asker.got)
    assert "code" in asker.got["q-0"] and "secret" not in str(asker.got)
    asker.server.calls[0].text()
    assert await retry.said() == "done"


async def test_a_read_and_a_prompt_are_held_like_a_call(start: Rig) -> None:
    asker, _, client = await start(ELICIT, text=FREE)
    for method, params in (("resources/read", {"uri": "file:///a"}), ("prompts/get", {"name": "p"})):
        asker.server.responses.clear()
        result = await client.request(method, params).result()
        assert result["resultType"] == "input_required"
        key = next(iter(result["inputRequests"]))
        more = {"requestState": result["requestState"], "inputResponses": {key: YES}}
        retry = client.request(method, {**params, **more})
        await until(lambda: asker.got)
        asker.server.calls[-1].answer({"contents": [], "messages": []})
        assert (await retry.result())["resultType"] == "complete"


async def test_progress_of_a_held_call_comes_under_the_retrys_token(start: Rig) -> None:
    asker, _, client = await start(ELICIT)
    result = await client.call("read", {}, meta={"progressToken": "one"}).result()
    arrived = asker.server.calls[0]
    step = b'{"progressToken":%d,"progress":1}' % arrived.id
    arrived.handler.message(Message("notification", b"", "notifications/progress", step))
    retry = again(client, result, {"q1": YES}, meta={"progressToken": "two"})
    arrived.handler.message(Message("notification", b"", "notifications/progress", step.replace(b"1}", b"2}")))
    arrived.text()
    await retry.over()
    assert [(m["params"]["progressToken"], m["params"]["progress"]) for m in retry.sent] == [("two", 2)]

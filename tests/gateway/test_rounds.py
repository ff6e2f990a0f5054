"""A modern server that needs input, for a legacy client: asked inside its call, by the words of its own era."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.live import Start, reader, text_of

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ASKS = {
    "who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": NAME}},
    "what": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}},
}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "blue"}, "model": "m"}
ABLE = {"elicitation": {}, "sampling": {}}
ALL = '[[policy.rule]]\nname = "all"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'
NO_ANSWERS = '[[policy.rule]]\nname = "no"\nwhen = "tool.name.startsWith(\'answer to\')"\nthen = "deny"\n'


def needs(asks: dict[str, Any], state: str = "st-1", then: Any = None) -> dict[str, Any]:
    first = {"resultType": "input_required", "inputRequests": asks, **({"requestState": state} if state else {})}
    steps = {"retry": {"first": {"result": first}, "then": then or {"echo": 1}}}
    return {"era": "modern", "tools": [reader("ask")], "calls": {"ask": steps}}


@pytest.fixture
async def rig(gateway: Start, scripted: Callable[..., Any]) -> Callable[..., Any]:
    async def make(script: dict[str, Any], capabilities: dict[str, Any] = ABLE, more: str = ALL) -> Any:
        command, record = scripted(script)
        live = await gateway({"one": {"command": command}}, preset="balanced", more=more)
        client = await live.opened("/s/one/mcp", "legacy", capabilities=capabilities)
        client.answers["elicitation/create"] = {"action": "accept", "content": {"name": "Ada"}}
        client.answers["sampling/createMessage"] = SAMPLED
        return client, record, live

    return make


async def test_each_question_is_asked_in_the_clients_era_and_the_call_goes_on_with_the_answers(rig):
    client, record, _ = await rig(needs(ASKS))
    answer = await client.call("ask", {"a": 1})
    assert "isError" not in answer["result"] or not answer["result"]["isError"]
    first, second = [message["params"] for message in record.messages("tools/call")]
    assert "inputResponses" not in first and first["_meta"]["io.modelcontextprotocol/clientCapabilities"] == ABLE
    assert second["inputResponses"] == {"who": {"action": "accept", "content": {"name": "Ada"}}, "what": SAMPLED}
    assert (second["requestState"], second["arguments"]) == ("st-1", {"a": 1})
    assert "resultType" not in answer["result"]


async def test_a_no_of_the_client_goes_to_the_server_as_one(rig):
    client, record, _ = await rig(needs({"who": ASKS["who"]}, state=""))
    client.answers["elicitation/create"] = {"action": "decline"}
    await client.call("ask")
    second = record.messages("tools/call")[1]["params"]
    assert second["inputResponses"] == {"who": {"action": "decline"}} and "requestState" not in second


async def test_a_client_that_cannot_be_asked_all_of_it_is_told_that_the_call_was_not_finished(rig):
    client, record, _ = await rig(needs(ASKS), capabilities={"elicitation": {}})
    answer = await client.call("ask")
    assert answer["result"]["isError"] and "not finished" in text_of(answer)
    assert len(record.messages("tools/call")) == 1


async def test_an_answer_that_policy_denies_never_reaches_the_server(rig):
    client, record, _ = await rig(needs({"what": ASKS["what"]}), more=NO_ANSWERS + ALL)
    answer = await client.call("ask")
    assert answer["result"]["isError"] and "not allowed" in text_of(answer)
    assert len(record.messages("tools/call")) == 1 and "blue" not in json.dumps(record.texts())


async def test_a_server_that_asks_for_ever_is_not_followed(rig):
    again = {"result": {"resultType": "input_required", "inputRequests": {"who": ASKS["who"]}}}
    client, record, _ = await rig(needs({"who": ASKS["who"]}, then=again))
    answer = await client.call("ask")
    assert answer["result"]["isError"] and len(record.messages("tools/call")) == 9


async def test_the_level_of_a_legacy_client_goes_with_its_calls_and_lines_come_back(rig):
    log = {"notify": {"method": "notifications/message", "params": {"level": "info", "data": "a line"}}}
    script = {"era": "modern", "tools": [reader("say")], "calls": {"say": [log, {"text": "said"}]}}
    script["capabilities"] = {"tools": {}, "logging": {}}
    client, record, _ = await rig(script)
    assert "logging" in client.opened["result"]["capabilities"]
    await client.call("say")
    assert (await client.request("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602
    assert (await client.request("logging/setLevel", {"level": "info"}))["result"] == {}
    await client.call("say")
    metas = [message["params"]["_meta"] for message in record.messages("tools/call")]
    assert [meta.get("io.modelcontextprotocol/logLevel") for meta in metas] == [None, "info"]
    assert (await client.notification("notifications/message"))["params"]["data"] == "a line"


URL = {"method": "elicitation/create", "params": {"mode": "url", "message": "Look", "url": "https://example.org"}}


async def test_a_page_to_open_gets_the_id_that_the_older_era_wants(rig):
    client, record, _ = await rig(needs({"page": URL}), capabilities={"elicitation": {"url": {}}})
    client.answers["elicitation/create"] = {"action": "accept"}
    await client.call("ask")
    (asked,) = client.requests
    assert asked["params"].pop("elicitationId")
    assert asked["params"] == {**URL["params"], "message": "The server one asks: Look"}
    assert record.messages("tools/call")[1]["params"]["inputResponses"] == {"page": {"action": "accept"}}


async def test_a_client_that_opens_no_pages_is_not_asked_to(rig):
    client, record, _ = await rig(needs({"page": URL}), capabilities={"elicitation": {}})
    assert (await client.call("ask"))["result"]["isError"]
    assert client.requests == [] and len(record.messages("tools/call")) == 1

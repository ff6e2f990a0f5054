"""Clients that answer questions by themselves, and yeses that are used for more than they were given for."""

import asyncio
from typing import Any

import pytest

from attacks.rig import Rig, refused, text_of, tool
from earnest.core.errors import EarnestError

SCRIPT = {"tools": [tool("wipe", destructiveHint=True), tool("wipe_all", destructiveHint=True)]}
PERSON = '[clients.desktop]\nasks = "person"\n'
FORMS = {"elicitation": {"form": {}}}


def choices(params: dict[str, Any]) -> list[str]:
    return list(params["requestedSchema"]["properties"]["answer"]["enum"])


def accept(value: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"answer": value}}


AUTOMATIC = {
    "the first choice": lambda params: accept(choices(params)[0]),
    "the last choice": lambda params: accept(choices(params)[-1]),
    "an empty form": {"action": "accept", "content": {}},
    "no form": {"action": "accept"},
    "yes": accept("yes"),
    "a boolean": {"action": "accept", "content": {"answer": True}},
    "a list of all": lambda params: {"action": "accept", "content": {"answer": choices(params)}},
    "an error": {"code": -32000, "message": "no user here"},
    "a cancel": {"action": "cancel"},
}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_no_answer_that_a_program_gives_runs_the_call_or_counts_as_no(rig: Rig, era: str):
    record = rig.server("notes", SCRIPT)
    rig.add(PERSON)
    rig.asking = "hold_s = 0.2\nfloor_s = 1.0"
    rig.add("")
    client = await rig.stdio("notes", client="desktop", era=era, capabilities=FORMS)
    for number, (name, answer) in enumerate(AUTOMATIC.items()):
        client.answers["elicitation/create"] = answer if callable(answer) or "code" in answer else (lambda params, a=answer: a)
        if era == "modern" and isinstance(answer, dict) and "code" in answer:
            continue
        arguments = {"n": number}
        message = await (client.call_asking("wipe", arguments) if era == "modern" else client.call("wipe", arguments))
        assert refused(message), name
        assert "was asked said no" not in text_of(message), name
    assert record.calls() == []
    assert len(client.requests) >= len(AUTOMATIC) - 1
    assert {ask["state"] for ask in await rig.person("approvals")} == {"pending"}
    rig.verify()


@pytest.mark.parametrize("value", ["once-00000000", "once-", "ONCE", "no"])
async def test_after_a_while_a_wrong_echo_is_still_no_yes(rig: Rig, value: str):
    record = rig.server("notes", SCRIPT)
    rig.add(PERSON)
    rig.asking = "hold_s = 0.2\nfloor_s = 0.05"
    rig.add("")
    client = await rig.stdio("notes", client="desktop", era="modern", capabilities=FORMS)
    first = (await client.call("wipe", {}))["result"]
    await asyncio.sleep(0.1)
    key = next(iter(first["inputRequests"]))
    params = {"name": "wipe", "arguments": {}, "requestState": first["requestState"], "inputResponses": {key: accept(value)}}
    assert refused(await client.request("tools/call", params))
    assert record.calls() == []


async def test_a_client_the_operator_did_not_mark_is_not_asked_in_band(rig: Rig):
    record = rig.server("notes", SCRIPT)
    rig.asking = "hold_s = 0.2\nfloor_s = 0.0"
    rig.add("")
    client = await rig.stdio("notes", client="other", capabilities=FORMS)
    client.answers["elicitation/create"] = AUTOMATIC["the last choice"]
    assert refused(await client.call("wipe"))
    assert client.requests == [] and record.calls() == []


async def test_a_sealed_state_of_another_call_opens_nothing(rig: Rig):
    record = rig.server("notes", SCRIPT)
    rig.add(PERSON)
    rig.asking = "hold_s = 0.2\nfloor_s = 0.0"
    rig.add("")
    client = await rig.stdio("notes", client="desktop", era="modern", capabilities=FORMS)
    first = (await client.call("wipe", {"n": 1}))["result"]
    key, asked = next(iter(first["inputRequests"].items()))
    yes = choices(asked["params"])[-1]
    answered = {"requestState": first["requestState"], "inputResponses": {key: accept(yes)}}
    other = await rig.stdio("notes", client="desktop", era="modern", capabilities=FORMS)
    tries = [
        ({"name": "wipe", "arguments": {"n": 2}, **answered}, client),
        ({"name": "wipe_all", "arguments": {"n": 1}, **answered}, client),
        ({"name": "wipe", "arguments": {"n": 1}, **answered, "requestState": first["requestState"][:-4] + "AAAA"}, client),
        ({"name": "wipe", "arguments": {"n": 1}, "inputResponses": answered["inputResponses"]}, client),
        ({"name": "wipe", "arguments": {"n": 3}, **answered}, other),
    ]
    for params, who in tries:
        result = (await who.request("tools/call", params))["result"]
        assert result.get("isError") or result.get("resultType") == "input_required", params
    assert record.calls() == []
    # The right call runs, once; replayed it asks anew.
    params = {"name": "wipe", "arguments": {"n": 1}, **answered}
    assert not refused(await client.request("tools/call", params))
    again = (await client.request("tools/call", params))["result"]
    assert again.get("isError") or again.get("resultType") == "input_required"
    assert len(record.calls()) == 1
    assert all(first["requestState"] not in text for text in record.texts())


async def test_one_yes_runs_one_call_however_many_wait_for_it(rig: Rig):
    record = rig.server("notes", SCRIPT)
    rig.asking = "hold_s = 3"
    rig.add("")
    clients = [await rig.stdio("notes") for _ in range(3)]
    calls = [asyncio.ensure_future(client.call("wipe", {"same": True})) for client in clients for _ in range(2)]
    (ask,) = await rig.asked()
    await asyncio.sleep(0.1)
    await rig.person("approve", id=ask["id"], answer="once")
    answers = await asyncio.gather(*calls)
    assert sum(not refused(answer) for answer in answers) == 1
    assert len(record.calls()) == 1
    rig.verify()


async def test_an_approval_fits_neither_other_arguments_nor_another_tool_nor_new_labels(rig: Rig):
    record = rig.server("notes", SCRIPT)
    rig.asking = "hold_s = 0.2"
    rig.add("")
    client = await rig.stdio("notes")
    assert "waiting" in text_of(await client.call("wipe", {"n": 1}))
    (ask,) = await rig.asked()
    await rig.person("approve", id=ask["id"], answer="once")
    for name, arguments in [("wipe", {"n": 2}), ("wipe_all", {"n": 1}), ("wipe", {"n": 1.0}), ("wipe", {"N": 1})]:
        assert refused(await client.call(name, arguments)), (name, arguments)
    assert record.calls() == []
    assert not refused(await client.call("wipe", {"n": 1}))
    assert refused(await client.call("wipe", {"n": 1}))
    assert len(record.calls()) == 1


async def test_the_prompt_hides_nothing_of_the_arguments(rig: Rig):
    rig.server("notes", SCRIPT)
    rig.asking = "hold_s = 0.2"
    rig.add("")
    client = await rig.stdio("notes")
    long = "x" * 5000 + "END"
    await client.call("wipe", {"path": "a\u202etxt.exe\x1b[2K", "long": long})
    (ask,) = await rig.asked()
    assert "\u202e" not in ask["text"] and "\x1b" not in ask["text"]
    assert "END" in ask["text"] or "END" in ask["arguments"]


async def test_a_withdrawn_call_cannot_be_approved_any_more(rig: Rig):
    record = rig.server("notes", SCRIPT)
    rig.asking = "hold_s = 5"
    rig.add("")
    client = await rig.stdio("notes")
    id = await client.begin("tools/call", {"name": "wipe", "arguments": {}})
    (ask,) = await rig.asked()
    await client.cancel(id)
    while (await rig.person("approvals")) != []:  # noqa: ASYNC110 (another process knows)
        await asyncio.sleep(0.02)
    with pytest.raises(EarnestError):
        await rig.person("approve", id=ask["id"], answer="once")
    assert record.calls() == []
    await rig.settled(("wipe", "ask", "cancelled"))

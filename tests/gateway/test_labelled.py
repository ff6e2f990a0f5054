"""Completion, and what comes back after sampling or elicitation: passed in every pair of eras, and labelled like any result."""

import json
from pathlib import Path

import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED
from earnest.protocol.envelope import Message
from gateway.harness import Arrived, Bench, Call, Json, ScriptedClient, ScriptedServer, bench, reads, until

TRUSTED = {"s": "trusted"}
ALL = '[[policy.rule]]\nname = "all"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'
QUIET = "".join(f'[labels."s/{n}"]\nreads_private = false\nsees_untrusted = false\n' for n in ("read", "completion/complete"))
LEAK: Json = {"ifc": {"confidentiality": "private", "integrity": "untrusted"}}
ABLE: Json = {"sampling": {}, "elicitation": {"form": {}}}
GIVEN: dict[str, Json] = {
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
}

pytestmark = pytest.mark.parametrize(("modern", "server_modern"), [(c, s) for c in (False, True) for s in (False, True)])


def server(modern: bool) -> ScriptedServer:
    made = ScriptedServer("s", [reads("read")], modern=modern)
    made.capabilities = {"tools": {}, "prompts": {}, "completions": {}}
    return made


def labels(b: Bench, client: ScriptedClient) -> int:
    return b.app.conversations.labels(client.session.client.key)


async def test_a_completion_passes_and_is_labelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool, server_modern: bool
) -> None:
    s = server(server_modern)
    completion = {"values": ["word"], "total": 1}
    s.on_call = lambda arrived: arrived.answer({"completion": completion, "_meta": LEAK, "resultType": "complete"})
    async with bench(tmp_path, monkeypatch, s, text=QUIET + ALL, trust=TRUSTED) as b:
        client = await b.client(modern=modern)
        asked = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "who", "value": "w"}}
        assert labels(b, client) == 0
        result = await client.request("completion/complete", asked).result()
        assert result["completion"] == completion and labels(b, client) == PRIVATE | UNTRUSTED
        assert {name: s.calls[0].members[name] for name in asked} == asked


@pytest.mark.parametrize("method", list(GIVEN))
async def test_what_comes_after_a_question_is_labelled_and_the_answer_arrives_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool, server_modern: bool, method: str
) -> None:
    s = server(server_modern)

    def asks(arrived: Arrived) -> None:
        if not server_modern:
            assert arrived.handler.request(Message("request", b'"q"', method, b'{"m":1}'))
        elif "inputResponses" in arrived.members:
            arrived.text("x", _meta=LEAK)
        else:
            arrived.answer({"resultType": "input_required", "inputRequests": {"q": {"method": method, "params": {"m": 1}}}})

    s.on_call = asks
    async with bench(tmp_path, monkeypatch, s, text=QUIET + ALL, trust=TRUSTED) as b:
        client = await b.client(modern=modern, capabilities=ABLE)
        call = await answered(client, client.call("read", {}), method)
        if not server_modern:
            await until(lambda: s.responses)
            assert json.loads(s.responses[0][1].result) == GIVEN[method]
            s.calls[0].text("x", _meta=LEAK)
        assert await call.said() == "x"
        assert labels(b, client) == PRIVATE | UNTRUSTED
        if server_modern:
            assert s.calls[1].members["inputResponses"] == {"q": GIVEN[method]}
        words = [r.method for r in b.receipts.records.values() if hasattr(r, "method")]
        assert words == (["tools/call", method, "tools/call"] if modern and server_modern else ["tools/call", method])


async def answered(client: ScriptedClient, call: Call, method: str) -> Call:
    """Answer what is asked, in the client's words; the request that then gets the result."""
    if not client.modern:
        request = await call.asked()
        assert (request["method"], request["params"]) == (method, {"m": 1})
        client.reply(request, GIVEN[method])
        return call
    result = await call.result()
    ((key, request),) = result["inputRequests"].items()
    assert (request["method"], request["params"]) == (method, {"m": 1})
    state = {"requestState": result["requestState"]} if "requestState" in result else {}
    return client.call("read", {}, inputResponses={key: GIVEN[method]}, **state)

"""Asking through the client, in both eras: a yes echoes this question's own value; anything less was nobody's answer."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from gateway.harness import Arrived, Bench, Call, Json, ScriptedClient, ScriptedServer, bench, reads, settle, tool

PERSON = '[clients.c]\nasks = "person"\n'
_ANSWERS_MAY = '[[policy.rule]]\nname = "answers"\nwhen = "tool.name.startsWith(\'answer to\')"\n'
ANSWERS = PERSON + _ANSWERS_MAY + 'then = "allow"\nflow = "accept"\n'
"""What answers a server's own question may go; whether the call may is what these tests are about."""
QUICK = PERSON + "[asking]\nhold_s = 0.05\n"
KEY = "dev.earnest/approval"
FORM: Json = {"elicitation": {"form": {}}}


def server(modern: bool = False) -> ScriptedServer:
    return ScriptedServer(
        "s", [tool("delete", destructive=True), tool("other", destructive=True), reads("read")], modern=modern
    )


def values(params: Json) -> tuple[str, str]:
    """The no and the yes that a form offers."""
    no, yes = params["requestedSchema"]["properties"]["answer"]["enum"]
    assert no.startswith("no-") and yes.startswith("once-")
    return no, yes


async def question(call: Call, modern: bool) -> Json:
    """The form's params."""
    if not modern:
        request = await call.asked()
        assert request["method"] == "elicitation/create"
        found: Json = request["params"]
        return found
    result = await call.result()
    assert result["resultType"] == "input_required"
    asked: Json = result["inputRequests"][KEY]["params"]
    return asked


async def respond(
    b: Bench, client: ScriptedClient, call: Call, answer: Any, after_s: float = 4.0, arguments: object = None
) -> Call:
    """Answer a form after some time; the call that then goes on."""
    b.clock.advance(after_s)
    if not client.modern:
        client.reply(await call.asked(), answer)
        return call
    result = await call.result()
    return client.call("delete", arguments or {"path": "a"}, requestState=result["requestState"], inputResponses={KEY: answer})


@pytest.mark.parametrize("modern", [False, True])
async def test_a_person_who_chose_yes_runs_the_call_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool) -> None:
    s = server(modern)
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(modern=modern, capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        _, yes = values(await question(call, modern))
        going = await respond(b, client, call, {"action": "accept", "content": {"answer": yes}})
        assert await going.said() == "done"
        assert len(s.calls) == 1
        assert "requestState" not in s.calls[0].members and "inputResponses" not in s.calls[0].members
        rows = await b.op("approvals", all=True)
        assert [(row["state"], row["channel"]) for row in rows] == [("used", "in-band")]


async def test_an_answer_that_is_sent_again_is_told_that_its_approval_was_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server(modern=True)
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(modern=True, capabilities=FORM)
        for _ in range(2):  # the first call moves the labels, and with them what an approval fits
            call = client.call("delete", {"path": "a"})
            _, yes = values(await question(call, True))
            answer = {"action": "accept", "content": {"answer": yes}}
            assert await (await respond(b, client, call, answer)).said() == "done"
        said = await (await respond(b, client, call, answer)).said()
        assert "used already" in said and "in time" not in said
        assert len(s.calls) == 2


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("content", [{}, None, {"answer": None}, {"answer": ""}, {"answer": True}, {"answer": "yes"}, "absent"])
async def test_an_accept_without_this_questions_own_value_is_nobodys_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool, content: Any
) -> None:
    s = server(modern)
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client(modern=modern, capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        await question(call, modern)
        answer = {"action": "accept"} if content == "absent" else {"action": "accept", "content": content}
        text = await (await respond(b, client, call, answer)).said()
        assert "Nobody has said no" in text and not s.calls
        await b.approve()
        assert await client.call("delete", {"path": "a"}).said() == "done"
        assert len(s.calls) == 1


@pytest.mark.parametrize("modern", [False, True])
async def test_the_value_of_an_earlier_question_is_nobodys_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool
) -> None:
    s = server(modern)
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client(modern=modern, capabilities=FORM)
        first = client.call("other", {"path": "a"})
        _, earlier = values(await question(first, modern))
        call = client.call("delete", {"path": "a"})
        _, yes = values(await question(call, modern))
        assert earlier != yes
        text = await (await respond(b, client, call, {"action": "accept", "content": {"answer": earlier}})).said()
        assert "waiting" in text and not s.calls


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("choose", ["decline", "no"])
async def test_a_person_who_declined_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool, choose: str
) -> None:
    s = server(modern)
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(modern=modern, capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        no, _ = values(await question(call, modern))
        answer = {"action": "decline"} if choose == "decline" else {"action": "accept", "content": {"answer": no}}
        assert "said no" in await (await respond(b, client, call, answer)).said()
        (row,) = await b.op("approvals", all=True)
        with pytest.raises(EarnestError, match="denied"):
            await b.op("approve", id=row["id"], answer="once")
        assert not s.calls


@pytest.mark.parametrize("modern", [False, True])
async def test_a_decline_faster_than_a_person_is_unavailable_and_a_yes_elsewhere_runs_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool
) -> None:
    s = server(modern)
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client(modern=modern, capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        await question(call, modern)
        text = await (await respond(b, client, call, {"action": "decline"}, after_s=0.005)).said()
        assert "waiting for a person" in text and "Nobody has said no" in text and "declined" not in text
        await b.approve()
        assert await client.call("delete", {"path": "a"}).said() == "done"
        assert len(s.calls) == 1


async def test_a_client_that_never_answers_the_form_is_told_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client(capabilities=FORM)
        assert "waiting" in await client.call("delete", {"path": "a"}).said()
        await b.approve()
        assert await client.call("delete", {"path": "a"}).said() == "done"
        assert len(s.calls) == 1


async def test_a_form_answered_after_the_call_was_told_to_wait_serves_the_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client(capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        _, yes = values(await question(call, False))
        request = await call.asked()
        assert "waiting" in await call.said()
        b.clock.advance(50)
        client.reply(request, {"action": "accept", "content": {"answer": yes}})
        assert await client.call("delete", {"path": "a"}).said() == "done"
        assert len(s.calls) == 1


async def test_a_retry_without_an_answer_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server(modern=True)
    async with bench(tmp_path, monkeypatch, s, text=QUICK) as b:
        client = await b.client(modern=True, capabilities=FORM)
        result = await client.call("delete", {"path": "a"}).result()
        b.clock.advance(4)
        text = await client.call("delete", {"path": "a"}, requestState=result["requestState"]).said()
        assert "waiting" in text and "Nobody has said no" in text
        await b.approve()
        assert await client.call("delete", {"path": "a"}, requestState=result["requestState"]).said() == "done"
        assert len(s.calls) == 1 and "requestState" not in s.calls[0].members


async def test_a_yes_at_a_terminal_while_the_form_is_open_runs_the_call_and_takes_the_form_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        request = await call.asked()
        await b.approve()
        assert await call.said() == "done"
        gone = [m["params"]["requestId"] for m in call.sent if m.get("method") == "notifications/cancelled"]
        assert gone == [request["id"]]
        client.reply(request, {"action": "accept", "content": {"answer": values(request["params"])[1]}})
        await settle()
        assert len(s.calls) == 1


async def test_a_client_that_nobody_marked_is_never_asked_in_band(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    async with bench(tmp_path, monkeypatch, s, text="[asking]\nhold_s = 0.05\n") as b:
        call = (await b.client(capabilities=FORM)).call("delete", {"path": "a"})
        assert "waiting" in await call.said()
        assert call.sent == []


async def test_a_state_fits_no_other_arguments_caller_conversation_or_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server(modern=True)
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(modern=True, capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        _, yes = values(await question(call, True))
        answer = {"action": "accept", "content": {"answer": yes}}
        state = (await call.result())["requestState"]
        b.clock.advance(4)

        async def asks_again(who: ScriptedClient, name: str = "delete", path: str = "a", sealed: object = state) -> None:
            again = who.call(name, {"path": path}, requestState=sealed, inputResponses={KEY: answer})
            result = await again.result()
            assert result["resultType"] == "input_required", result
            assert not s.calls

        await asks_again(client, path="b")
        await asks_again(client, name="other")
        await asks_again(await b.client(modern=True, capabilities=FORM, process="2"))
        head, *rest = state.split(".")
        forged = ".".join([head, *rest[:-1], base64.urlsafe_b64encode(b"\0" * 16).decode().rstrip("=")])
        await asks_again(client, sealed=forged)
        b.clock.advance(901)
        await asks_again(client)


@pytest.mark.parametrize("state", [7, None, {"a": 1}, "", "x.y.z", "é", "a" * 5000, "....", "e30.e30.e30.e30.e30"])
async def test_a_state_that_is_none_is_no_answer_and_hurts_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Any
) -> None:
    s = server(modern=True)
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(modern=True, capabilities=FORM)
        call = client.call("delete", {"path": "a"}, requestState=state)
        assert (await call.result())["resultType"] == "input_required"
        assert not s.calls


async def test_what_answers_earnests_question_never_reaches_a_server_that_is_allowed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server(modern=True)
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(modern=True, capabilities=FORM)
        call = client.call("delete", {"path": "a"})
        _, yes = values(await question(call, True))
        await b.op("label", server="s", tool="delete", values={"read_only": True})
        going = await respond(b, client, call, {"action": "accept", "content": {"answer": yes}})
        assert await going.said() == "done"
        sent = s.calls[0].members
        assert "requestState" not in sent and "inputResponses" not in sent


NEEDS: Json = {
    "resultType": "input_required",
    "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {}}}},
    "requestState": "upstream-1",
}


def asks_once(arrived: Arrived) -> None:
    """A server that asks for input the first time, and is done when its own state and the answer came back."""
    if arrived.members.get("requestState") == "upstream-1" and "who" in arrived.members.get("inputResponses", {}):
        arrived.text("finished")
    else:
        arrived.answer(NEEDS)


async def approved_to_input(b: Bench, client: ScriptedClient) -> Json:
    """A call that a person approved and whose server asks for input: that result."""
    call = client.call("delete", {"path": "a"})
    _, yes = values(await question(call, True))
    going = await respond(b, client, call, {"action": "accept", "content": {"answer": yes}})
    result = await going.result()
    asked = {"message": "The server s asks: who?", "requestedSchema": {}}
    assert result["inputRequests"] == {"who": {"method": "elicitation/create", "params": asked}}
    assert result["requestState"] != "upstream-1", "the server's state travels inside earnest's"
    return result


ANSWER: Json = {"who": {"action": "accept", "content": {"name": "me"}}}


async def test_an_approved_call_whose_server_asks_for_input_goes_on_without_a_second_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = server(modern=True)
    s.on_call = asks_once
    async with bench(tmp_path, monkeypatch, s, text=ANSWERS) as b:
        client = await b.client(modern=True, capabilities=FORM)
        result = await approved_to_input(b, client)
        b.clock.advance(5)
        again = client.call("delete", {"path": "a"}, requestState=result["requestState"], inputResponses=ANSWER)
        assert await again.said() == "finished"
        assert s.calls[1].members["requestState"] == "upstream-1"
        assert s.calls[1].members["inputResponses"] == ANSWER


async def test_an_approved_call_goes_on_once_from_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server(modern=True)
    s.on_call = asks_once
    async with bench(tmp_path, monkeypatch, s, text=ANSWERS) as b:
        client = await b.client(modern=True, capabilities=FORM)
        result = await approved_to_input(b, client)
        for turn in range(3):
            call = client.call("delete", {"path": "a"}, requestState=result["requestState"], inputResponses=ANSWER)
            kind = (await call.result())["resultType"]
            assert kind == ("complete" if turn == 0 else "input_required")
        assert len(s.calls) == 2


async def test_labels_that_moved_ask_again_and_the_servers_state_and_answers_still_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = ScriptedServer("s", [tool("delete", destructive=True, open_world=False), reads("read")], modern=True)
    leak = {"ifc": {"confidentiality": "private"}}
    s.on_call = lambda a: asks_once(a) if a.members["name"] == "delete" else a.text("mail", _meta=leak)
    quiet = "".join(
        f'[labels."s/{name}"]\n{said}\n'
        for name, said in (
            ("delete", "reads_private = false\nsees_untrusted = false"),
            ("read", "read_only = true\nreads_private = true"),
        )
    )
    async with bench(tmp_path, monkeypatch, s, text=ANSWERS + quiet) as b:
        client = await b.client(modern=True, capabilities=FORM)
        result = await approved_to_input(b, client)
        assert await client.call("read").said() == "mail"
        call = client.call("delete", {"path": "a"}, requestState=result["requestState"], inputResponses=ANSWER)
        _, yes = values(await question(call, True))
        last = await respond(b, client, call, {"action": "accept", "content": {"answer": yes}})
        assert await last.said() == "finished"


async def test_a_state_of_an_approved_call_fits_no_other_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server(modern=True)
    s.on_call = asks_once
    async with bench(tmp_path, monkeypatch, s, text=ANSWERS) as b:
        client = await b.client(modern=True, capabilities=FORM)
        result = await approved_to_input(b, client)
        other = await b.client(modern=True, capabilities=FORM, process="2")
        for who, name, path in ((client, "delete", "b"), (client, "other", "a"), (other, "delete", "a")):
            call = who.call(name, {"path": path}, requestState=result["requestState"], inputResponses=ANSWER)
            assert KEY in (await call.result())["inputRequests"]
        assert len(s.calls) == 1
        b.clock.advance(901)
        late = client.call("delete", {"path": "a"}, requestState=result["requestState"], inputResponses=ANSWER)
        assert KEY in (await late.result())["inputRequests"]


@pytest.mark.parametrize("modern", [False, True])
async def test_the_prompt_shows_what_a_person_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool) -> None:
    listed = {**tool("delete", destructive=True, idempotent=True), "title": "Tidy\u202eup"}
    s = ScriptedServer("s", [listed], modern=modern)
    async with bench(tmp_path, monkeypatch, s, text=PERSON) as b:
        client = await b.client(modern=modern, capabilities=FORM)
        long = "x" * 3000
        call = client.call("delete", {"path": "/a\u0007b", "n": 1, "long": long})
        message = (await question(call, modern))["message"]
        for needed in (
            "Server: s",
            "Tool: delete",
            "Title",
            "read_only",
            "destructive",
            "idempotent",
            "open_world",
            "claims yes",
            "claims nothing",
            "(claimed;",
            "(default;",
            "Asked because",
            "Client: c",
            "n = 1",
            "3002 characters",
            "sha256",
        ):
            assert needed in message, (needed, message)
        assert "\u202e" not in message and "\u0007" not in message
        assert json.dumps(long) not in message


async def test_only_asks_of_preset_and_user_rules_are_left_to_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = server()
    text = '[clients.c]\nask = "host"\n[asking]\nhold_s = 0.05\n'
    text += '[labels."s/delete"]\nreads_private = false\nsees_untrusted = false\n'
    async with bench(tmp_path, monkeypatch, s, text=text) as b:
        client = await b.client()
        assert await client.call("delete", {"path": "a"}).said() == "done", "the preset asks: the host's to ask"
        s.tools[0] = tool("delete", description="changed", destructive=True)
        s.list_changed()
        await settle()
        assert "waiting" in await client.call("delete", {"path": "a"}).said(), "the pin gate asks: earnest's"
        s.tools[0] = tool("delete", destructive=True)
        s.list_changed()
        await settle()
        assert await client.call("delete", {"path": "a"}).said() == "done"
        assert "waiting" not in await client.call("other", {"path": "a"}).said()
        # `other` is a source of everything by default: from here on the confidentiality rule asks.
        assert "waiting" in await client.call("delete", {"path": "a"}).said()

"""A call run over a copy first: what the person is shown, what a yes does, and what happens where it cannot be so."""

import asyncio
import json
import os
import sys

import pytest

from conftest import SERVERS
from earnest.core.errors import EarnestError
from earnest.gateway import previewing
from earnest.sandbox.tiers import tried
from earnest.store import read
from gateway.harness import Person, until
from gateway.live import text_of

COMMAND = [sys.executable, str(SERVERS / "changes.py")]


def wants(tier):
    """Skip where this machine does not give a tier."""
    if not next(one for one in tried() if one.letter == tier).works:
        pytest.skip(f"there is no tier {tier} here")


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "granted"
    found.mkdir()
    (found / "plan.txt").write_text("one\ntwo\n")
    return found


@pytest.fixture
def start(gateway, folder):
    wants("A")  # a copy at its own path needs namespaces

    async def begin(more="", name="g", preset="cautious", **contain):
        server = {"command": COMMAND, "contain": {"write": [str(folder)], **contain}}
        return await gateway({"s": server}, preset, more, name)

    return begin


async def ask(live, count=1):
    """What waits for a person."""
    await until(lambda: len(live.app.approvals.listed()) >= count)
    rows = await live.app.ops["approvals"]({}, Person())
    return rows[-1]


async def say(live, row, answer="once"):
    await live.app.ops["approve"]({"id": row["id"], "answer": answer}, Person())


def calling(client, *acts):
    return asyncio.ensure_future(client.call("do", {"acts": [list(act) for act in acts]}))


def outcomes(live):
    live.app.records.flush()
    found = read.receipts(f"{live.app.ctx.instance}/receipts")
    return [(each.decision, each.outcome) for each in found]


async def test_the_ask_shows_the_change_and_a_yes_does_just_that(start, folder):
    live = await start()
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("write", f"{folder}/plan.txt", "one\nthree\x1b[2J\n"), ("mkdir", f"{folder}/new"))
    row = await ask(live)
    assert (folder / "plan.txt").read_text() == "one\ntwo\n" and not (folder / "new").exists()
    for line in (f"  create folder {folder}/new", f"  change {folder}/plan.txt (8 → 14 bytes)", "      -two",
                 "      +three<U+001B>[2J"):  # fmt: skip
        assert line in row["text"].split("\n"), row["text"]
    assert row["preview"]["real"] and [each["change"] for each in row["preview"]["changes"]] == ["created", "changed"]
    assert not call.done()
    await say(live, row)
    assert text_of(await call).startswith("done by ")
    assert (folder / "plan.txt").read_text() == "one\nthree\x1b[2J\n" and (folder / "new").is_dir()
    assert outcomes(live) == [("ask", "approved"), ("allow", "ok")]
    [done] = live.app.undos.listed()
    assert (done.meta.server, done.meta.tool) == ("s", "do")
    await live.app.ops["undo"]({"id": done.meta.id}, Person())
    assert (folder / "plan.txt").read_text() == "one\ntwo\n" and not (folder / "new").exists()


async def test_what_a_yes_makes_has_the_mode_it_would_have_had(start, folder, monkeypatch):
    (folder / "plan.txt").chmod(0o664)
    live = await start()
    client = await live.opened("/s/s/mcp")
    for umask in (0o027, 0o002):
        monkeypatch.setattr(live.app.gateway, "_umask", umask)
        call = calling(client, ("write", f"{folder}/{umask}", "new"), ("move", f"{folder}/plan.txt", f"{folder}/moved{umask}"))
        row = await ask(live)
        assert ", mode" not in row["text"]
        await say(live, row)
        assert not (await call)["result"].get("isError")
        assert (folder / f"{umask}").stat().st_mode & 0o777 == 0o666 & ~umask
        assert (folder / f"moved{umask}").stat().st_mode & 0o777 == 0o664
        (folder / f"moved{umask}").rename(folder / "plan.txt")


async def test_a_no_changes_nothing_and_tells_nothing_of_the_result(start, folder):
    live = await start()
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("write", f"{folder}/plan.txt", "other"))
    await say(live, await ask(live), "no")
    answer = await call
    assert answer["result"]["isError"] and "done by" not in json.dumps(answer)
    assert (folder / "plan.txt").read_text() == "one\ntwo\n" and live.app.undos.listed() == []


async def test_a_base_that_moved_stops_it_and_the_call_can_be_asked_again(start, folder):
    live = await start()
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("write", f"{folder}/plan.txt", "other"))
    row = await ask(live)
    (folder / "plan.txt").write_text("mine\n")
    await say(live, row)
    answer = await call
    assert answer["result"]["isError"] and "changed meanwhile" in text_of(answer)
    assert (folder / "plan.txt").read_text() == "mine\n"
    again = calling(client, ("write", f"{folder}/plan.txt", "other"))
    row = await ask(live)
    assert "-mine" in row["text"]
    await say(live, row)
    assert not (await again)["result"].get("isError")
    assert (folder / "plan.txt").read_text() == "other"
    assert outcomes(live) == [("ask", "approved"), ("allow", "moved"), ("ask", "approved"), ("allow", "ok")]


async def test_one_yes_is_for_one_change(start, folder):
    """The same call again makes another change, so it is another ask; a yes that was used is used."""
    live = await start()
    client = await live.opened("/s/s/mcp")
    for word in ("tick", "tick"):
        call = calling(client, (word, f"{folder}/plan.txt"))
        row = await ask(live)
        await say(live, row)
        assert not (await call)["result"].get("isError")
    assert [decision for decision, _ in outcomes(live)] == ["ask", "allow", "ask", "allow"]
    assert len(live.app.undos.listed()) == 2


@pytest.mark.parametrize(
    ("acts", "why"),
    [
        ([("connect", "192.0.2.1", 80)], "it tried to reach the network"),
        ([("link", "{}/link", "/etc/passwd")], "not all that it changes can be made real"),
        ([("note", "{}/plan.txt", "noted")], "its extended attributes or its access list change"),
        ([("fail", "no such thing")], "over a copy it failed"),
        ([("ask", "{}/answer")], "over a copy it asked the client for something (elicitation/create)"),
        ([("sleep", 30)], "it was not over within 1 s"),
    ],
)
async def test_what_cannot_be_previewed_is_asked_as_ever(start, folder, monkeypatch, acts, why):
    if "sleep" in str(acts):
        monkeypatch.setattr(previewing, "LONGEST_S", 1.0)
    live = await start()
    client = await live.opened("/s/s/mcp")
    acts = [tuple(word.format(folder) if isinstance(word, str) else word for word in act) for act in acts]
    call = calling(client, *acts)
    row = await ask(live)
    assert why in row["text"] and "lets the call run for real" in row["text"] and not row["preview"]["real"]
    assert os.listdir(folder) == ["plan.txt"]
    if "sleep" in str(acts):
        await say(live, row, "no")
        await call
        return
    await say(live, row)
    answer = await call
    assert ("isError" in answer["result"] and answer["result"]["isError"]) == ("fail" in str(acts))
    assert os.path.lexists(folder / "link") == ("link" in str(acts))
    assert os.listxattr(folder / "plan.txt") == ["user.note"] * ("noted" in str(acts))
    assert os.path.lexists(folder / "answer") == ("answer" in str(acts))
    assert live.app.undos.listed() == []


async def test_a_server_of_one_lane_is_not_previewed(start, folder):
    live = await start(one_lane=True)
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("count", f"{folder}/count"))
    row = await ask(live)
    assert row["preview"] is None and "Preview" not in row["text"]
    await say(live, row)
    await call
    assert (folder / "count").read_text() == "1"


async def test_where_a_copy_cannot_stand_at_its_own_path_the_ask_says_so(start, folder):
    wants("B")
    live = await start(tier="B")
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("write", f"{folder}/x", "x"))
    row = await ask(live)
    assert "can show a copy only at another path" in row["text"] and not (folder / "x").exists()
    await say(live, row)
    assert not (await call)["result"].get("isError") and (folder / "x").read_text() == "x"


async def test_a_server_whose_operator_says_so_is_not_previewed(start, folder):
    live = await start(preview=False)
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("write", f"{folder}/x", "x"))
    row = await ask(live)
    assert row["preview"] is None
    await say(live, row)
    assert not (await call)["result"].get("isError") and (folder / "x").read_text() == "x"


async def test_a_call_that_is_no_longer_wanted_leaves_nothing(start, folder):
    live = await start()
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("sleep", 5), ("write", f"{folder}/x", "x"))
    await until(lambda: any(relay.state == "previewed" for relay in live.app.gateway.relays))
    [relay] = live.app.gateway.relays
    relay.cancel("no longer needed")
    await until(lambda: not live.app.gateway.previews._running)
    assert os.listdir(folder) == ["plan.txt"] and live.app.approvals.listed() == []
    call.cancel()


async def test_after_waiting_the_retry_is_served_by_the_same_preview(start, folder):
    live = await start(more="[asking]\nhold_s = 0.1")
    client = await live.opened("/s/s/mcp")
    acts = ("tick", f"{folder}/tick")
    waiting = await calling(client, acts)
    assert "waiting for a person" in text_of(waiting) and not (folder / "tick").exists()
    row = await ask(live)
    await say(live, row)
    answer = await calling(client, acts)
    assert not answer["result"].get("isError")
    assert row["preview"]["changes"][0]["after"]["sha256"] in str(live.app.undos.listed())
    assert len(live.app.undos.listed()) == 1


@pytest.mark.parametrize("end", ["no", "cancel"])
async def test_once_nobody_asks_any_more_a_preview_is_no_other_calls(start, folder, end):
    live = await start()
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("tick", f"{folder}/time"))
    first = await ask(live)
    if end == "no":
        await say(live, first, "no")
    else:
        [relay] = live.app.gateway.relays
        relay.cancel("no longer needed")
        call.cancel()
    await until(lambda: not live.app.approvals.listed())
    again = calling(client, ("tick", f"{folder}/time"))
    second = await ask(live)
    assert second["preview"]["digest"] != first["preview"]["digest"]
    await say(live, second)
    assert not (await again)["result"].get("isError")


async def test_after_a_restart_the_yes_fits_the_same_change_and_no_other(gateway, start, folder, monkeypatch):
    live = await start(more="[asking]\nhold_s = 0.1")
    client = await live.opened("/s/s/mcp")
    same, other = ("write", f"{folder}/same", "x"), ("tick", f"{folder}/other")
    for acts in (same, other):
        await calling(client, acts)
    await until(lambda: len(live.app.approvals.listed()) == 2)
    for row in await live.app.ops["approvals"]({}, Person()):
        await say(live, row)
    live.app.gateway.previews._kept.clear()  # as in a new process
    assert "waiting for a person" in text_of(await calling(client, other))
    assert not (folder / "other").exists()
    assert not (await calling(client, same))["result"].get("isError")
    assert (folder / "same").read_text() == "x"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_in_band_the_form_shows_the_change(start, folder, era):
    live = await start(more='[clients.local]\nasks = "person"\n[asking]\nfloor_s = 0')
    client = live.client("/s/s/mcp")
    shown = []

    def answered(params):
        shown.append(params["message"])
        return {"action": "accept", "content": {"answer": params["requestedSchema"]["properties"]["answer"]["enum"][1]}}

    client.answers["elicitation/create"] = answered
    await client.open(era, capabilities={"elicitation": {"form": {}}})
    call = client.call_asking if era == "modern" else client.call
    answer = await call("do", {"acts": [["write", f"{folder}/plan.txt", "x"]]})
    assert text_of(answer).startswith("done by ") and (folder / "plan.txt").read_text() == "x"
    assert len(shown) == 1 and "+x" in shown[0]
    assert outcomes(live)[-1] == ("allow", "ok") and len(live.app.undos.listed()) == 1


async def test_a_commit_that_fails_on_the_way_is_an_error_and_leaves_nothing(start, folder, monkeypatch):
    live = await start()
    client = await live.opened("/s/s/mcp")
    call = calling(client, ("write", f"{folder}/x", "x"))
    row = await ask(live)

    def fails(*args):
        raise EarnestError("E1843", "the change could not be made: no space")

    monkeypatch.setattr(live.app.undos, "commit", fails)
    await say(live, row)
    answer = await call
    assert answer["result"]["isError"] and "no space" in text_of(answer)
    assert os.listdir(folder) == ["plan.txt"]


# what can be undone needs no yes of the integrity rule


FLOW = '[flow]\nintegrity = "always"\n[policy]\nallow = ["s/*"]'


async def steered(live):
    """A conversation that has read a stranger's text."""
    client = await live.opened("/s/s/mcp")
    await live.app.ops["label"]({"server": "s", "tool": "look", "values": {"read_only": True, "open_world": False}}, Person())
    assert not (await client.call("look", {"acts": []}))["result"].get("isError")
    return client


async def test_a_steered_change_that_can_be_undone_goes_unasked_over_a_copy(start, folder):
    live = await start(FLOW)
    client = await steered(live)
    answer = await calling(client, ("write", f"{folder}/plan.txt", "x"), ("remove", f"{folder}/plan.txt"))
    assert text_of(answer).startswith("done by ") and os.listdir(folder) == []
    [done] = live.app.undos.listed()
    live.app.records.flush()
    *_, last = read.receipts(f"{live.app.ctx.instance}/receipts")
    assert (last.decision, last.outcome, last.id) == ("allow", "ok", done.meta.id)
    rules = [reason["rule"] for reason in last.reasons]
    assert "flow/undoable" in rules and "preview" in rules
    live.app.undos.undo(done.meta.id)
    assert (folder / "plan.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("acts", [("link", "{}/link", "/etc/passwd"), ("connect", "192.0.2.1", 80), ("fail", "so")])
async def test_what_cannot_be_undone_whole_is_asked(start, folder, acts):
    live = await start(FLOW)
    client = await steered(live)
    call = calling(client, tuple(word.format(folder) if isinstance(word, str) else word for word in acts))
    row = await ask(live)
    assert "flow/integrity" in [rule for rule, *_ in row["reasons"]] and not row["preview"]["real"]
    assert os.listdir(folder) == ["plan.txt"]
    await say(live, row, "no")
    assert (await call)["result"]["isError"]


@pytest.mark.parametrize("contain", [{"hosts": ["example.com"]}, {"preview": False}])
async def test_with_a_way_out_or_without_a_preview_it_is_asked(start, folder, contain):
    live = await start(FLOW, **contain)
    client = await steered(live)
    call = calling(client, ("write", f"{folder}/plan.txt", "x"))
    row = await ask(live)
    assert "flow/integrity" in [rule for rule, *_ in row["reasons"]]
    await say(live, row, "no")
    await call


async def test_what_is_run_later_is_asked_however_the_server_comes_to_write_it(start, folder):
    (folder / ".git" / "hooks").mkdir(parents=True)
    live = await start(FLOW)
    client = await steered(live)
    call = calling(client, ("chdir", str(folder)), ("chdir", ".git"), ("chdir", "hooks"), ("write", "post-commit", "x"))
    row = await ask(live)
    assert f"it writes {folder}/.git/hooks/post-commit, which something runs or obeys later" in row["text"]
    await say(live, row, "no")
    await call
    call = calling(client, ("move", f"{folder}/plan.txt", f"{folder}/plan"), ("chmod", f"{folder}/plan", 0o755))
    row = await ask(live)
    assert f"it makes {folder}/plan a program" in row["text"]
    await say(live, row, "no")
    await call


async def test_without_room_for_the_way_back_it_is_asked(start, folder, monkeypatch):
    live = await start(FLOW)
    client = await steered(live)
    monkeypatch.setattr(live.app.undos, "has_room", lambda changes: False)
    call = calling(client, ("write", f"{folder}/plan.txt", "x"))
    row = await ask(live)
    assert "no room to keep what undoing it would take" in row["text"]
    await say(live, row, "no")
    await call


async def test_a_policy_that_only_observes_changes_no_calls_way(start, folder):
    live = await start(FLOW, preset="observe")
    client = await steered(live)
    assert not (await calling(client, ("write", f"{folder}/plan.txt", "x")))["result"].get("isError")
    assert live.app.undos.listed() == [] and (folder / "plan.txt").read_text() == "x"


async def test_what_a_preset_asks_is_asked_all_the_same(start, folder):
    live = await start('[flow]\nintegrity = "always"', preset="balanced")
    client = await steered(live)
    call = calling(client, ("remove", f"{folder}/plan.txt"))
    row = await ask(live)
    assert row["preview"]["real"]
    await say(live, row, "no")
    await call


async def test_a_preview_that_was_overtaken_is_made_anew(start, folder):
    live = await start(more="[asking]\nhold_s = 0.1")
    client = await live.opened("/s/s/mcp")
    act = ("write", f"{folder}/plan.txt", "x")
    await calling(client, act)
    (folder / "plan.txt").write_text("mine\n")
    await calling(client, act)
    shown = [row["text"] for row in await live.app.ops["approvals"]({}, Person())]
    assert len(shown) == 2 and "-one" in shown[0] and "-mine" in shown[1]


async def test_what_earnest_gets_wrong_ends_the_call_and_leaves_nothing(start, folder, monkeypatch):
    live = await start()
    failures = []
    live.app.gateway.loop.set_exception_handler(lambda loop, context: failures.append(context["message"]))
    client = await live.opened("/s/s/mcp")
    with monkeypatch.context() as patch:
        patch.setattr(previewing.changeset, "change_set", lambda *args: 1 / 0)
        call = calling(client, ("write", f"{folder}/x", "x"))
        row = await ask(live)
    assert not row["preview"]["real"] and "earnest made a mistake" in row["text"]
    await say(live, row, "no")
    await call
    call = calling(client, ("write", f"{folder}/y", "y"))
    row = await ask(live)
    monkeypatch.setattr(live.app.undos, "commit", lambda *args: 1 / 0)
    await say(live, row)
    assert (await call)["result"]["isError"]
    assert failures == ["a call could not be previewed", "a change could not be made real"]
    assert os.listdir(folder) == ["plan.txt"]


async def test_many_at_once_are_previewed_a_few_at_a_time(start, folder, monkeypatch):
    live = await start()
    client = await live.opened("/s/s/mcp")
    most, running = [0], [0]
    made = previewing.Previews._made

    async def counted(self, relay):
        running[0] += 1
        most[0] = max(most[0], running[0])
        try:
            return await made(self, relay)
        finally:
            running[0] -= 1

    monkeypatch.setattr(previewing.Previews, "_made", counted)
    calls = [calling(client, ("write", f"{folder}/f{number}", "x")) for number in range(7)]
    while not all(call.done() for call in calls):
        for row in await live.app.ops["approvals"]({}, Person()):
            await say(live, row)
        await asyncio.sleep(0.01)
    assert sorted(os.listdir(folder)) == [*(f"f{number}" for number in range(7)), "plan.txt"]
    assert most[0] == previewing.AT_ONCE

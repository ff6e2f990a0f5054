"""`earnest approvals`: at a terminal, and where there is none."""

import json
import os
import pty
import signal
import subprocess
import time

import pytest

from earnest.cli import approvals
from servers.client import StdioClient


@pytest.fixture
def waiting(demo, calling):
    """A call that waits for a person: the call, what was told of it, and the flag of its configuration."""
    call = calling(demo.client(), "file-ops", "delete", {"file": "draft.txt"})
    return call, demo.line()["ask"], ("--config", demo.ready["config"])


@pytest.fixture
def draft(home):
    return home.path / ".local/share/earnest-demo/file-ops/draft.txt"


def test_a_person_sees_the_whole_call_and_lets_it_run_once(waiting, at_terminal, draft):
    call, ask, flag = waiting
    term = at_terminal("approvals", *flag)
    shown = term.expect(r"Let it run\?")
    for line in ask["text"].split("\n"):
        assert line in shown
    assert 'file = "draft.txt"' in shown and "destructive: yes (claimed" in shown and draft.exists()
    term.type("o")
    term.expect("Yes, once")
    term.expect("Nothing else waits for you.")
    assert term.end() == 0
    assert call.result(60).text == "draft.txt is deleted" and not draft.exists()


def test_a_no_declines_it(waiting, at_terminal, draft):
    call, _, flag = waiting
    term = at_terminal("approvals", *flag)
    term.expect(r"Let it run\?")
    term.type("perhaps")
    term.expect("o = once, n = no, c = conversation")
    term.type("n")
    term.expect("declined")
    assert call.result(60).is_error and draft.exists()


def test_an_answer_for_the_conversation_covers_these_destinations_and_no_others(waiting, at_terminal, demo, calling):
    call, _, flag = waiting
    term = at_terminal("approvals", *flag)
    term.expect(r"Let it run\?")
    term.type("c")
    term.expect("for the rest of this conversation")
    assert not call.result(60).is_error
    again = calling(demo.client(), "file-ops", "delete", {"file": "draft.txt"}).result(60)
    assert again.text == "draft.txt was not there"
    calling(demo.client(), "file-ops", "delete", {"file": "notes.txt"})
    assert 'file = "notes.txt"' in demo.line()["ask"]["text"]


def test_saying_what_a_tool_does_writes_a_label_and_answers_nothing(waiting, at_terminal, cli, demo, draft):
    call, _, flag = waiting
    term = at_terminal("approvals", *flag)
    term.expect(r"Let it run\?")
    term.type("t")
    shown = term.expect("Treat it as")
    assert all(text in shown for text, _ in approvals.TREATMENTS)
    term.type("2")
    term.expect("Your label for file-ops/delete is now: read_only = no, destructive = no")
    term.expect(r"Let it run\?")
    assert not call.done() and draft.exists()
    term.type("s")
    assert term.end() == 0
    [receipt] = [
        line for line in map(json.loads, cli("receipts", "--events", "--json", *flag).out.splitlines()) if "event" in line
    ]
    assert receipt["event"] == "label" and receipt["tool"] == "delete"
    # what the label says counts for the next call
    assert not demo.client().call("file-ops", "delete", {"file": "recipe.txt"}).is_error


def test_without_a_terminal_nothing_is_answered(waiting, cli, draft):
    call, ask, flag = waiting
    said = cli("approvals", "answer", ask["id"], "once", *flag, input="y\n")
    assert (said.code, said.out) == (2, "") and "E1610" in said.err and "a model can run commands too" in said.err
    assert cli("approvals", *flag, input="o\n").out.count("\n") == 2  # listed, not asked
    assert not call.done() and draft.exists()


def test_an_answer_that_is_piped_in_counts_for_nothing_though_a_screen_is_there(waiting, home, earnest_cmd, draft):
    call, ask, flag = waiting
    own, other = pty.openpty()
    done = subprocess.run(
        [*earnest_cmd, "approvals", "answer", ask["id"], "once", *flag],
        env=home.env, input=b"y\n", stdout=other, stderr=other, timeout=60,
    )  # fmt: skip
    said = os.read(own, 65536).decode()
    os.close(own)
    os.close(other)
    assert done.returncode == 2 and "E1610" in said and not call.done() and draft.exists()


def test_one_call_is_answered_after_it_was_shown_and_confirmed(waiting, at_terminal, draft, tmp_path):
    call, ask, flag = waiting
    term = at_terminal("approvals", "answer", ask["id"], "once", *flag)
    assert 'file = "draft.txt"' in term.expect(r"Let this one call run\? \[y/N\]")
    term.type("")
    term.expect("E1611: nothing was answered; the call still waits")
    assert term.end() == 1 and not call.done()
    with open(tmp_path / "out", "w") as out:  # the answer to a script, the question to the person
        term = at_terminal("--json", "approvals", "answer", ask["id"][-6:], "once", *flag, out=out.fileno())
    term.expect(r"Let this one call run\?")
    term.type("y")
    assert term.end() == 0 and json.loads((tmp_path / "out").read_text())["answer"] == "once"
    assert not call.result(60).is_error
    term = at_terminal("approvals", "answer", ask["id"], "no", *flag)
    term.expect("E1609: .* is used already")
    assert term.end() == 1


async def test_a_terminal_inside_a_connected_client_answers_nothing(demo, home, earnest_cmd, at_terminal):
    flag = ("--config", demo.ready["config"])
    client = await StdioClient.start([*earnest_cmd, "stdio", "file-ops", *flag], env=home.env, cwd=str(home.path))
    await client.open("legacy")  # so this process is a client's host, and what it starts may be a model's
    id = await client.begin("tools/call", {"name": "delete", "arguments": {"file": "draft.txt"}})
    ask = demo.line()["ask"]
    term = at_terminal("approvals", "answer", ask["id"], "once", *flag)
    term.expect(r"Let this one call run\?")
    term.type("y")
    term.expect("E1604: answering an ask takes a person")
    assert term.end() == 1
    await client.cancel(id)
    await client.close()


def test_what_waits_is_listed_and_shown(waiting, cli):
    _, ask, flag = waiting
    [row] = json.loads(cli("approvals", "list", "--json", *flag).out)
    assert row == ask and row["state"] == "pending" and row["client"] == "local"
    table = cli("approvals", "list", *flag).out
    assert ask["id"] in table and "file-ops/delete" in table and "destructive" in table
    shown = cli("approvals", "show", ask["id"][-6:], *flag).out
    assert ask["text"] in shown
    missing = cli("approvals", "show", "nothing", *flag)
    assert missing.code == 2 and "E1608" in missing.err


def test_watching_prints_each_as_it_comes(demo, calling, home, earnest_cmd):
    watch = subprocess.Popen(
        [*earnest_cmd, "approvals", "--watch", "--json", "--config", demo.ready["config"]],
        env=home.env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        for file in ("draft.txt", "notes.txt"):
            calling(demo.client(), "file-ops", "delete", {"file": file})
            assert file in json.loads(watch.stdout.readline())["text"]
    finally:
        watch.kill()
        watch.communicate()


def test_a_person_who_watches_answers_as_they_come(demo, calling, at_terminal):
    term = at_terminal("approvals", "--watch", "--config", demo.ready["config"])
    term.expect("Waiting for calls")
    for answer, wrong in (("o", False), ("n", True)):
        call = calling(demo.client(), "file-ops", "delete", {"file": "notes.txt"})
        term.expect(r"Let it run\?")
        term.type(answer)
        assert call.result(60).is_error is wrong
    term.process.send_signal(signal.SIGINT)
    assert term.end() == 130


def test_ages_and_calls_are_told_in_few_words():
    assert [approvals.age(s) for s in (-3, 5, 61, 7300, 90000 * 2)] == ["0s", "5s", "1m", "2h", "2d"]
    row = {"server": "s", "method": "resources/read", "tool": "file:///x", "created": time.time()}
    assert approvals.call(row) == "s resources/read file:///x"

"""`earnest undo`: what can be undone, what an undo would do, and that a person alone does it."""

import json
import os
import signal
import sys
import time

import pytest

from conftest import SERVERS
from earnest.sandbox.undo import Undos
from sandbox import tree


@pytest.fixture
def made(home):
    """A tree in which a call changed something, and the tree as it was."""
    instance = home.earnest / "default"
    base, aside = home.path / "notes", home.path / "aside"
    for folder in (home.earnest, instance):
        folder.mkdir(0o700)
    base.mkdir()
    aside.mkdir()
    (base / "plan.txt").write_text("one\ntwo\n")
    (base / "old.txt").write_text("old\n")
    tree.settle(base)
    before = tree.picture(base)

    def act(copy):
        (copy / "plan.txt").write_text("one\nthree\n")
        (copy / "old.txt").unlink()
        (copy / "new").mkdir()

    changes, begun = tree.changed(base, aside, act)
    Undos(str(instance / "undo"), time.time).commit(changes, begun, "gateway.7", "files", "write_file", ("user:0",))
    return base, before


def test_what_can_be_undone_is_listed(cli, made):
    base, _ = made
    assert "gateway.7" in cli("undo", "--list").out
    [line] = json.loads(cli("undo", "--list", "--json").out)
    assert (line["id"], line["server"], line["tool"], line["undone"]) == ("gateway.7", "files", "write_file", False)
    assert line["until"] > time.time() + 6 * 86400
    assert {each["path"]: each["change"] for each in line["paths"]} == {
        f"{base}/plan.txt": "changed", f"{base}/old.txt": "deleted", f"{base}/new": "created",
    }  # fmt: skip


def test_a_dry_run_shows_what_would_be_put_back_and_changes_nothing(cli, made):
    base, _ = made
    now = tree.picture(base)
    done = cli("undo", "gateway.7", "--dry-run")
    assert done.code == 0, done
    for line in (f"change {base}/plan.txt", "    -three", "    +two", f"create {base}/old.txt", f"delete folder {base}/new"):
        assert line in done.out
    told = json.loads(cli("undo", "gateway.7", "--dry-run", "--json").out)
    assert "-three\n+two" in next(each["diff"] for each in told["undo"]["changes"] if each["path"].endswith("plan.txt"))
    assert tree.picture(base) == now


def test_a_person_undoes_it_once_and_it_is_on_record(cli, made, at_terminal):
    base, before = made
    term = at_terminal("undo", "gateway.7")
    shown = term.expect(r"Put it back\?")
    assert "+two" in shown
    term.type("y")
    term.expect("Undone: 3 paths as before")
    assert term.end() == 0
    assert tree.picture(base) == before
    events = [json.loads(line) for line in cli("receipts", "--events", "--json").out.splitlines()]
    [event] = [line for line in events if line.get("event") == "undo"]
    assert event["facts"]["undone"] == "gateway.7" and event["server"] == "files"
    again = cli("undo", "gateway.7", "--dry-run")
    assert again.code == 1 and "E1846" in again.err
    assert "undone" in cli("undo").out


def test_a_no_changes_nothing(made, at_terminal):
    base, _ = made
    now = tree.picture(base)
    term = at_terminal("undo", "gateway.7")
    term.expect(r"Put it back\?")
    term.type("n")
    assert term.end() == 1
    assert tree.picture(base) == now


def test_without_a_terminal_nobody_undoes(cli, made):
    base, _ = made
    now = tree.picture(base)
    done = cli("undo", "gateway.7", input="y\n")
    assert done.code == 2 and "E1610" in done.err
    assert tree.picture(base) == now


def test_a_later_change_stands_in_the_way_and_is_named(cli, made, at_terminal):
    base, _ = made
    (base / "plan.txt").write_text("mine\n")
    done = cli("undo", "gateway.7", "--dry-run", "--json")
    assert done.code == 1 and json.loads(done.out)["conflicts"] == [f"{base}/plan.txt"]
    assert f"nothing is put back: {base}/plan.txt" in cli("undo", "gateway.7", "--dry-run").out
    term = at_terminal("undo", "gateway.7")
    assert f"{base}/plan.txt" in term.expect("E1841[^\n]*\n")
    assert term.end() == 1
    assert (base / "plan.txt").read_text() == "mine\n"


def test_a_receipt_that_changed_nothing_is_told(cli, made):
    done = cli("undo", "gateway.8")
    assert done.code == 1 and "E1845" in done.err and "earnest undo --list" in done.err


@pytest.fixture
def granted(home):
    """A folder that a contained server may write to; its tree as it was."""
    folder = home.path / "granted"
    folder.mkdir()
    (folder / "kept").write_text("kept\n")
    tree.settle(folder)
    command = [sys.executable, str(SERVERS / "changes.py")]
    home.config.write_text(
        f'preset = "cautious"\n[servers.s]\ncommand = {json.dumps(command)}\n[servers.s.contain]\nwrite = ["{folder}"]\n'
    )
    return folder, tree.picture(folder)


def test_from_the_ask_to_the_undo(granted, foreground, at_terminal, calling, cli):
    folder, before = granted
    run = foreground("run", "--port", "0")
    call = calling(run.client(), "s", "do", {"acts": [["write", f"{folder}/kept", "x\n" * 100]]})
    run.line()
    told = json.loads(cli("approvals", "list", "--json").out)[0]["preview"]
    assert told["real"] and told["changes"][0]["path"] == f"{folder}/kept"
    term = at_terminal("approvals")
    assert "      +x" in term.expect(r"Let it run\?")
    term.type("f")
    assert term.expect(r"Let it run\?").count("+x") == 100
    term.type("o")
    assert not call.result(60).is_error and (folder / "kept").read_text() == "x\n" * 100
    [done] = json.loads(cli("undo", "--list", "--json").out)
    assert f"undo: `earnest undo {done['id']}` until " in cli("receipts", "show", done["id"]).out
    term = at_terminal("undo", done["id"])
    term.expect(r"Put it back\?")
    term.type("y")
    assert term.end() == 0 and tree.picture(folder) == before
    assert "undo: was done" in cli("receipts", "show", done["id"]).out
    explained = cli("explain", "s/do", "--json")
    assert json.loads(explained.out)["previewed"]


def test_a_daemon_killed_between_the_yes_and_its_end_leaves_what_there_was(
    home, granted, foreground, at_terminal, calling, cli
):
    """`kill -9` in the midst of a commit: rolled back at the next start, on record, and never done a second time."""
    folder, before = granted
    acts = {"acts": [["write", f"{folder}/kept", "other"], ["fill", str(folder), 150]]}
    run = foreground("run", "--port", "0")
    calling(run.client(), "s", "do", acts)
    ask = run.line()["ask"]
    assert ask["preview"]["real"]
    term = at_terminal("approvals")
    term.expect(r"Let it run\?")
    term.type("o")
    end = time.monotonic() + 60
    while not (staged := [name for name in os.listdir(folder) if name.startswith(".earnest-")]):
        assert time.monotonic() < end
        time.sleep(0.001)
    [daemon] = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_daemon(pid, home)]
    os.kill(daemon, signal.SIGKILL)
    assert staged and tree.picture(folder) != before
    run.process.wait(60)
    again = foreground("run", "--port", "0")
    assert tree.picture(folder) == before
    assert json.loads(cli("undo", "--list", "--json").out) == []
    events = [json.loads(line) for line in cli("receipts", "--events", "--json").out.splitlines()]
    assert [line["event"] for line in events if line.get("event") == "commit-recovered"] == ["commit-recovered"]
    calling(again.client(), "s", "do", acts)
    assert again.line()["ask"]["preview"]["digest"] == ask["preview"]["digest"]


def is_daemon(pid, home):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/environ", "rb") as env:
            return b"earnest.daemon" in line.read().split(b"\0") and f"HOME={home.path}".encode() in env.read()
    except OSError:
        return False

"""`earnest tools` and `earnest explain`: what holds of a tool, and on whose word."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Finished, Home
from servers.client import StdioClient
from servers.record import Record

Run = Callable[..., Finished]
Scripted = Callable[..., tuple[list[str], Record]]

READ = {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True, "openWorldHint": False}}
WRITE = {"name": "write", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False, "destructiveHint": True}}
MUTE = {"name": "mute", "inputSchema": {"type": "object"}}
NAMES = ("read_only", "destructive", "idempotent", "open_world", "reads_private", "sees_untrusted", "can_exfiltrate")


@pytest.fixture
def earnest(home: Home, earnest_cmd: list[str], run_bounded: Run) -> Run:
    """Run `earnest …` in the test's home."""
    return lambda *args, cwd=None: run_bounded([*earnest_cmd, *args], home.env, cwd=cwd or home.path)


def configure(home: Home, **servers: tuple[list[str], str]) -> None:
    home.config.write_text(
        "".join(f"[servers.{name}]\ncommand = {json.dumps(command)}\n{more}\n" for name, (command, more) in servers.items())
    )


def test_tools_have_the_shape_of_probe_and_profile_and_pin(home: Home, earnest: Run, scripted: Scripted) -> None:
    configure(home, books=(scripted({"tools": [READ, MUTE]})[0], 'trust = "trusted"'))
    done = earnest("tools", "books", "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert set(answer) == {"server", "tools"}
    read, mute = answer["tools"]
    assert read["raw"] == {"read_only": True, "destructive": None, "idempotent": None, "open_world": False}
    assert read["effective"] == {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
    assert tuple(read["profile"]) == NAMES
    assert (read["profile"]["read_only"]["value"], read["profile"]["read_only"]["basis"]) == (True, "claimed")
    assert (mute["profile"]["read_only"]["value"], mute["profile"]["read_only"]["basis"]) == (False, "default")
    assert read["pin"].startswith("v1:") and read["pin"] != mute["pin"]
    assert answer["server"]["trust"] == "trusted"


def test_an_untrusted_servers_claim_is_shown_and_not_believed(home: Home, earnest: Run, scripted: Scripted) -> None:
    configure(home, books=(scripted({"tools": [READ]})[0], ""))
    line = next(line for line in earnest("tools", "books").out.splitlines() if line.startswith("read "))
    assert "reads only, closed world" in line
    assert line.split("closed world")[1].split()[:2] == ["no", "default"]


def test_a_server_that_fails_takes_none_of_the_others_down(home: Home, earnest: Run, scripted: Scripted) -> None:
    dying = ["sh", "-c", "echo no licence >&2; exit 1"]
    configure(home, dead=(dying, ""), gone=(["no-such-program"], ""), books=(scripted({"tools": [READ]})[0], ""))
    done = earnest("tools", "--json")
    assert done.code == 1
    answer = json.loads(done.out)
    assert [(tool["server"], tool["name"]) for tool in answer["tools"]] == [("books", "read")]
    errors = {server["name"]: server["error"]["message"] for server in answer["servers"] if "error" in server}
    assert set(errors) == {"dead", "gone"} and "no licence" in errors["dead"]
    assert earnest("tools", "dead").code == 3


def test_a_view_hides_with_a_reason_and_all_shows_it(home: Home, earnest: Run, scripted: Scripted) -> None:
    view = '[views.reading]\nwhen = "tool.read_only"'
    configure(home, books=(scripted({"tools": [READ, WRITE]})[0], f'trust = "trusted"\n{view}'))
    one = json.loads(earnest("tools", "books", "--view", "reading", "--json").out)
    assert [tool["name"] for tool in one["tools"]] == ["read"]
    assert one["server"]["hidden"] == {"count": 1, "reasons": {"outside the view reading": 1}}
    assert "1 hidden: outside the view reading" in earnest("tools", "books", "--view", "reading").out
    both = json.loads(earnest("tools", "books", "--view", "reading", "--all", "--json").out)
    assert [(tool["name"], tool["hidden"]) for tool in both["tools"]] == [("read", ""), ("write", "outside the view reading")]
    assert earnest("tools", "--view", "readng").code == 2


def test_names_that_are_none_are_met_with_the_nearest(home: Home, earnest: Run, scripted: Scripted) -> None:
    configure(home, books=(scripted({"tools": [READ]})[0], ""))
    for args, near in ((["tools", "boks"], "books"), (["explain", "boks/read"], "books"), (["explain", "books/raed"], "read")):
        done = earnest(*args)
        assert done.code == 2 and near in done.err, done.err
    assert "SERVER/TOOL" in earnest("explain", "books").err
    assert earnest("explain", "books/read", "--args", "[1]").code == 2


def test_a_server_that_only_a_client_names_is_looked_at_by_its_command(earnest: Run, scripted: Scripted) -> None:
    command, record = scripted({"tools": [READ]})
    answer = json.loads(earnest("tools", "mine", "--json", "--", *command).out)
    assert [tool["name"] for tool in answer["tools"]] == ["read"]
    assert record.events("start")
    done = earnest("explain", "mine/read", "--json", "--", *command)
    assert json.loads(done.out)["server"]["name"] == "mine", done.err


def test_explain_ends_with_0_for_an_allow_and_1_for_anything_else(home: Home, earnest: Run, scripted: Scripted) -> None:
    configure(home, books=(scripted({"tools": [READ, WRITE]})[0], 'trust = "trusted"'))
    allowed, asked = earnest("explain", "books/read", "--json"), earnest("explain", "mcp__books__write", "--json")
    assert (allowed.code, json.loads(allowed.out)["decision"]) == (0, "allow")
    assert (asked.code, json.loads(asked.out)["decision"]) == (1, "ask")
    answer = json.loads(asked.out)
    assert {"decision", "reasons", "remedies", "profile"} <= set(answer)
    assert all({"rule", "text"} <= set(reason) for reason in answer["reasons"])
    assert tuple(answer["profile"]) == NAMES
    assert {"value", "basis"} <= set(answer["profile"]["destructive"])


def test_explain_names_the_row_and_who_supplied_each_value(home: Home, earnest: Run, scripted: Scripted) -> None:
    label = '[labels."books/read"]\nreads_private = false'
    configure(home, books=(scripted({"tools": [READ]})[0], f'trust = "trusted"\n{label}'))
    lines = earnest("explain", "books/read").out.splitlines()
    read_only = next(line for line in lines if "read-only" in line).split(maxsplit=4)
    assert read_only == ["read-only", "yes", "5", "claim", "the server's readOnlyHint"]
    private = next(line for line in lines if line.strip().startswith("reads private"))
    assert "1 operator" in private and f"{home.config}:" in private
    untrusted = next(line for line in lines if line.strip().startswith("sees untrusted"))
    assert "7 default" in untrusted and "nobody" in untrusted
    assert any(line.startswith("Trust: trusted, from: ") and str(home.config) in line for line in lines)


def test_arguments_decide_where_a_rule_reads_them(home: Home, earnest: Run, scripted: Scripted) -> None:
    rule = '[[policy.rule]]\nname = "not there"\nwhen = "args.path == \'/etc/passwd\'"\nthen = "deny"'
    configure(home, books=(scripted({"tools": [READ]})[0], f'trust = "trusted"\n{rule}'))
    assert earnest("explain", "books/read", "--args", '{"path": "/tmp/x"}').code == 0
    denied = json.loads(earnest("explain", "books/read", "--args", '{"path": "/etc/passwd"}', "--json").out)
    assert denied["decision"] == "deny"
    assert any("not there" in reason["rule"] for reason in denied["reasons"])


def test_another_method_is_judged_too(home: Home, earnest: Run, scripted: Scripted) -> None:
    configure(home, books=(scripted({"tools": [READ]})[0], ""))
    done = earnest("explain", "books/file:///x", "--method", "resources/read", "--json")
    assert json.loads(done.out)["method"] == "resources/read", done.err
    assert "resources/read" in earnest("explain", "books/x", "--method", "resource/read").err


def test_looking_leaves_no_conversation_and_no_receipt(home: Home, earnest: Run, scripted: Scripted) -> None:
    configure(home, books=(scripted({"tools": [READ]})[0], ""))
    earnest("explain", "books/read")
    earnest("tools", "books")
    rows = json.loads(earnest("conversation", "list", "--json").out)
    assert all(len(row["key"]) == 1 and not row["labels"] for row in rows), rows
    assert earnest("receipts", "--json").out.strip() in ("", "[]")


async def test_a_label_that_a_pack_set_falsely_can_be_traced_and_corrected(
    home: Home,
    earnest: Run,
    earnest_cmd: list[str],
    scripted: Scripted,
    stdio_client: Callable[..., Awaitable[StdioClient]],
    tmp_path: Path,
) -> None:
    """From a user's report: a conversation counted as private and nobody could find out why."""
    listed = json.loads((ROOT / "tests/data/packs/filesystem.json").read_text())
    tools: list[dict[str, Any]] = listed["tools"] if isinstance(listed, dict) else listed
    reader = next(tool for tool in tools if tool["name"] == "read_text_file")
    published, _ = scripted({"tools": [reader], "calls": {"read_text_file": {"text": "# Read me"}}}, "repo")
    chat, _ = scripted({"tools": [{"name": "post", "inputSchema": {"type": "object"}}]}, "chat")
    runner = tmp_path / "bin" / "npx"
    runner.parent.mkdir()
    runner.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in published) + "\n")
    runner.chmod(0o755)
    home.env["PATH"] = f"{runner.parent}{os.pathsep}{home.env['PATH']}"
    npx = [str(runner), "-y", "@modelcontextprotocol/server-filesystem", "/srv"]
    configure(home, repo=(npx, 'trust = "verified"'), chat=(chat, ""))
    client = await stdio_client([*earnest_cmd, "stdio", "repo"], env=home.env, cwd=str(home.path))
    await client.open("modern")
    answer = await client.call("read_text_file", {"path": "/srv/README"})
    assert "error" not in answer and not answer["result"].get("isError"), answer
    [conversation] = [row for row in json.loads(earnest("conversation", "list", "--json").out) if row["own"]]
    name = "/".join(conversation["key"])
    done = earnest("explain", "chat/post", "--conversation", name, "--json")
    assert done.code == 1, done.err
    said = json.loads(done.out)
    reason = next(reason for reason in said["reasons"] if reason["rule"] == "flow/confidentiality")
    receipt = said["causes"]["private"]["first"][0]["receipt"]
    assert f"private by repo/read_text_file (receipt {receipt}, pack filesystem:" in reason["text"]
    assert "earnest labels set repo/read_text_file reads_private=false" in [one["command"] for one in said["remedies"]]
    shown = earnest("explain", "chat/post", "--conversation", name).out
    assert f"private by repo/read_text_file, receipt {receipt} (pack: pack filesystem:" in shown


def test_without_any_server_it_says_what_to_do_and_is_no_failure(earnest: Run) -> None:
    for options, said in (((), "No server is configured. `earnest init`"), (("--json",), '"servers": []')):
        done = earnest("tools", *options)
        assert (done.code, done.err) == (0, "") and said in done.out


def test_a_server_that_is_written_into_the_file_while_the_daemon_runs_is_there(
    home: Home, earnest: Run, scripted: Scripted
) -> None:
    assert earnest("tools").code == 0
    configure(home, books=(scripted({"tools": [READ]})[0], ""))
    done = earnest("tools", "books", "--json")
    assert done.code == 0 and json.loads(done.out)["tools"][0]["name"] == "read", done.err
    assert done.err == f"{home.config} has changed; the daemon has read it again.\n"
    assert earnest("tools", "books", "--json").err == ""
    home.config.write_text("[servers.books]\ncomand = []\n")
    wrong = earnest("tools", "books")
    assert wrong.code == 2 and "E1003" in wrong.err and wrong.out == ""


async def test_a_client_finds_a_server_that_was_written_into_the_file_after_the_daemon_started(
    home: Home, earnest: Run, earnest_cmd: list[str], scripted: Scripted, stdio_client: Callable[..., Awaitable[StdioClient]]
) -> None:
    assert earnest("tools").code == 0
    configure(home, books=(scripted({"tools": [READ]})[0], ""))
    client = await stdio_client([*earnest_cmd, "stdio", "books"], home.env)
    await client.open()
    assert [tool["name"] for tool in await client.list_all()] == ["read"]


def test_explain_does_not_repeat_what_a_server_was_given_in_secret(home: Home, earnest: Run, scripted: Scripted) -> None:
    token = "hunter2-hunter2"
    for said in ("reads", f"reads with {token}"):
        configure(home, books=(scripted({"tools": [{**READ, "description": said}]})[0], f'env = {{ MY_TOKEN = "{token}" }}'))
        done = earnest("explain", "books/read", "--json")
        assert done.code in (0, 1), done.err
        shown = earnest("explain", "books/read").out
        earnest("stop")
    changes = json.loads(done.out)["pin_changes"]
    assert any("[redacted]" in line for line in changes), done.out
    assert "[redacted]" in shown and token not in done.out + shown

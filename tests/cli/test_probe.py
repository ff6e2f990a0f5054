"""`earnest probe`: what a server says of itself, kept nowhere."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Finished, Home, ScriptedHttp
from earnest.demo import commands
from servers.record import Record

Run = Callable[..., Finished]
Scripted = Callable[..., tuple[list[str], Record]]

TOOLS = [
    {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True, "openWorldHint": False}},
    {"name": "odd", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true", "idempotentHint": 1}},
    {"name": "mute", "inputSchema": {"type": "object"}},
]


@pytest.fixture
def probe(home: Home, earnest_cmd: list[str], run_bounded: Run) -> Run:
    """Run `earnest probe …` in the test's home."""
    return lambda *args, **env: run_bounded([*earnest_cmd, "probe", *args], {**home.env, **env}, cwd=home.path)


def configure(home: Home, name: str, command: list[str], more: str = "") -> None:
    home.config.write_text(f"[servers.{name}]\ncommand = {json.dumps(command)}\n{more}")


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_command_answers_with_raw_and_effective_hints_and_nothing_else(probe: Run, scripted: Scripted, era: str) -> None:
    command, _ = scripted({"name": "books", "version": "2025-11-25", "era": era, "tools": TOOLS, "instructions": "Be kind."})
    done = probe("--json", "--", *command)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert set(answer) == {"server", "tools"}
    assert answer["tools"] == [
        {
            "name": "read",
            "raw": {"read_only": True, "destructive": None, "idempotent": None, "open_world": False},
            "effective": {"read_only": True, "destructive": False, "idempotent": True, "open_world": False},
        },
        {
            "name": "odd",
            "raw": {"read_only": None, "destructive": None, "idempotent": None, "open_world": None},
            "effective": {"read_only": False, "destructive": True, "idempotent": False, "open_world": True},
        },
        {
            "name": "mute",
            "raw": {"read_only": None, "destructive": None, "idempotent": None, "open_world": None},
            "effective": {"read_only": False, "destructive": True, "idempotent": False, "open_world": True},
        },
    ]
    server = answer["server"]
    assert server["name"] == ("books" if era == "legacy" else "")  # the scripted modern one does not introduce itself
    assert server["era"] == era
    assert server["instructions"] == "Be kind."
    assert "tools" in server["capabilities"]
    assert server["protocol_version"] in server["protocol_versions"]
    assert server["malformed"] == [{"tool": "odd", "hints": ["readOnlyHint", "idempotentHint"]}]


def test_a_demo_server_introduces_itself(home: Home, probe: Run) -> None:
    answer = json.loads(probe("--json", "--", *commands(str(home.path))["file-ops"]).out)
    assert (answer["server"]["name"], answer["server"]["era"]) == ("file-ops", "modern")
    assert answer["server"]["instructions"]
    assert [tool["name"] for tool in answer["tools"] if tool["effective"]["destructive"]] == ["delete"]


def test_a_person_reads_claims_defaults_and_what_is_malformed(probe: Run, scripted: Scripted) -> None:
    command, _ = scripted({"name": "books", "tools": TOOLS})
    done = probe("--", *command)
    lines = done.out.splitlines()
    assert next(line for line in lines if line.startswith("read ")).split() == ["read", "true", "(false)", "(true)", "false"]
    assert "odd: readOnlyHint, idempotentHint is neither true nor false and counts as absent" in lines


def test_control_characters_of_a_server_do_not_reach_the_terminal(probe: Run, scripted: Scripted) -> None:
    command, _ = scripted({"tools": [{"name": "x\u001b[2Jy", "inputSchema": {"type": "object"}}], "instructions": "a\u202eb"})
    done = probe("--", *command)
    assert "\x1b" not in done.out and "\u202e" not in done.out
    assert "x<U+001B>[2Jy" in done.out


def test_a_configured_server_is_reached_by_name_and_nothing_is_kept(home: Home, probe: Run, scripted: Scripted) -> None:
    command, record = scripted({"tools": TOOLS})
    configure(home, "books", command, 'env = {SAYS = "hello"}\n')
    before = sorted(home.path.rglob("*"))
    done = probe("books", "--json", SECRET_OF_MINE="not for servers")
    assert done.code == 0, done.err
    assert sorted(home.path.rglob("*")) == before
    env = record.events("start")[0]["env"]
    assert env["SAYS"] == "hello" and "SECRET_OF_MINE" not in env


def test_a_secret_in_a_command_is_not_shown(home: Home, probe: Run, scripted: Scripted) -> None:
    command, record = scripted({"tools": TOOLS})
    configure(home, "books", [*command, "${env:TOKEN}"])
    for args in (["books"], ["books", "--json"]):
        done = probe(*args, TOKEN="hunter2")
        assert done.code == 0, done.err
        assert "hunter2" not in done.out + done.err
        assert "${env:TOKEN}" in done.out
    assert record.events("start")[0]["argv"][-1] == "hunter2"


@pytest.mark.parametrize(("script", "transport"), [({}, "http"), ({"http": {"legacy_sse": True}, "era": "legacy"}, "http+sse")])
def test_an_address_is_asked(
    probe: Run, scripted_http: Callable[..., ScriptedHttp], script: dict[str, Any], transport: str
) -> None:
    server = scripted_http({"tools": TOOLS, **script})
    done = probe(server.url, "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["server"]["transport"] == transport
    assert [tool["name"] for tool in answer["tools"]] == ["read", "odd", "mute"]


def test_all_pages_are_walked_and_a_name_twice_is_reported(probe: Run, scripted: Scripted) -> None:
    command, _ = scripted({"tools": [*TOOLS, TOOLS[0]], "page": 1})
    answer = json.loads(probe("--json", "--", *command).out)
    assert len(answer["tools"]) == 4
    assert any("'read' is listed twice" in problem for problem in answer["server"]["problems"])


def test_a_server_that_dies_is_quoted(probe: Run) -> None:
    done = probe("--", "sh", "-c", "echo the licence has expired >&2; exit 7")
    assert done.code == 3
    assert "the licence has expired" in done.err


def test_a_server_that_says_nothing_ends_in_time_with_its_last_words(probe: Run) -> None:
    done = probe("--timeout", "0.5", "--", "sh", "-c", "echo waiting for a key >&2; exec sleep 60")
    assert done.code == 3
    assert "E1206" in done.err and "waiting for a key" in done.err
    assert "Traceback" not in done.err and "never retrieved" not in done.err


def test_a_program_that_is_missing_and_a_port_that_is_closed_are_the_servers_failure(probe: Run) -> None:
    for args in (["--", "no-such-program-here"], ["http://127.0.0.1:9/mcp"]):
        done = probe(*args)
        assert done.code == 3
        assert done.err.count("\n") <= 3 and "Traceback" not in done.err


def test_an_unknown_name_is_met_with_the_nearest(home: Home, probe: Run, scripted: Scripted) -> None:
    configure(home, "books", scripted({})[0])
    done = probe("boks", "--json")
    assert done.code == 2
    error = json.loads(done.out)["error"]
    assert error["code"] == "E1211" and "books" in error["remedy"]


def test_a_command_without_dashes_is_told_where_they_go(probe: Run) -> None:
    done = probe("npx", "some-server")
    assert done.code == 2
    assert "earnest probe -- npx some-server" in done.err


def test_a_server_of_an_unapproved_file_in_the_folder_is_not_started(
    home: Home, probe: Run, scripted: Scripted
) -> None:
    command, record = scripted({"tools": TOOLS})
    (home.path / "earnest.toml").write_text(f"[servers.gift]\ncommand = {json.dumps(command)}\n")
    done = probe("gift")
    assert done.code == 2
    assert "nobody has approved" in done.err and "earnest config approve" in done.err
    assert not record.events("start")


def test_a_server_that_ends_is_heard_once(probe: Run) -> None:
    script = "for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; exit 4"
    result = probe("--", "sh", "-c", script)
    assert result.code == 3 and "status 4" in result.err
    assert result.err.count("it said") == 1 and result.err.count("line 7") == 1, result.err

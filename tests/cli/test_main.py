"""The command line as a whole: help, errors, options that stand anywhere."""

import json
import re
import subprocess
import sys

import pytest

from earnest import __version__
from earnest.cli.main import COMMANDS, arranged, overview, run
from earnest.core.errors import EarnestError


def test_every_command_of_the_table_can_be_loaded_and_has_help_with_an_example(cli):
    assert {"run", "init", "receipts", "doctor", "demo", "stop", "serve", "approvals", "conversation"} <= COMMANDS.keys()
    for name in ("run", "serve", "stop", "doctor", "demo", "approvals", "receipts", "conversation"):
        said = cli(name, "--help")
        assert (said.code, said.err) == (0, ""), name
        assert f"earnest {name}" in said.out, said.out
        assert ("--config" in said.out) is (name not in ("demo", "conversation")), said.out
    assert "earnest conversation end user" in cli("conversation", "end", "--help").out


def test_the_overview_names_every_command(cli):
    said = cli("--help")
    assert said.code == 0 and said.out == overview()
    assert all(re.search(rf"^  {name} ", said.out, re.MULTILINE) for name in COMMANDS)
    assert cli().code == 2


def test_the_command_line_is_loaded_without_what_only_some_commands_need(run_bounded, home, earnest_cmd):
    code = "import sys, earnest.cli.main; print([m for m in ('typer', 'rich', 'asyncio', 'msgspec') if m in sys.modules])"
    assert run_bounded([earnest_cmd[0], "-c", code], home.env).out.strip() == "[]"


def test_version(cli):
    assert cli("--version").out == f"earnest {__version__}\n"


@pytest.mark.parametrize(
    "typed, taken",
    [
        (["--config", "X", "tools"], ["tools", "--config", "X"]),
        (["--json", "receipts", "verify"], ["receipts", "verify", "--json"]),
        (["approvals", "--config=X", "list", "--all"], ["approvals", "list", "--all", "--config=X"]),
        (["probe", "--", "server", "--config", "Y"], ["probe", "--", "server", "--config", "Y"]),
        (["--json", "probe", "--", "server", "--json"], ["probe", "--json", "--", "server", "--json"]),
        (["tools", "--config"], ["tools", "--config"]),
    ],
)
def test_options_of_all_commands_may_stand_anywhere_before_the_dashes(typed, taken):
    assert arranged(typed) == taken


def test_a_mistyped_command_is_a_usage_error_with_a_suggestion(cli):
    said = cli("recipts")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("earnest: E1018: there is no command 'recipts'\n  Did you mean `earnest receipts`?")
    assert cli("--frobnicate", "run").code == 2
    unknown = cli("stop", "--frobnicate")
    assert unknown.code == 2 and "E1018: No such option: --frobnicate" in unknown.err and "earnest stop --help" in unknown.err


@pytest.mark.parametrize("words", [("run",), ("tools",), ("approvals", "list"), ("serve",), ("conversation", "list")])
def test_a_bad_configuration_is_told_once_and_nothing_is_left_running(cli, home, words):
    home.config.write_text('presett = "balanced"\n')
    said = cli(*words)
    assert said.code == 2 and said.out == ""
    lines = said.err.splitlines()
    assert "E1003" in lines[0] and f"{home.config}:1:1" in lines[0] and "presett" in lines[0]
    assert 'did you mean "preset"?' in lines[1]
    assert len(lines) == 2, said.err
    assert not (home.earnest / "default" / "http").exists()
    home.config.unlink()
    assert "No daemon runs" in cli("stop").out


def test_a_policy_error_keeps_its_code_place_and_suggestion(cli, home):
    home.config.write_text('[[policy.rule]]\nwhen = "tool.nope"\nthen = "ask"\n')
    said = cli("run", "--port", "0")
    assert said.code == 2 and said.err.count("E1104") == 1 and f"{home.config}:2:9" in said.err and "Traceback" not in said.err
    error = json.loads(cli("run", "--json", "--port", "0").out)["error"]
    assert error["code"] == "E1104"


def test_errors_are_an_object_on_standard_output_with_json(cli):
    said = cli("--json", "--config", "/there/is/none.toml", "run")
    assert said.err == "" and said.code == 2
    error = json.loads(said.out)["error"]
    assert error["code"] == "E1001" and "/there/is/none.toml" in error["message"] and error["exit_code"] == 2


def test_a_reader_that_left_is_no_error(home, earnest_cmd):
    process = subprocess.Popen(
        [*earnest_cmd, "--help"], env=home.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141


@pytest.mark.parametrize(
    "raised, code, said",
    [
        (EarnestError("E1211", "no \x1b[3m", "look\nhere", exit_code=3), 3, "earnest: E1211: no <U+001B>[3m\n  look\n  here\n"),
        (KeyboardInterrupt(), 130, ""),
        (PermissionError(13, "Permission denied", "/x"), 2, "earnest: E1019: /x: Permission denied\n"),
        (ZeroDivisionError("oops"), 3, "earnest: E1599: this is a mistake of earnest itself: ZeroDivisionError: oops\n"),
    ],
)
def test_whatever_a_command_raises_ends_in_one_message_and_a_code(monkeypatch, capsys, raised, code, said):
    import earnest.cli.stop as module

    def stop() -> None:
        raise raised

    monkeypatch.setattr(module, "stop", stop)
    assert run(["stop"]) == code
    assert capsys.readouterr().err.startswith(said)


def test_a_missing_dependency_is_named_with_what_to_do(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert run(["tools"]) == 2
    said = capsys.readouterr().err
    assert "E1500: typer, which earnest needs, is not installed for" in said and "make run" in said

"""`earnest policy …` as a person and a script meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earnest.cli.policy import app
from earnest.config.policy.reference import reference
from earnest.core.profile import NAMES


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(
        "[[rule]]\nname = 'big'\nwhen = 'args.id == 9223372036854775807'\nthen = 'deny'\n"
        "[[rule]]\nname = 'rest'\nwhen = 'tool.read_only'\nthen = 'allow'\n"
        "[[test]]\nname = 'it'\ngiven = { tool = 's/t', read_only = true, args = { id = 9223372036854775806 } }\n"
        "expect = 'allow'\n"
    )
    return path


def test_check_is_quiet_about_a_good_policy_and_points_at_a_bad_one(policy: Path) -> None:
    good = run("check", str(policy))
    assert (good.exit_code, good.stdout.startswith("fine")) == (0, True)
    policy.write_text("[[rule]]\nthen = 'ask'\nwhen = 'tool.readonly_hint'\n")
    bad = run("check", str(policy))
    assert bad.exit_code == 1
    assert f"{policy}:3:9: E1104: unknown name `tool.readonly_hint`" in bad.stdout
    assert "tool.read_only" in bad.stdout
    [finding] = json.loads(run("check", "--json", str(policy)).stdout)["findings"]
    assert (finding["line"], finding["column"], finding["code"]) == (3, 9, "E1104")


def test_a_missing_file_or_preset_is_a_usage_error_without_a_traceback(tmp_path: Path) -> None:
    for words in (
        ("check", str(tmp_path / "none")), ("test", str(tmp_path / "none")), ("check", "--preset", "nope"), ("explain", "x"),
        ("explain", "s/t", "--claim", "read_only"), ("explain", "s/t", "--args", "{"),
        ("replay", "--receipts", str(tmp_path / "no")),
    ):  # fmt: skip
        result = run(*words)
        assert result.exit_code == 2, words
        assert isinstance(result.exception, SystemExit)


def test_the_tests_of_a_policy_run(policy: Path) -> None:
    assert run("test", str(policy)).exit_code == 0
    policy.write_text(policy.read_text().replace("expect = 'allow'", "expect = 'deny'"))
    failed = run("test", "--json", str(policy))
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["tests"][0]["got"] == "allow"


@pytest.mark.parametrize(("number", "decision", "code"), [(9223372036854775807, "deny", 1), (9223372036854775806, "allow", 0)])
def test_explain_answers_with_exact_numbers(policy: Path, number: int, decision: str, code: int) -> None:
    result = run(
        "explain", "s/t", "--policy", str(policy), "--label", "read_only=true", "--args", json.dumps({"id": number}), "--json"
    )  # fmt: skip
    said = json.loads(result.stdout)
    assert (said["decision"], result.exit_code) == (decision, code)
    assert {"rule", "text"} <= said["reasons"][0].keys()
    assert said["profile"]["read_only"] == {"value": True, "basis": "operator"}


def test_a_name_that_would_play_with_the_terminal_is_shown_as_what_it_is() -> None:
    result = run("explain", "s/\x1b[2Jx\u202e")
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


def test_replay_reads_receipts_from_standard_input(policy: Path) -> None:
    profile = {name: {"value": True, "basis": "default"} for name in NAMES}
    line = {"id": "w.1", "server": "s", "tool": "t", "decision": "ask", "profile": profile}
    line["arguments"] = {"id": 9223372036854775807}
    result = run("replay", str(policy), "--json", stdin=json.dumps(line) + "\n")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["changes"][0]["now"] == "deny"


def test_the_reference_in_the_documentation_is_what_the_code_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "policy.md"
    assert page.read_text("utf-8") == reference()
    assert run("reference").stdout == reference()

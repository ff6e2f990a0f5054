"""`earnest hook install`: shown, asked for, written beside what others have there, and taken out byte for byte."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.person import run_at_terminal
from conftest import Home
from earnest.config.clients import hook_edit
from earnest.hook.claude_code import EVENTS, OF_TOOLS

OTHERS = """// mine
{
  "model": "opus", /* best */
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "my-check"}]},
    ],
  },
}
"""
CASES = ["", "{}", '{"model": "opus"}', OTHERS, '{"hooks": {}}']
CASES += ['{"hooks": {"Stop": []}}', '{\n  "hooks": {"PreToolUse": []}\n}\n']


def installed(data: bytes) -> bytes:
    return hook_edit.install("s.json", data, "/opt/my bin/earnest", "claude-code", EVENTS, OF_TOOLS)


@pytest.mark.parametrize("text", CASES)
def test_every_event_has_one_hook_however_often_it_is_installed(text: str) -> None:
    once = installed(text.encode())
    assert hook_edit.count("s.json", once, "claude-code") == len(EVENTS)
    assert installed(once) == installed(installed(once))
    gone = hook_edit.remove("s.json", once, "claude-code")
    assert hook_edit.count("s.json", gone, "claude-code") == 0
    assert b"earnest" not in gone


def test_what_others_have_there_is_left_byte_for_byte() -> None:
    once = installed(OTHERS.encode())
    for line in OTHERS.splitlines()[:6]:
        assert line.rstrip(",") in once.decode()
    back = hook_edit.remove("s.json", once, "claude-code").decode()
    assert '{"matcher": "Bash", "hooks": [{"type": "command", "command": "my-check"}]}' in back and "/* best */" in back


@pytest.fixture
def shell(home: Home, tmp_path: Path) -> dict[str, str]:
    bin = tmp_path / "bin"
    bin.mkdir()
    script = bin / "earnest"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m earnest "$@"\n')
    script.chmod(stat.S_IRWXU)
    return {**home.env, "PATH": f"{bin}{os.pathsep}{home.env['PATH']}"}


def run(env: dict[str, str], cwd: Path, *words: str, answers: tuple[str, ...] = ()) -> Any:
    return run_at_terminal([sys.executable, "-m", "earnest", "hook", "install", "claude-code", *words], answers, env, cwd)


def test_a_person_sees_it_says_yes_and_takes_it_back(home: Home, shell: dict[str, str], tmp_path: Path) -> None:
    settings = home.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}')
    assert run(shell, tmp_path, "--dry-run").code == 0
    assert settings.read_text() == '{"model": "opus"}'
    assert run(shell, tmp_path, answers=("n",)).code == 1
    assert settings.read_text() == '{"model": "opus"}'
    seen = run(shell, tmp_path, answers=("y",))
    assert seen.code == 0 and "PreToolUse" in seen.out
    written = json.loads(settings.read_text())
    (group,) = written["hooks"]["PreToolUse"]
    assert group["matcher"] == "*" and group["hooks"][0]["command"].endswith("earnest hook claude-code PreToolUse")
    assert run(shell, tmp_path, "--undo", answers=("y",)).code == 0
    assert settings.read_text() == '{"model": "opus"}'


def test_a_file_that_was_not_there_is_gone_again(home: Home, shell: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    assert run(shell, tmp_path, "--project", str(project), answers=("y",)).code == 0
    settings = project / ".claude" / "settings.local.json"
    assert "SessionStart" in json.loads(settings.read_text())["hooks"]
    assert run(shell, tmp_path, "--project", str(project), "--undo", answers=("y",)).code == 0
    assert not settings.exists()


def test_without_a_terminal_nothing_is_written(home: Home, shell: dict[str, str], run_bounded: Any) -> None:
    done = run_bounded([sys.executable, "-m", "earnest", "hook", "install", "claude-code"], shell)
    assert done.code != 0 and "E1610" in done.err
    assert not (home.path / ".claude").exists()

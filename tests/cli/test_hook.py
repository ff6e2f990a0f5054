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
from earnest.cli.hook_hosts import HOSTS, command
from earnest.config.clients import hook_edit

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


def installed(data: bytes, host: str = "claude-code", config: str = "") -> bytes:
    known = HOSTS[host]
    lines = {event: command("'/opt/my bin/earnest'", host, event, config) for event in known.wire.events}
    return hook_edit.install("s.json", data, host, {e: known.item(line, e) for e, line in lines.items()}, known.version)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("config", ["", "/srv/my team/earnest.toml"])
@pytest.mark.parametrize("text", CASES)
def test_every_event_has_one_hook_however_often_it_is_installed(text: str, host: str, config: str) -> None:
    once = installed(text.encode(), host, config)
    assert hook_edit.count("s.json", once, host) == len(HOSTS[host].wire.events)
    assert installed(once, host, config) == installed(installed(once, host, config), host, config)
    gone = hook_edit.remove("s.json", once, host)
    assert hook_edit.count("s.json", gone, host) == 0
    assert b"earnest" not in gone


def test_one_hosts_hooks_are_not_another_ones() -> None:
    one = installed(b"", "codex")
    assert json.loads(hook_edit.remove("s.json", installed(one, "claude-code"), "claude-code")) == json.loads(one)


def test_each_host_is_written_to_in_its_own_form() -> None:
    read = {host: json.loads(installed(b"", host)) for host in HOSTS}
    (codex,) = read["codex"]["hooks"]["PreToolUse"]
    assert set(codex) == {"hooks"} and codex["hooks"][0]["timeout"] == 15, "seconds, and every tool"
    assert set(read["codex"]) == {"hooks"}, "Codex refuses a file with anything else in it"
    (gemini,) = read["gemini-cli"]["hooks"]["BeforeTool"]
    assert gemini["hooks"][0]["timeout"] == 15000, "milliseconds"
    assert read["cursor"]["version"] == 1
    for event, (item,) in read["cursor"]["hooks"].items():
        assert item["command"].endswith(f"hook cursor {event}")
        assert item.get("failClosed", False) is (event in HOSTS["cursor"].wire.deciding)


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


def run(env: dict[str, str], cwd: Path, *words: str, answers: tuple[str, ...] = (), host: str = "claude-code") -> Any:
    return run_at_terminal([sys.executable, "-m", "earnest", "hook", "install", host, *words], answers, env, cwd)


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


def test_hooks_of_an_earlier_installation_do_not_come_back(home: Home, shell: dict[str, str], tmp_path: Path) -> None:
    settings = home.path / ".cursor" / "hooks.json"
    assert run(shell, tmp_path, answers=("y",), host="cursor").code == 0
    program = json.loads(settings.read_text())["hooks"]["preToolUse"][0]["command"].split(" hook ")[0]
    settings.write_text(settings.read_text().replace(program, "/old/bin/earnest"))
    assert run(shell, tmp_path, answers=("y",), host="cursor").code == 0
    assert run(shell, tmp_path, "--undo", answers=("y",), host="cursor").code == 0
    assert "earnest" not in settings.read_text()


def test_without_a_terminal_nothing_is_written(home: Home, shell: dict[str, str], run_bounded: Any) -> None:
    done = run_bounded([sys.executable, "-m", "earnest", "hook", "install", "claude-code"], shell)
    assert done.code != 0 and "E1610" in done.err
    assert not (home.path / ".claude").exists()


def test_another_hosts_hooks_are_written_where_it_reads_them_with_the_configuration_that_was_named(
    home: Home, shell: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "team.toml"
    config.write_text("")
    hooks = home.path / ".codex" / "hooks.json"
    seen = run(shell, tmp_path, "--config", str(config), answers=("y",), host="codex")
    assert seen.code == 0 and "/hooks" in seen.out, "a hook that nobody has trusted does nothing, and says nothing"
    line = json.loads(hooks.read_text())["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    assert line.endswith(f"earnest hook --config {config} codex PreToolUse")
    assert run(shell, tmp_path, "--undo", "--config", str(config), answers=("y",), host="codex").code == 0
    assert not hooks.exists()


def test_a_projects_file_that_others_share_names_no_path_of_this_machine(
    home: Home, shell: dict[str, str], tmp_path: Path
) -> None:
    assert run(shell, tmp_path, "--project", str(tmp_path), answers=("y",), host="cursor").code == 0
    written = (tmp_path / ".cursor" / "hooks.json").read_text()
    assert '"command": "earnest hook cursor preToolUse"' in written and str(tmp_path) not in written
    refused = run(shell, tmp_path, "--project", str(tmp_path), "--config", "x.toml", host="gemini-cli")
    assert refused.code == 2 and not (tmp_path / ".gemini").exists()

"""The built-in floor: what reaches earnest's own files or command, in whatever way it is spelled, and what does not."""

import json
import os
from pathlib import Path

import pytest

from earnest.pdp.floor import MAX_STRINGS, Floor

HERE = "{home}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "ada"
    for folder in ("state/default", ".config/earnest", ".claude", "project/.claude", "project/sub", "srv"):
        (home / folder).mkdir(parents=True)
    (home / "state/default/token").write_text("secret")
    (home / ".claude.json").write_text("{}")
    (home / "project" / "link").symlink_to(home / "state")
    (home / "project" / "dangling").symlink_to(home / ".cursor" / "mcp.json")
    os.link(home / "state/default/token", home / "project" / "innocent.txt")
    return home


def check(home: Path, arguments: object, cwd: str = "project", destructive: bool = True, **more: frozenset[str]) -> str:
    floor = Floor(home=str(home), own=[str(home / "state"), str(home / ".config/earnest/earnest.toml")])
    raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    reason = floor.check(raw.replace(b"{home}", str(home).encode()), cwd=str(home / cwd), destructive=destructive, **more)
    return reason.rule if reason else ""


@pytest.mark.parametrize(
    "path",
    [
        "{home}/state/default/token",
        "{home}/state",
        "{home}/STATE/Default/token",
        "{home}//state/./default/token",
        "{home}/srv/../state/default/token",
        "../state/default/token",
        "link/default/token",
        "./dangling",
        "./innocent.txt",
        "  {home}/.claude.json\n",
        "~/.claude.json",
        "~ada/.claude.json",
        "$HOME/.claude.json",
        "${HOME}/.claude/settings.json",
        "file://{home}/.claude.json",
        "FILE://localhost{home}/.claude.json",
        "file:{home}/%2Eclaude%2Ejson",
        "%7E/.claude.json",
        "{home}%2f.claude.json",
        "{home}%252f.claude.json",
        ".mcp.json",
        ".MCP.json",
        "earnest.toml",
        "sub/../.mcp.json",
        ".claude/settings.local.json",
        ".claude/hooks/pre.sh",
        "/elsewhere/.vscode/mcp.json",
    ],
)  # fmt: skip
def test_every_spelling_of_a_protected_path_is_refused(home: Path, path: str):
    assert check(home, {"path": path}) == "floor/own-files"
    assert check(home, {"items": [{"deep": {"to": path}}]}) == "floor/own-files"
    assert check(home, {"arguments": json.dumps({"path": path.strip()})}) == "floor/own-files"


def test_escapes_of_json_hide_nothing(home: Path):
    plain = json.dumps(str(home / ".claude.json"))
    hidden = '"' + "".join(f"\\u{ord(c):04x}" for c in plain[1:-1]) + '"'
    assert check(home, b'{"path":' + hidden.encode() + b"}") == "floor/own-files"
    assert check(home, b'{"p":"\\u002emcp\\u002ejson"}') == "floor/own-files"


@pytest.mark.parametrize(("cwd", "name"), [("project/.claude", "settings.json"), ("state/default", "token")])
def test_a_bare_name_is_a_path_where_the_server_runs_in_a_protected_folder(home: Path, cwd: str, name: str):
    assert check(home, {"file": name}, cwd=cwd) == "floor/own-files"


def test_a_folder_above_is_refused_only_to_what_may_destroy(home: Path):
    assert check(home, {"path": "{home}"}) == "floor/own-files"
    assert check(home, {"from": "x", "to": ".claude"}) == "floor/own-files"
    assert check(home, {"path": "{home}"}, destructive=False) == ""
    assert check(home, {"path": ".vscode"}, destructive=False) == ""


@pytest.mark.parametrize(
    "command",
    [
        "cat {home}/state/default/token",
        "cd /tmp && cp x '{home}//state/default/token'",
        "echo '{}' > .mcp.json",
        "echo x>.claude/settings.json",
        'tee ".mc"p.json',
        "python - <<E\nopen('../state/default/token')\nE",
        "cp evil.toml earn\\est.toml",
    ],
)
def test_a_command_line_is_looked_at_word_by_word(home: Path, command: str):
    assert check(home, {"command": command}) == "floor/own-files"
    assert check(home, {"name": "run", "arguments": {"cmd": ["sh", "-c", command]}}) == "floor/own-files"


@pytest.mark.parametrize(
    "command",
    [
        "earnest trust files --trusted",
        "EARNEST trust files",
        "/usr/bin/earnest  labels set x",
        "python3 -m earnest approvals",
        "python3 -mearnest approvals",
        "sh bin/earnest trust x",
        "uvx earnest@1.2 trust x",
        "uvx earnest==1.2 pins accept x",
        "earnest --config /x/y.toml \\\n  trust x",
        "ear''nest tr\"us\"t x",
        "$(which earnest) conversation end x",
        "true;earnest trust x",
        "script -qc 'earnest trust x' /dev/null",
        "env -i earnest\tpolicy",
    ],
)
def test_earnests_own_command_line_is_refused(home: Path, command: str):
    assert check(home, {"command": command}) == "floor/own-command"
    assert check(home, {"unheard-of": command}) == "floor/own-command"
    assert check(home, {"arguments": json.dumps({"command": command})}) == "floor/own-command"


@pytest.mark.parametrize(
    "arguments",
    [
        {"argv": ["earnest", "trust", "x"]},
        {"program": "/opt/bin/earnest", "args": ["trust", "x"]},
        {"argv": ["python3", "-m", "earnest", "approvals"]},
        {"argv": ["python3", "-mearnest", "approvals"]},
        {"argv": ["uvx", "earnest@latest", "stop"]},
        {"run": {"deep": {"file": "Earnest", "args": ["labels"]}}},
        {"arguments": '{"argv": ["earnest", "pins"]}'},
        {"command": "python3 -c 'from earnest.cli.main import run; run([chr(116)])'"},
    ],
)
def test_lists_of_words_and_modules_are_the_command_too(home: Path, arguments: object):
    assert check(home, arguments) == "floor/own-command"


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "notes/a.txt", "text": "in earnest, I said"},
        {"path": "project/earnest/cli.md"},
        {"url": "https://example.org/x/.mcp.json"},
        {"command": "ls -la src && git status"},
        {"command": "earnest --version"},
        {"command": "pytest src/earnest/cli"},
        {"query": "who wrote the play about being earnest?"},
        {"query": "50% of $HOME owners"},
        {"file": "settings.json"},
        {"data": '{"broken": ['},
    ],
)
def test_ordinary_arguments_pass(home: Path, arguments: object):
    assert check(home, arguments) == ""


def test_text_for_an_argument_known_to_be_content_may_speak_of_anything(home: Path):
    text = "To trust it, type: earnest trust files. It keeps its state in {home}/state/default."
    assert check(home, {"body": text}) != ""
    assert check(home, {"body": text}, takes_text=frozenset({"body"})) == ""
    assert check(home, {"body": text, "to": "{home}/state/x"}, takes_text=frozenset({"body"})) == "floor/own-files"


def test_more_strings_than_can_be_looked_at_are_refused(home: Path):
    assert check(home, {"paths": ["a/b"] * MAX_STRINGS}) == ""
    assert check(home, {"paths": ["a/b"] * (MAX_STRINGS + 1)}) == "floor/own-files"

"""Where each client keeps its servers, how many tools it takes, and what it starts behind earnest's back."""

import json
from pathlib import Path

import pytest

from earnest.config.clients.dialect import entries, find, parsed, read
from earnest.config.clients.registry import CLIENTS, client, over_limit, uncovered
from earnest.core.errors import EarnestError

LINUX = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
}
MAC = {
    "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
    "vscode": "Library/Application Support/Code/User/mcp.json",
}


def put(root: Path, path: str, text: str = "{}") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("name", sorted(LINUX))
def test_each_client_is_found_where_it_keeps_its_file(tmp_path: Path, name: str, platform: str) -> None:
    path = put(tmp_path, (MAC if platform == "darwin" else {}).get(name, LINUX[name]))
    assert find(client(name), str(tmp_path), {}, platform) == [str(path)]


def test_variables_that_move_files_are_followed(tmp_path: Path) -> None:
    moved = put(tmp_path, "m/.claude.json")
    assert find(client("claude-code"), "/none", {"CLAUDE_CONFIG_DIR": str(tmp_path / "m")}, "linux") == [str(moved)]
    moved = put(tmp_path, "c/config.toml")
    assert find(client("codex"), "/none", {"CODEX_HOME": str(tmp_path / "c")}, "linux") == [str(moved)]
    moved = put(tmp_path, "x/Claude/claude_desktop_config.json")
    assert find(client("claude-desktop"), "/none", {"XDG_CONFIG_HOME": str(tmp_path / "x")}, "linux") == [str(moved)]


def test_profiles_and_project_files_count_and_one_file_by_two_names_counts_once(tmp_path: Path) -> None:
    put(tmp_path, ".config/Code/User/profiles/ab/mcp.json")
    put(tmp_path, "p[1]/.vscode/mcp.json")
    (tmp_path / ".config/Code/User/mcp.json").symlink_to("profiles/ab/mcp.json")
    found = find(client("vscode"), str(tmp_path), {}, "linux", str(tmp_path / "p[1]"))
    assert [Path(path).relative_to(tmp_path).parts[0] for path in found] == [".config", "p[1]"]


def test_servers_of_projects_and_of_both_spellings_of_settings_are_found() -> None:
    text = {
        "mcpServers": {"a": {"command": "x"}},
        "projects": {"/p": {"mcpServers": {"b": {"command": "y"}}, "n": 1}},
    }
    code = client("claude-code")
    found = entries(code, parsed(code, "f.json", json.dumps(text).encode()))
    assert [entry.where for entry in found] == [("mcpServers", "a"), ("projects", "/p", "mcpServers", "b")]
    vscode = client("vscode")
    for settings in ({"mcp": {"servers": {"a": {"command": "x"}}}}, {"mcp.servers": {"a": {"command": "x"}}}):
        assert len(entries(vscode, parsed(vscode, "f.json", json.dumps(settings).encode()))) == 1


def test_a_file_that_cannot_be_read_is_an_error_and_not_no_servers(tmp_path: Path) -> None:
    for text in ("[]", '{"mcpServers": ', "nonsense"):
        with pytest.raises(EarnestError) as caught:
            read(client("cursor"), str(put(tmp_path, "f.json", text)))
        assert caught.value.code == "E1010"


def test_limits_of_tools_are_told_with_numbers() -> None:
    assert over_limit(client("cursor"), 40) == ""
    assert "40" in over_limit(client("cursor"), 43) and "3 would be missing" in over_limit(client("cursor"), 43)
    assert "128" in over_limit(client("vscode"), 129)
    assert over_limit(client("codex"), 1000) == ""


def test_an_unknown_client_is_told_with_the_nearest() -> None:
    with pytest.raises(EarnestError, match="no client") as caught:
        client("vs-code")
    assert "vscode" in caught.value.remedy


def test_what_clients_start_by_themselves_is_listed(tmp_path: Path) -> None:
    put(
        tmp_path,
        ".config/Claude/Claude Extensions/ext.a/manifest.json",
        '{"name": "files", "server": {"type": "node"}}',
    )
    put(tmp_path, ".claude/plugins/repos/p/.claude-plugin/plugin.json", '{"mcpServers": {"x": {}}}')
    put(tmp_path, ".claude/plugins/cache/q/.mcp.json", '{"x": {}}')
    put(tmp_path, ".gemini/extensions/g/gemini-extension.json", '{"name": "g", "mcpServers": {"x": {}}}')
    put(tmp_path, ".gemini/extensions/h/gemini-extension.json", '{"name": "h"}')
    put(
        tmp_path,
        ".vscode/extensions/v/package.json",
        '{"name": "v", "contributes": {"mcpServerDefinitionProviders": [1]}}',
    )
    put(tmp_path, ".vscode/extensions/w/package.json", "broken")
    found = uncovered(str(tmp_path), {}, "linux")
    assert [(u.client, u.name) for u in found] == [
        ("claude-desktop", "files"),
        ("claude-code", "q"),
        ("claude-code", "p"),
        ("gemini-cli", "g"),
        ("vscode", "v"),
    ]


def test_names_are_unique_and_every_client_is_documented() -> None:
    assert len({dialect.name for dialect in CLIENTS}) == len(CLIENTS) == 7

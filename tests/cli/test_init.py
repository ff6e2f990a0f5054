"""`earnest init`: what it shows, what it asks, what it writes, and that the way back is exact."""

import io
import json
import os
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from earnest.cli import init_plan
from earnest.cli.init import command, run_init, run_undo
from earnest.cli.init_plan import Claims, Hooks, Surroundings
from earnest.cli.style import Terminal
from earnest.config.clients.dialect import Entry
from earnest.config.clients.registry import CLIENTS, client
from earnest.config.clients.wrap import Listener
from earnest.config.settings import load
from earnest.core.errors import EarnestError
from earnest.core.profile import Trust

CURSOR = """{
  // mine
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@scope/files", "/a very/%s"], "env": { "TOKEN": "hunter2" } },
    "web": { "url": "https://web.example/mcp?key=hunter2", "headers": { "X-Key": "${env:KEY}" } },
    "login": { "url": "https://login.example/mcp" },
  },
}
""" % ("long/" * 40)
CODEX = '[mcp_servers.files]\ncommand = "npx"\nargs = ["-y", "@scope/files", "/other"]\n'
LISTENER = Hooks(listener=lambda name: Listener("http://127.0.0.1:7573", f"token-of-{name}"), forwards_headers=True)


class Tty(io.StringIO):
    """Input or output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Home:
    """A home folder with two clients, and the answers of a person or none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cursor = self.put(".cursor/mcp.json", CURSOR)
        self.codex = self.put(".codex/config.toml", CODEX)
        config = str(root / ".config/earnest/earnest.toml")
        self.around = Surroundings(
            home=str(root),
            env={"PATH": os.environ["PATH"]},
            platform="linux",
            config=config,
            instance=str(root / "i/default"),
        )
        self.out: io.StringIO = io.StringIO()

    def put(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run(self, answers: str | None = None, hooks: Hooks = LISTENER, undo: bool = False, **options: bool) -> int:
        self.out = io.StringIO() if answers is None else Tty()
        inp = None if answers is None else Tty(answers)
        terminal = Terminal(self.out, inp, {"NO_COLOR": "1"})
        defaults = {"yes": False, "dry_run": False, "json": False}
        work = run_undo if undo else run_init
        return work(terminal, self.around, CLIENTS, hooks, **{**defaults, **options})

    def snapshot(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(init_plan, "program_path", lambda env: "/opt/bin/earnest")
    return Home(tmp_path)


def test_without_a_terminal_and_without_yes_the_diff_is_shown_and_nothing_changes(home: Home) -> None:
    before = home.snapshot()
    assert home.run() == 0
    assert home.snapshot() == before
    text = home.out.getvalue()
    assert '+    "files": { "command": "/opt/bin/earnest", "args": ["stdio", "files", "--client", "cursor"' in text
    assert "Nothing was changed" in text


@pytest.mark.parametrize("options", [{"dry_run": True, "yes": True}, {"json": True}])
def test_dry_run_and_json_alone_change_nothing(home: Home, options: dict[str, bool]) -> None:
    before = home.snapshot()
    assert home.run("y\n", **options) == 0
    assert home.snapshot() == before


def test_the_exact_command_is_shown_in_full_and_no_secret_is(home: Home) -> None:
    home.run()
    text = home.out.getvalue()
    assert "all your rights" in text
    assert "files: npx -y @scope/files '/a very/" + "long/" * 40 + "'" in text
    assert "hunter2" not in text and "token-of" not in text and "https://web.example/mcp?…" in text


def test_yes_writes_clients_and_a_first_configuration_that_loads(home: Home) -> None:
    assert home.run(yes=True) == 0
    servers = json.loads(home.cursor.read_text().replace("// mine", "").replace(",\n  }", "}").replace(",\n}", "}"))
    files, web = servers["mcpServers"]["files"], servers["mcpServers"]["web"]
    assert files["command"] == "/opt/bin/earnest" and files["env"] == {"TOKEN": "hunter2"}
    assert web["url"] == "http://127.0.0.1:7573/s/web/mcp"
    assert web["headers"] == {"Authorization": "Bearer token-of-cursor", "X-Key": "${env:KEY}"}
    assert servers["mcpServers"]["login"] == {"url": "https://login.example/mcp"}
    assert '"stdio", "files-2", "--client", "codex"' in home.codex.read_text()
    settings = load(home.around.config, True, {})
    assert set(settings.servers) == {"web"} and settings.preset == "balanced"
    url = settings.servers["web"].url
    assert url is not None and url.resolve({}).reveal() == "https://web.example/mcp?key=hunter2"
    assert settings.servers["web"].forward_headers == ("X-Key",)
    assert os.stat(home.root / ".config/earnest/servers.toml").st_mode & 0o777 == 0o600


def test_what_a_reference_stands_for_is_written_nowhere(home: Home) -> None:
    around = {f: getattr(home.around, f) for f in home.around.__struct_fields__}
    home.around = Surroundings(**around | {"env": {**home.around.env, "KEY": "value-of-key"}})
    assert home.run(yes=True) == 0
    assert not [path for path, data in home.snapshot().items() if b"value-of-key" in data]


def test_a_second_run_finds_nothing_to_do_and_undo_is_byte_for_byte(home: Home) -> None:
    assert home.run(yes=True) == 0
    after = home.snapshot()
    assert home.run(yes=True) == 0 and home.snapshot() == after
    assert "is behind earnest" in home.out.getvalue()
    assert home.run(undo=True, yes=True) == 0 and "(without earnest)" in home.out.getvalue()
    assert home.cursor.read_text() == CURSOR and home.codex.read_text() == CODEX
    assert home.run(undo=True, yes=True) == 0 and "stands in no client" in home.out.getvalue()
    assert home.run(yes=True) == 0
    assert home.snapshot()[".cursor/mcp.json"] == after[".cursor/mcp.json"]
    assert list(load(home.around.config, True, {}).servers) == ["web"]


def test_undo_keeps_what_the_person_wrote_since(home: Home) -> None:
    home.run(yes=True)
    home.cursor.write_text(home.cursor.read_text().replace("// mine", "// still mine"))
    assert home.run(undo=True, yes=True) == 0
    assert home.cursor.read_text() == CURSOR.replace("// mine", "// still mine")


def test_undo_without_a_yes_changes_nothing(home: Home) -> None:
    home.run(yes=True)
    before = home.snapshot()
    assert home.run(undo=True) == 0 and home.snapshot() == before


@pytest.mark.parametrize("answer", ["\n", "n\n", "", "what\nn\n"])
def test_at_a_terminal_anything_but_yes_changes_nothing(home: Home, answer: str) -> None:
    before = home.snapshot()
    assert home.run(answer) == 0
    assert home.snapshot() == before


def test_after_a_yes_each_server_is_shown_with_its_claims_and_trust_is_asked(home: Home) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []
    kept: list[tuple[str, Trust]] = []

    def claims(name: str, entry: Entry) -> Claims:
        asked.append((name, entry.argv))
        if name == "files-2":
            raise EarnestError("E1201", "not there")
        return Claims(("tool", "claims"), (("read\x1b[2J", "read-only"),), ("trusted: none of 1 tools asks",))

    hooks = Hooks(
        claims=claims, set_trust=lambda n, a, t: kept.append((n, t)), listener=LISTENER.listener, forwards_headers=True
    )
    assert home.run("y\nt\n\n", hooks) == 0
    assert [name for name, _ in asked] == ["files", "web", "files-2"]
    assert asked[0][1][:3] == ("npx", "-y", "@scope/files")
    assert kept == [("files", Trust.TRUSTED)]
    assert "none of 1 tools asks" in home.out.getvalue()
    assert "\x1b" not in home.out.getvalue() and "read<U+001B>[2J" in home.out.getvalue()


def test_more_tools_than_a_client_offers_its_model_are_told(home: Home) -> None:
    rows = tuple((f"t{i}", "read-only") for i in range(21))
    hooks = Hooks(
        claims=lambda name, entry: Claims(("tool", "claims"), rows), set_trust=lambda n, e, t: None, listener=LISTENER.listener
    )
    assert home.run("y\n\n\n\n", hooks) == 0
    assert "at most 40 tools" not in home.out.getvalue()
    home.run(undo=True, yes=True)
    assert (
        home.run("y\n\n\n\n", Hooks(**{f: getattr(hooks, f) for f in hooks.__struct_fields__} | {"forwards_headers": True}))
        == 0
    )
    assert "Cursor offers its model at most 40 tools, and its servers have 42: 2 would be missing" in home.out.getvalue()


def test_no_server_is_asked_for_its_claims_before_the_yes(home: Home) -> None:
    def claims(name: str, entry: Entry) -> Claims:
        raise AssertionError("started before consent")

    assert home.run("n\n", Hooks(claims=claims, set_trust=lambda n, a, t: None)) == 0
    assert home.run(hooks=Hooks(claims=claims, set_trust=lambda n, a, t: None)) == 0


def test_servers_that_need_oauth_are_named_and_left(home: Home) -> None:
    home.run(json=True)
    found = {item["server"]: item for item in json.loads(home.out.getvalue())["servers"] if item["client"] == "cursor"}
    assert found["login"]["action"] == "leave" and "OAuth" in found["login"]["why"]
    assert found["web"]["action"] == "wrap" and "hunter2" not in found["web"]["target"]
    hooks = Hooks(forwards_headers=True, listener=LISTENER.listener, needs_oauth=lambda url: "web." in url)
    home.run(hooks=hooks, json=True)
    found = {item["server"]: item for item in json.loads(home.out.getvalue())["servers"] if item["client"] == "cursor"}
    assert found["login"]["action"] == "wrap" and "asks for OAuth" in found["web"]["why"]


def test_a_server_with_headers_stays_where_they_would_be_lost(home: Home) -> None:
    home.run(hooks=Hooks(listener=LISTENER.listener), json=True)
    found = {item["server"]: item for item in json.loads(home.out.getvalue())["servers"] if item["client"] == "cursor"}
    assert found["web"]["action"] == "leave" and "does not pass on" in found["web"]["why"]


def test_a_broken_file_is_an_error_and_the_other_clients_go_on(home: Home) -> None:
    home.cursor.write_text('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')
    before = home.cursor.read_bytes()
    assert home.run(yes=True) == 2
    assert "E1011" in home.out.getvalue() and home.cursor.read_bytes() == before
    assert "earnest" in home.codex.read_text()


def test_a_configuration_that_is_there_is_never_written(home: Home) -> None:
    config = home.put(".config/earnest/earnest.toml", "preset = 'cautious'\n")
    assert home.run(yes=True) == 0
    assert config.read_text() == "preset = 'cautious'\n"
    assert '"https://web.example' in home.cursor.read_text()
    config.write_text("prest = 1")
    with pytest.raises(EarnestError, match="unknown key"):
        home.run(yes=True)


def test_project_files_are_touched_only_when_asked_for_and_name_no_path_of_this_machine(home: Home) -> None:
    file = home.put("p/.mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')
    before = file.read_bytes()
    assert home.run(yes=True) == 0 and file.read_bytes() == before
    home.around = Surroundings(
        **{f: getattr(home.around, f) for f in home.around.__struct_fields__} | {"project": str(home.root / "p")}
    )
    assert home.run(yes=True) == 0
    entry = json.loads(file.read_text())["mcpServers"]["a"]
    assert entry["command"] == "earnest" and entry["args"][:4] == ["stdio", "a", "--client", "claude-code"]


def test_a_configuration_that_was_named_is_named_in_each_entry_but_those_that_others_share(home: Home) -> None:
    named = str(home.root / "team" / "earnest.toml")
    project = home.put("work/.cursor/mcp.json", '{"mcpServers":{"ours":{"command":"npx"}}}')
    home.around = msgspec.structs.replace(home.around, project=str(home.root / "work")).with_config(
        named, str(home.root / "i/c-1"), named=True
    )
    before = home.snapshot()
    assert home.run(yes=True) == 0
    assert f'["stdio", "files", "--client", "cursor", "--config", "{named}", "--", "npx"' in home.cursor.read_text()
    assert f'"--config", "{named}"' in home.codex.read_text()
    assert "earnest" not in project.read_text() and "path of this machine" in home.out.getvalue()
    assert load(named, True, {}).path == named
    assert home.run(undo=True, yes=True) == 0
    after = home.snapshot()
    assert all(after[path] == data for path, data in before.items())


def test_windows_is_told_about_wsl(home: Home) -> None:
    fields = {f: getattr(home.around, f) for f in home.around.__struct_fields__}
    home.around = Surroundings(**fields | {"release": "5.15.90.1-microsoft-standard-WSL2"})
    home.run()
    assert "clients that run on Windows" in home.out.getvalue()
    home.around = Surroundings(**fields | {"platform": "win32"})
    with pytest.raises(EarnestError, match="Linux and macOS") as caught:
        home.run()
    assert "WSL" in caught.value.remedy


def test_a_file_of_one_long_line_is_shown_by_its_entries_and_masked(home: Home) -> None:
    text = {"history": ["hunter2"] * 400, "n": list(range(500)), "mcpServers": {"a": {"command": "x", "env": {"K": "hunter2"}}}}
    home.put(".claude.json", json.dumps(text))
    home.run()
    shown = home.out.getvalue()
    assert "+mcpServers.a: " in shown and "hunter2" not in shown


def test_what_is_not_covered_is_said(home: Home) -> None:
    home.put(".config/Claude/Claude Extensions/e/manifest.json", '{"name": "ext", "server": {"type": "node"}}')
    home.run()
    assert "Not covered: Claude Desktop, ext" in home.out.getvalue()


def test_the_command_line_reports_mistakes_without_a_traceback(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()
    app.command()(command(lambda around, config: Hooks()))
    env = {
        "HOME": str(home.root),
        "EARNEST_HOME": str(home.root / "state"),
        "EARNEST_CONFIG": "",
        "XDG_CONFIG_HOME": "",
    }
    result = CliRunner().invoke(app, ["--client", "curser"], env=env)
    assert result.exit_code == 2 and "E1031" in result.output and "cursor" in result.output
    result = CliRunner().invoke(app, ["--client", "codex", "--yes"], env=env)
    assert result.exit_code == 0 and "earnest" in home.codex.read_text() and home.cursor.read_text() == CURSOR
    result = CliRunner().invoke(app, ["--undo", "--yes"], env=env)
    assert result.exit_code == 0 and home.codex.read_text() == CODEX


def test_every_client_has_a_title() -> None:
    assert client("vscode").title == "VS Code" and all(dialect.title for dialect in CLIENTS)

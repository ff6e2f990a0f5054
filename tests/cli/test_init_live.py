"""`earnest init` as a person has it: all seven clients, a real terminal, the real daemon, and a client that starts what was
written."""

import asyncio
import hashlib
import json
import os
import pty
import re
import select
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from conftest import ROOT, Finished, Home, ScriptedHttp
from earnest.core.errors import EarnestError
from earnest.gateway.process.control import connect_control
from servers.client import HttpClient, StdioClient
from servers.record import Record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX systems")

READER = {
    "name": "look",
    "description": "looks",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
ERASER = {"name": "erase", "description": "erases", "inputSchema": {"type": "object"}}
SCRIPT = {"tools": [READER, ERASER]}


class Person:
    """Someone at a terminal with a home in which seven clients are set up."""

    def __init__(self, home: Home, files: Sequence[str], web: ScriptedHttp, login: ScriptedHttp) -> None:
        self.home = home
        self.env = {**home.env, "FOLDER": "/a b", "KEY": "key-of-web"}
        # The command as it is installed: a script in PATH, with this interpreter beside it.
        self.env["PATH"] = os.pathsep.join([str(ROOT / "bin"), os.path.dirname(sys.executable), home.env["PATH"]])
        command, *args = files
        local = {"command": command, "args": args}
        gone = {"command": "no-such-program-anywhere", "args": ["x"]}
        self.paths: dict[str, Path] = {}
        self._json("claude-desktop", ".config/Claude/claude_desktop_config.json", {"mcpServers": {"files": local}})
        claude = {"numStartups": 7, "projects": {"/p": {"mcpServers": {"files": local}}}, "mcpServers": {"Gone Away": gone}}
        self._json("claude-code", ".claude.json", claude)
        remote = {"url": web.url, "headers": {"X-Key": "${env:KEY}"}}
        folder = {**local, "args": [*args, "${env:FOLDER}"], "env": {"TOKEN": "${env:KEY}"}}
        cursor = {"mcpServers": {"files": folder, "web": remote, "login": {"url": login.url}}}
        self._text("cursor", ".cursor/mcp.json", "// mine\n" + json.dumps(cursor, indent=2) + "\n")
        asks = {**local, "args": [*args, "--key", "${input:key}"], "env": {"K": "${input:key}"}}
        self._json("vscode", ".config/Code/User/mcp.json", {"inputs": [{"id": "key"}], "servers": {"asks": asks}})
        self._json("windsurf", ".codeium/windsurf/mcp_config.json", {"mcpServers": {"files": local}})
        self._text(
            "codex",
            ".codex/config.toml",
            f"# mine\n[mcp_servers.files]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\nenv = {{ A = 'b' }}\n",
        )
        self._json("gemini-cli", ".gemini/settings.json", {"theme": "x", "mcpServers": {"files": local}})

    def _json(self, client: str, path: str, value: object) -> None:
        self._text(client, path, json.dumps(value, indent=1))

    def _text(self, client: str, path: str, text: str) -> None:
        file = self.paths[client] = self.home.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def digests(self) -> dict[str, str]:
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self.paths.items()}

    def entry(self, client: str, *where: str) -> dict[str, Any]:
        """A server of a client's file, as that client reads it."""
        text = self.paths[client].read_text()
        found: Any = tomllib.loads(text) if client == "codex" else json.loads(text.removeprefix("// mine\n"))
        for key in where:
            found = found[key]
        assert isinstance(found, dict)
        return found

    def resolved(self, value: Any) -> Any:
        """What Cursor makes of its references."""
        if isinstance(value, dict):
            return {key: self.resolved(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.resolved(inner) for inner in value]
        return re.sub(r"\$\{env:([^}]+)\}", lambda found: self.env[found[1]], value) if isinstance(value, str) else value


@pytest.fixture
def person(
    home: Home,
    scripted: Callable[..., tuple[list[str], Record]],
    scripted_http: Callable[..., ScriptedHttp],
) -> tuple[Person, Record, ScriptedHttp]:
    command, record = scripted(SCRIPT)
    web = scripted_http({**SCRIPT, "http": {"session": True}}, "web")
    login = scripted_http({**SCRIPT, "http": {"token": "only-by-oauth"}}, "login")
    return Person(home, command, web, login), record, web


def at_terminal(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, answer: Callable[[str], str], timeout: float = 90.0
) -> tuple[int, str]:
    """Run a command whose input and output are a terminal. `answer`: what the person types to a question (its whole line)."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        list(command), stdin=slave, stdout=slave, stderr=slave, env=dict(env), cwd=cwd, start_new_session=True
    )
    os.close(slave)
    shown, until = b"", time.monotonic() + timeout
    try:
        while True:
            ready, _, _ = select.select([master], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                pytest.fail(f"it did not end within {timeout} s and showed:\n{shown.decode(errors='replace')}")
            try:
                data = os.read(master, 65536)
            except OSError:  # how Linux says that nobody holds the other end
                break
            if not data:
                break
            shown += data
            if re.search(rb"\[[A-Za-z/]+\] $", shown):
                question = shown.decode(errors="replace").replace("\r", "").rsplit("\n", 1)[-1]
                os.write(master, answer(question).encode() + b"\n")
        return process.wait(60), shown.decode(errors="replace").replace("\r\n", "\n")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)


async def tools_of(
    entry: Mapping[str, Any], env: Mapping[str, str], cwd: Path, *, calls: bool = True
) -> tuple[dict[str, Any], Any]:
    """What a client sees of the server it starts from its file, and the answer to a call, if it `calls`."""
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env={**env, **entry.get("env", {})}, cwd=cwd
    )
    async with asyncio.timeout(90), Client(stdio_client(parameters), cache=None) as client:
        listed = await client.list_tools()
        answer = await client.call_tool("look", {"at": "me"}) if calls else None
        return {tool.name: tool for tool in listed.tools}, answer


async def test_the_whole_run_of_a_person_with_seven_clients(
    person: tuple[Person, Record, ScriptedHttp], earnest_cmd: list[str]
) -> None:
    me, record, web = person
    before = me.digests()
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        if question.startswith("Write"):
            return "y"
        return "t" if " files be" in question or " files-2 be" in question else ""

    init = [*earnest_cmd, "init"]
    code, shown = at_terminal(init, me.env, me.home.path, answer)
    assert code == 0, shown
    assert record.events("start"), "claims come from the server itself"

    # What is shown: each command in full, the difference, what is left and why, how often a person would be asked.
    assert "all your rights" in shown and "key-of-web" not in shown
    for words in ("it asks for OAuth", "no-such-program-anywhere", "only the client knows what ${input:key} in args stands"):
        assert words in shown
    assert re.search(r"untrusted +2 of 2 tools ask", shown) and re.search(r"trusted +1 of 2 tools ask", shown)
    assert "`earnest serve`" in shown, "the listener does not run by itself"
    assert asked[0].startswith("Write") and len(asked) == len(set(asked)) >= 3

    # What is written: references as they were, every file but those left out, no secret anywhere.
    after = me.digests()
    assert all(before[name] != after[name] for name in before)
    assert me.entry("claude-code", "projects", "/p", "mcpServers", "files")["args"][0] == "stdio"
    assert me.entry("vscode", "servers", "asks")["env"] == {"K": "${input:key}"}
    assert me.entry("vscode", "servers", "asks")["args"][-2:] == ["--key", "${input:key}"]
    assert me.entry("claude-code", "mcpServers", "Gone Away")["command"] == "no-such-program-anywhere"
    cursor = me.entry("cursor", "mcpServers")
    assert "oauth" not in cursor["login"] and cursor["login"]["url"].endswith("/mcp")
    assert cursor["files"]["env"] == {"TOKEN": "${env:KEY}"} and cursor["web"]["headers"]["X-Key"] == "${env:KEY}"
    written = [path for path in me.home.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in written if b"key-of-web" in path.read_bytes()]
    backups = list((me.home.earnest / "default" / "backups").iterdir())
    assert len(backups) == 7 and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in backups)

    # A client starts what its file says; the person's trust is in force for exactly that server.
    tools, result = await tools_of(me.entry("gemini-cli", "mcpServers", "files"), me.env, me.home.path)
    assert not result.is_error and tools["look"].annotations.read_only_hint is True
    tools, result = await tools_of(me.resolved(cursor["files"]), me.env, me.home.path)
    assert not result.is_error and record.events("start")[-1]["argv"][-1] == "/a b"
    assert record.events("start")[-1]["env"]["TOKEN"] == "key-of-web"

    # The remote server by the listener, with the client's own token and the header that goes on.
    control = connect_control(me.env)
    assert control is not None
    with control:
        address = control.call("listen", port=0)["address"]
    entry = me.resolved(cursor["web"])
    token = entry["headers"]["Authorization"].removeprefix("Bearer ")
    assert entry["url"] == "http://127.0.0.1:7573/s/web/mcp"
    client = HttpClient(address + "/s/web/mcp", token=token, headers={"X-Key": entry["headers"]["X-Key"]})
    await client.open("modern")
    listed = await client.request("tools/list")
    assert {tool["name"] for tool in listed["result"]["tools"]} == {"look", "erase"}
    await client.close()
    assert web.record.events("http")[-1]["headers"]["x-key"] == "key-of-web"

    # And back, byte for byte.
    code, shown = at_terminal([*init, "--undo"], me.env, me.home.path, lambda question: "y")
    assert code == 0 and "restored byte for byte" in shown
    assert me.digests() == before


def test_scripts_get_json_write_with_yes_and_set_no_trust(
    person: tuple[Person, Record, ScriptedHttp], earnest_cmd: list[str], run_bounded: Callable[..., Finished]
) -> None:
    me, record, _ = person
    before = me.digests()
    init = [*earnest_cmd, "init"]
    for words in (["--json"], ["--dry-run"], ["--yes", "--dry-run"], []):
        done = run_bounded([*init, *words], me.env, cwd=me.home.path)
        assert done.code == 0 and me.digests() == before, done
        assert not (me.home.earnest / "default").exists(), "looking makes nothing"
        assert "key-of-web" not in done.out + done.err
    done = run_bounded([*init, "--json", "--yes", "--client", "cursor"], me.env, cwd=me.home.path)
    told = json.loads(done.out)
    assert done.code == 0 and told["written"] == [str(me.paths["cursor"])] and not told["errors"]
    actions = {server["name"]: server["action"] for server in told["servers"]}
    assert actions == {"files": "wrap", "web": "wrap", "login": "leave"}
    assert [name for name in before if me.digests()[name] != before[name]] == ["cursor"]
    assert not record.events("start"), "no server is started where nobody is asked"
    assert run_bounded([*init, "--undo", "--yes"], me.env, cwd=me.home.path).code == 0
    assert me.digests() == before


def test_a_file_that_its_client_rewrites_while_the_person_reads_is_left_alone(
    person: tuple[Person, Record, ScriptedHttp], earnest_cmd: list[str]
) -> None:
    me, _, _ = person
    path = me.paths["claude-code"]

    def answer(question: str) -> str:
        if question.startswith("Write"):
            path.write_text(path.read_text().replace('"numStartups": 7', '"numStartups": 8'))
            return "y"
        return ""

    code, shown = at_terminal([*earnest_cmd, "init"], me.env, me.home.path, answer)
    assert code == 2 and "E1029" in shown and "changed while" in shown
    assert '"numStartups": 8' in path.read_text() and '"stdio"' not in path.read_text()
    assert '"stdio"' in me.paths["windsurf"].read_text()


def test_a_file_that_cannot_be_written_is_told_and_links_stay_links(
    person: tuple[Person, Record, ScriptedHttp], earnest_cmd: list[str], run_bounded: Callable[..., Finished]
) -> None:
    me, _, _ = person
    dotfiles = me.home.path / "dotfiles"
    dotfiles.mkdir()
    real = dotfiles / "windsurf.json"
    me.paths["windsurf"].rename(real)
    me.paths["windsurf"].symlink_to(real)
    before = me.digests()
    done = run_bounded([*earnest_cmd, "init", "--yes", "--client", "windsurf"], me.env, cwd=me.home.path)
    assert done.code == 0 and me.paths["windsurf"].is_symlink() and '"stdio"' in real.read_text(), done
    assert run_bounded([*earnest_cmd, "init", "--yes", "--undo"], me.env, cwd=me.home.path).code == 0
    assert me.paths["windsurf"].is_symlink() and me.digests() == before
    if os.geteuid() == 0:
        return  # nothing is read-only to root
    me.paths["codex"].parent.chmod(0o500)
    done = run_bounded([*earnest_cmd, "init", "--yes"], me.env, cwd=me.home.path)
    me.paths["codex"].parent.chmod(0o700)
    assert done.code == 2 and "E1013" in done.out and me.digests()["codex"] == before["codex"]


def test_of_two_candidates_for_claude_desktop_none_is_written(
    person: tuple[Person, Record, ScriptedHttp], earnest_cmd: list[str], run_bounded: Callable[..., Finished]
) -> None:
    me, _, _ = person
    packaged = me.home.path / ".var/app/com.example.Claude/config/Claude/claude_desktop_config.json"
    packaged.parent.mkdir(parents=True)
    packaged.write_bytes(me.paths["claude-desktop"].read_bytes())
    before = me.digests()
    done = run_bounded([*earnest_cmd, "init", "--yes"], me.env, cwd=me.home.path)
    assert done.code == 2 and "E1017" in done.out and str(packaged) in done.out
    assert me.digests()["claude-desktop"] == before["claude-desktop"] and "stdio" not in packaged.read_text()
    assert me.digests()["gemini-cli"] != before["gemini-cli"], "the other clients go on"


async def test_a_terminal_that_a_client_has_opened_gives_out_neither_trust_nor_tokens(
    person: tuple[Person, Record, ScriptedHttp], earnest_cmd: list[str]
) -> None:
    me, _, _ = person
    before = me.digests()
    files = me.entry("gemini-cli", "mcpServers", "files")
    client = await StdioClient.start([*earnest_cmd, "stdio", "x", "--", files["command"], *files["args"]], env=me.env)
    try:
        await client.open()
        # This process is the client's host now, so what it starts may have been typed by a model.
        yes = ["y", "t"]
        init = [*earnest_cmd, "init", "--client"]
        code, shown = at_terminal([*init, "cursor"], me.env, me.home.path, lambda q: yes[not q.startswith("Write")])
        assert code == 1 and "E1604" in shown and me.digests() == before
        code, shown = at_terminal([*init, "gemini-cli"], me.env, me.home.path, lambda q: yes[not q.startswith("Write")])
        assert code == 0 and "E1604: changing trust" in shown
        tools, _ = await tools_of(me.entry("gemini-cli", "mcpServers", "files"), me.env, me.home.path, calls=False)
        assert tools["look"].annotations.read_only_hint is False
    finally:
        await client.close()


def test_a_daemon_that_runs_already_learns_the_new_servers(
    person: tuple[Person, Record, ScriptedHttp], earnest_cmd: list[str], run_bounded: Callable[..., Finished]
) -> None:
    me, _, _ = person
    control = connect_control(me.env)
    assert control is not None
    with control:
        with pytest.raises(EarnestError, match="no server 'web'"):
            control.call("tools", server="web")
        done = run_bounded([*earnest_cmd, "init", "--yes", "--client", "cursor"], me.env, cwd=me.home.path)
        assert done.code == 0, done
        (found,) = control.call("tools", server="web")
        assert found["server"]["trust"] == "untrusted" and [tool["name"] for tool in found["tools"]] == ["look", "erase"]

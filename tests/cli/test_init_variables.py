"""References in configurations reach the server as the client alone would have handed them over, through real processes."""

import asyncio
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Finished, Home, ScriptedHttp
from earnest.config.clients.dialect import Dialect
from earnest.config.clients.registry import CLIENTS
from servers.client import StdioClient
from servers.record import Record

REFERENCES = ("${env:TOK}", "${TOK}", "${TOK:-d}", "${input:k}", "${workspaceFolder}", "${A%x}", "$TOK", "C:\\Files\\x y.cmd")
SECRET = "value-of-the-reference"
PLACES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
}


def as_the_client_reads_it(dialect: Dialect, value: Any) -> Any:
    """Every reference the client knows, replaced by a secret of its own; all else as it stands."""
    if isinstance(value, dict):
        return {key: as_the_client_reads_it(dialect, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_the_client_reads_it(dialect, inner) for inner in value]
    if isinstance(value, str) and dialect.variable:
        return re.sub(dialect.variable, lambda found: f"{SECRET}/{found.group()[::-1]}", value)
    return value


def servers_of(dialect: Dialect, path: Path) -> dict[str, Any]:
    found: Any = tomllib.loads(path.read_text()) if dialect.name == "codex" else json.loads(path.read_text())
    for key in dialect.containers[0]:
        found = found[key]
    return dict(found)


def put(dialect: Dialect, home: Home, servers: Mapping[str, Mapping[str, Any]]) -> Path:
    path = home.path / PLACES[dialect.name]
    path.parent.mkdir(parents=True, exist_ok=True)
    if dialect.name != "codex":
        path.write_text(json.dumps({dialect.containers[0][0]: servers}))
        return path
    lines = []
    for name, entry in servers.items():
        lines.append(f"[mcp_servers.{name}]")
        for key, value in entry.items():
            inner = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()) if isinstance(value, dict) else ""
            lines.append(f"{key} = {{ {inner} }}" if inner else f"{key} = {json.dumps(value)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def holding(home: Home, text: str) -> list[Path]:
    """The files below a home in which a text stands."""
    return [path for path in home.path.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.parametrize("dialect", CLIENTS, ids=lambda d: d.name)
async def test_command_arguments_and_environment_arrive_as_from_the_client_alone(
    dialect: Dialect,
    home: Home,
    scripted: Callable[..., tuple[list[str], Record]],
    earnest_cmd: list[str],
    run_bounded: Callable[..., Finished],
) -> None:
    (python, *args), record = scripted({"tools": []})
    entry = {"command": python, "args": [*args, *REFERENCES], "env": {f"V{i}": v for i, v in enumerate(REFERENCES)}}
    path = put(dialect, home, {"s": entry})
    paths = os.pathsep.join([str(ROOT / "bin"), os.path.dirname(sys.executable), home.env["PATH"]])
    env = {**home.env, "PATH": paths}

    async def started() -> tuple[list[str], dict[str, str]]:
        read = as_the_client_reads_it(dialect, servers_of(dialect, path)["s"])
        client = await StdioClient.start([read["command"], *read["args"]], env={**env, **read["env"]})
        await client.open()
        await client.request("tools/list")
        await client.close()
        last = record.events("start")[-1]
        return last["argv"], {key: value for key, value in last["env"].items() if re.fullmatch(r"V\d", key)}

    async with asyncio.timeout(90):
        alone = await started()
        done = run_bounded([*earnest_cmd, "init", "--yes", "--client", dialect.name], env, cwd=home.path)
        assert done.code == 0 and servers_of(dialect, path)["s"]["args"][0] == "stdio", done
        assert await started() == alone
    assert len(record.events("start")) == 2 and len(alone[1]) == len(REFERENCES)
    text = path.read_text()
    assert all(json.dumps(reference)[1:-1] in text for reference in REFERENCES)
    assert SECRET not in done.out
    # The client hands the secret to what it starts; earnest puts it into no file.
    assert not holding(home, SECRET)


@pytest.mark.parametrize("dialect", [d for d in CLIENTS if d.variable], ids=lambda d: d.name)
def test_an_address_only_the_client_can_complete_is_left_and_both_field_and_variable_are_named(
    dialect: Dialect,
    home: Home,
    earnest_cmd: list[str],
    run_bounded: Callable[..., Finished],
    scripted_http: Callable[..., ScriptedHttp],
) -> None:
    reference = {"claude-code": "${TOK}", "gemini-cli": "$TOK"}.get(dialect.name, "${env:TOK}")
    key = dialect.url_keys[0][0]
    header = {"X-Key": reference}
    url = scripted_http({"tools": []}).url
    path = put(dialect, home, {"web": {key: f"https://{reference}/mcp"}, "fine": {key: url, dialect.headers_key: header}})
    env = {**home.env, "TOK": SECRET, "PATH": os.pathsep.join([str(ROOT / "bin"), home.env["PATH"]])}
    done = run_bounded([*earnest_cmd, "init", "--json", "--yes", "--client", dialect.name], env, cwd=home.path)
    told = {server["name"]: server for server in json.loads(done.out)["servers"]}
    assert told["web"]["action"] == "leave" and f"its {key} holds {reference}" in told["web"]["why"]
    assert told["fine"]["action"] == "wrap", told
    written = servers_of(dialect, path)
    assert written["web"][key] == f"https://{reference}/mcp" and written["fine"][dialect.headers_key]["X-Key"] == reference
    assert not holding(home, SECRET)

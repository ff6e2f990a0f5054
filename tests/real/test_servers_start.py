"""Each published server that the suite uses is installed and answers the official client, nothing between."""

import asyncio
import subprocess
import tomllib
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

PINS = tomllib.loads((Path(__file__).parents[2] / "scripts" / "servers.toml").read_text())
EXPECTED = {
    "filesystem": "read_text_file",
    "memory": "read_graph",
    "everything": "echo",
    "git": "git_status",
    "time": "get_current_time",
    "fetch": "fetch",
    "sqlite": "read_query",
}

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name, era", [(name, era) for name, pin in PINS.items() for era in pin["eras"]])
async def test_a_published_server_lists_its_tools(name, era, real_server):
    server = real_server(name)
    if name == "git":
        subprocess.run(["git", "init", "-q", str(server.folder)], check=True)
    parameters = StdioServerParameters(command=server.command[0], args=server.command[1:], env=server.env, cwd=server.folder)
    mode = "legacy" if era == "legacy" else "2026-07-28"
    async with asyncio.timeout(60), Client(stdio_client(parameters), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
    assert EXPECTED[name] in tools


def test_every_pinned_server_is_expected_to_have_a_tool():
    assert set(EXPECTED) == set(PINS)

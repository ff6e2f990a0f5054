"""Clients of other libraries list and call published servers through the gateway; a person is asked as ever."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "clients"
INSTALLED = ROOT / ".servers"
SDK = INSTALLED / "npm" / "node_modules" / "@modelcontextprotocol" / "sdk"
PROGRAMS = {
    "typescript": ["node", str(HERE / "typescript.mjs")],
    "python1": [str(INSTALLED / "py-sdk1" / "bin" / "python"), str(HERE / "python1.py")],
    "fastmcp": [str(INSTALLED / "clients" / "bin" / "python"), str(HERE / "fastmcp_client.py")],
}


async def ran(rig, client, given):
    """What a client says of its tools and results."""
    program, *words = PROGRAMS[client]
    if shutil.which(program) is None:
        pytest.skip("not installed; `make clients` does it")
    process = await asyncio.create_subprocess_exec(
        program,
        *words,
        json.dumps(given),
        *([str(SDK)] if client == "typescript" else []),
        env=rig.home.env,
        cwd=rig.folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("client", PROGRAMS)
async def test_a_client_of_another_library_lists_and_calls(rig, earnest_cmd, client, over):
    server = rig.server("filesystem", trust="trusted")
    (server.folder / "a.txt").write_text("ünï\U0001f600")
    path, written = str(server.folder / "a.txt"), server.folder / "b.txt"
    calls = [
        ["read_text_file", {"path": path}],
        ["write_file", {"path": str(written), "content": "b"}],
        ["read_text_file", {"path": "/etc/hostname"}],
    ]
    if over == "stdio":
        way = {"command": [*earnest_cmd, "stdio", "filesystem"], "env": rig.home.env, "cwd": str(rig.folder)}
    else:
        address, token = await rig.person.listening()
        way = {"url": f"{address}/s/filesystem/mcp", "token": token}
    said, ask = await rig.answered(ran(rig, client, {over: way, "calls": calls}))
    assert ask["tool"] == "write_file" and written.read_text() == "b"
    read, wrote, outside = said["results"]
    assert read["content"] == [{"type": "text", "text": "ünï\U0001f600"}] and read["structuredContent"] == {
        "content": "ünï\U0001f600"
    }
    assert not wrote.get("isError") and outside["isError"]
    (tool,) = [tool for tool in said["tools"] if tool["name"] == "write_file"]
    assert tool["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert [(tool, decision) for tool, decision, _ in await rig.decided()] == [
        ("read_text_file", "allow"),
        ("write_file", "ask"),
        ("write_file", "allow"),
        ("read_text_file", "allow"),
    ]

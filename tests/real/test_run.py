"""`earnest run` as a user meets it, with published servers configured: start, connect, call, end, and start again."""

import asyncio
import json
import os
import re
import signal
import socket
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from real.rig import opened, text

pytestmark = pytest.mark.real


@asynccontextmanager
async def running(rig, *words):
    """`earnest run WORDS` with its output as a pipe; killed at the end if it is still there."""
    command = [*rig._earnest, "run", *words]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, env=rig.home.env, cwd=rig.folder, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, limit=1 << 24
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line(process, pattern):
    """The first line of its output that matches, and all before it."""
    seen = ""
    async with asyncio.timeout(60):
        while raw := await process.stdout.readline():
            seen += raw.decode()
            if found := re.search(pattern, raw.decode()):
                return found, seen
    raise AssertionError(f"it ended: {seen}{(await process.stderr.read()).decode()}")


@asynccontextmanager
async def client_of(url, token, mode="legacy"):
    """The official client at an address."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        opened(streamable_http_client(url, http_client=http), mode) as client,
    ):
        yield client


@pytest.fixture
def server(rig):
    rig.server("time", trust="trusted")
    server = rig.server("filesystem", trust="trusted")
    (server.folder / "a.txt").write_text("hello")
    return server


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
async def test_a_client_calls_at_the_printed_address_and_the_command_ends_clean(rig, server, end):
    for _ in range(2):  # twice in a row: what the first leaves does not hinder the second
        async with running(rig, "--port", "0") as process:
            ready, seen = await line(process, r"^ready: (http://127\.0\.0\.1:\d+/mcp)")
            token_file = re.search(r"the line in ([^\s)]+)\)", seen)[1]
            assert os.stat(token_file).st_mode & 0o777 == 0o600
            with open(token_file) as file:
                token = file.read().strip()
            assert token not in seen, "a token belongs in no log"
            async with client_of(ready[1], token, "2026-07-28") as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert {"filesystem__read_text_file", "time__get_current_time"} <= names
                read = await client.call_tool("filesystem__read_text_file", {"path": str(server.folder / "a.txt")})
                assert text(read) == "hello"
            process.send_signal(end)
            async with asyncio.timeout(60):
                assert await process.wait() == 0
            assert (await process.stderr.read()) == b""
        with pytest.raises(OSError), socket.create_connection(("127.0.0.1", int(re.search(r":(\d+)/", ready[1])[1])), 2):
            pass
    reads = await rig.receipts(tool="read_text_file")
    assert [(one.decision, one.outcome, one.client) for one in reads] == [("allow", "ok", "local")] * 2


async def test_a_waiting_call_is_told_and_answered_beside_it(rig, server):
    async with running(rig, "--json", "--port", "0") as process:
        _, seen = await line(process, r"^\{\"ready\"")
        ready = json.loads(seen.splitlines()[-1])["ready"]
        assert {one["name"]: one["tools"] for one in ready["servers"]} == {"time": 2, "filesystem": 14}
        with open(ready["token_file"]) as file:
            token = file.read().strip()
        target = server.folder / "new.txt"
        async with client_of(f"{ready['address']}/s/filesystem/mcp", token) as client:
            call = asyncio.ensure_future(client.call_tool("write_file", {"path": str(target), "content": "new"}))
            _, told = await line(process, r"^\{\"ask\"")
            ask = json.loads(told.splitlines()[-1])["ask"]
            assert ask["tool"] == "write_file" and not target.exists()
            await rig.person("approve", id=ask["id"], answer="once")
            assert not (await call).is_error and target.read_text() == "new"
        process.terminate()
        assert await process.wait() == 0


async def test_a_port_in_use_is_one_clear_message(rig, server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with running(rig, "--port", str(port)) as process:
            async with asyncio.timeout(60):
                out, err = await process.communicate()
        assert process.returncode in (2, 3) and str(port) in err.decode() and "Traceback" not in err.decode()
        assert len([one for one in err.decode().splitlines() if one.startswith("earnest: E")]) == 1
        assert out == b""
    async with running(rig, "--port", str(port)) as process:
        await line(process, rf"^ready: http://127\.0\.0\.1:{port}/mcp")
        process.terminate()
        assert await process.wait() == 0

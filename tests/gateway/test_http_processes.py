"""Conversations of clients over HTTP: one for each host process where the kernel can tell, the principal's where it cannot."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED
from earnest.gateway.process import tcp_peers
from earnest.gateway.process.peers import process
from earnest.pdp.conversations import process_part
from gateway.live import Live, Start, reader

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's tables are Linux's")

TESTS = Path(__file__).parents[1]
CLIENT = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from servers.client import HttpClient

async def main():
    client = HttpClient(sys.argv[2], sys.argv[3])
    await client.open(sys.argv[4])
    for line in sys.stdin:
        message = await client.call(line.strip())
        print(json.dumps(message), flush=True)

asyncio.run(main())
"""
PRINCIPAL = (f"user:{os.getuid()}",)


class Other:
    """A client in a process of its own."""

    def __init__(self, live: Live, child: asyncio.subprocess.Process) -> None:
        self._live = live
        self._child = child
        found = process(child.pid)
        assert found is not None
        self.key = (*PRINCIPAL, process_part(found.pid, str(found.start)))

    async def call(self, name: str) -> Any:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(name.encode() + b"\n")
        return json.loads(await asyncio.wait_for(self._child.stdout.readline(), 60))

    @property
    def labels(self) -> int:
        return self._live.app.conversations.labels(self.key)


@pytest.fixture
async def live(gateway: Start, scripted: Callable[..., Any]) -> Live:
    command, _ = scripted({"tools": [reader("read"), reader("clean")]})
    clean = '[labels."one/clean"]\nreads_private = false\nsees_untrusted = false\n'
    return await gateway({"one": {"command": command, "trust": "trusted"}}, more=clean)


@pytest.fixture
async def other(live: Live) -> AsyncIterator[Callable[..., Any]]:
    children: list[asyncio.subprocess.Process] = []

    async def start(era: str = "modern") -> Other:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, str(TESTS), live.url + "/s/one/mcp", live.token, era,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        children.append(child)
        return Other(live, child)

    yield start
    for child in children:
        child.kill()
        await child.wait()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_two_client_processes_do_not_share_labels_and_the_principal_sees_both(live, other, era):
    one, two = await other(era), await other(era)
    assert "result" in await one.call("read")
    assert "result" in await two.call("clean")
    assert (one.labels, two.labels) == (PRIVATE | UNTRUSTED, 0)
    assert live.app.conversations.labels(PRINCIPAL) == PRIVATE | UNTRUSTED


async def test_a_process_that_cannot_be_told_counts_as_the_principal(live, other, monkeypatch):
    monkeypatch.setattr(tcp_peers, "_holders", lambda inodes: {})
    one = await other()
    assert "result" in await one.call("read")
    assert live.app.conversations.own(PRINCIPAL) == PRIVATE | UNTRUSTED
    # What the principal did, every process below it has in its conversation.
    monkeypatch.undo()
    assert (await other()).labels == PRIVATE | UNTRUSTED

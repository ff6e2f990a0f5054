"""A program that a client's host started, and that comes to earnest as a client of its own."""

import asyncio
import json
import sys
from typing import Any

import pytest

from attacks.rig import READ, SHIM, Rig, refused, text_of, tool
from servers.client import StdioClient


def reads(name: str) -> Any:
    return tool(name, **READ)


SCRIPT = {
    "tools": [*map(reads, ("read", "page", "clean")), tool("send"), tool("wipe", destructiveHint=True)],
}
LABELS = """
[labels."notes/read"]
sees_untrusted = false
[labels."notes/page"]
reads_private = false
[labels."notes/clean"]
reads_private = false
sees_untrusted = false
[labels."notes/send"]
reads_private = false
sees_untrusted = false
read_only = true
open_world = true
can_exfiltrate = true
"""
HOST = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
FORMS = {"elicitation": {"form": {}}}


def configured(rig: Rig, more: str = "") -> Any:
    record = rig.server("notes", SCRIPT, trust="trusted")
    rig.asking = "hold_s = 0.3"
    rig.add(LABELS + more)
    return record


async def child(rig: Rig, *, client: str = "", era: str = "legacy", depth: int = 1, **more: Any) -> StdioClient:
    """A client whose host is a program that this process started (`depth` of them in a row)."""
    words = [*SHIM, "stdio", "notes", *(("--client", client) if client else ())]
    for _ in range(depth):
        words = [sys.executable, "-S", "-c", HOST, *words]
    found = await StdioClient.start(words, env=rig.env, cwd=str(rig.folder))
    rig.clients.append(found)
    await found.open(era, **{"timeout": 8.0, **more})
    return found


async def test_what_a_client_starts_has_what_the_client_has_seen(rig: Rig):
    record = configured(rig)
    parent = await rig.stdio("notes")
    for name in ("read", "page"):
        assert not refused(await parent.call(name)), name
    assert refused(await parent.call("send"))
    assert refused(await (await child(rig)).call("send"))
    assert refused(await (await child(rig, depth=3)).call("send"))
    assert [call["name"] for call in record.calls()] == ["read", "page"]


async def test_what_it_sees_the_client_and_all_that_the_client_started_have_seen(rig: Rig):
    record = configured(rig)
    parent, one, two = await rig.stdio("notes"), await child(rig), await child(rig, depth=2)
    assert not refused(await parent.call("clean"))
    # Each of the legs is another program's; they stood there clean before.
    assert not refused(await one.call("read"))
    assert not refused(await two.call("page"))
    for client in (parent, one, two, await child(rig)):
        assert refused(await client.call("send"))
    assert [call["name"] for call in record.calls()] == ["clean", "read", "page"]
    keys = {tuple(line["key"]) for line in await rig.person("conversations")}
    assert max(map(len, keys)) == 3, keys


async def test_it_stays_so_for_the_next_daemon(rig: Rig):
    configured(rig)
    parent, one = await rig.stdio("notes"), await child(rig)
    assert not refused(await one.call("read"))
    await rig.kill()
    assert not refused(await parent.call("page"))
    for client in (one, parent, await child(rig)):
        assert refused(await client.call("send"))


async def test_programs_of_different_hosts_and_of_one_shell_stay_apart(rig: Rig):
    record = configured(rig)
    one, two = await child(rig), await child(rig)
    for name in ("read", "page"):
        assert not refused(await one.call(name))
    assert refused(await one.call("send"))
    assert not refused(await two.call("send"))
    assert [call["name"] for call in record.calls()] == ["read", "page", "send"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("more", ['asks = "person"\n', 'asks = "person"\nconversation = "principal"\n', 'ask = "host"\n'])
async def test_it_cannot_answer_for_a_person_by_whatever_name(rig: Rig, era: str, more: str):
    record = configured(rig, f"[clients.desktop]\n{more}")
    parent = await rig.stdio("notes")
    assert not refused(await parent.call("clean"))
    one = await child(rig, client="desktop", era=era, capabilities=FORMS)
    message = await one.call("wipe")
    assert "waiting for a person" in text_of(message)
    assert not [request for request in one.requests if request["method"] == "elicitation/create"]
    await rig.person("reload")  # what is read anew makes no person of it either
    assert "waiting for a person" in text_of(await one.call("wipe", {"n": 2}))
    assert not [request for request in one.requests if request["method"] == "elicitation/create"]
    assert [call["name"] for call in record.calls()] == ["clean"]


async def test_over_http_it_is_the_same(rig: Rig):
    configured(rig)
    address, token = await rig.person.listening()
    parent = await rig.http("/s/notes/mcp")
    assert not refused(await parent.call("read"))
    # A program over pipes, below a client over HTTP.
    one = await child(rig)
    assert not refused(await one.call("page"))
    assert refused(await one.call("send"))
    assert refused(await parent.call("send"))
    assert address and token


async def test_a_client_that_was_there_before_what_started_it_is_one_with_its_later_connections(rig: Rig):
    """Two servers of one program, each with one leg, while between them its starter became a client."""
    words = [*SHIM, "stdio", "notes"]
    configured(rig)
    two = (
        "import subprocess, sys, threading\n"
        "a = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "b = None\n"
        "for line in sys.stdin.buffer:\n"
        "    which, _, rest = line.partition(b' ')\n"
        "    if which == b'b' and b is None:\n"
        "        b = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "    one = b if which == b'b' else a\n"
        "    one.stdin.write(rest); one.stdin.flush()\n"
        "    if b'\"id\"' in rest:\n"
        "        sys.stdout.buffer.write(one.stdout.readline()); sys.stdout.flush()\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-c", two, *words, env=rig.env, cwd=str(rig.folder),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    reader, writer = process.stdout, process.stdin

    async def say(which: str, method: str, params: Any) -> Any:
        line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        writer.write(f"{which} {json.dumps(line)}\n".encode())
        return json.loads(await asyncio.wait_for(reader.readline(), 60))

    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

    async def call(which: str, name: str) -> Any:
        return await say(which, "tools/call", {"name": name, "arguments": {}})

    try:
        await say("a", "initialize", opening)
        assert not refused(await call("a", "clean"))
        parent = await rig.stdio("notes")
        await say("b", "initialize", opening)
        assert not refused(await call("a", "read"))
        assert not refused(await call("b", "page"))
        assert refused(await call("a", "send"))
        assert refused(await call("b", "send"))
        assert refused(await parent.call("send"))
    finally:
        process.kill()
        await process.wait()

"""Clients that leave, read nothing or send half a line: their calls end, their servers too, and others go on."""

import asyncio
import contextlib
import os
import signal
import subprocess

from attacks.rig import READ, SHIM, Rig, eventually, gone, refused, text_of, tool

TOOLS = [tool("peek", **READ), tool("slow", **READ), tool("wipe", destructiveHint=True)]
WAITING = {"tools": TOOLS, "calls": {"slow": [{"wait_cancel": 60}]}}


async def test_a_client_that_is_killed_in_a_call_cancels_it_and_its_server_ends(rig: Rig):
    record = rig.server("notes", WAITING, trust="trusted")
    client = await rig.stdio("notes")
    await client.begin("tools/call", {"name": "slow", "arguments": {}})
    (event,) = await record.wait("call")
    client.process.send_signal(signal.SIGKILL)
    client.close_stdin()
    await gone(event["pid"])
    await rig.settled(("slow", "allow", "cancelled"))
    again = await rig.stdio("notes")
    assert text_of(await again.call("peek", {"a": 1})) == '{"a":1}'
    assert len(record.calls("slow")) == 1
    rig.verify()


async def test_a_client_that_only_says_no_more_still_gets_its_answers(rig: Rig):
    record = rig.server("notes", {"tools": TOOLS, "calls": {"slow": [{"sleep": 0.3}, {"text": "done"}]}}, trust="trusted")
    client = await rig.stdio("notes")
    call = await client.begin("tools/call", {"name": "slow", "arguments": {}})
    client.close_stdin()
    assert text_of(await client.answer(call)) == "done"
    assert await client.wait() == 0
    await gone(record.events("start")[0]["pid"])


async def test_a_client_that_leaves_an_ask_withdraws_it(rig: Rig):
    rig.asking = "hold_s = 20"
    record = rig.server("notes", WAITING)
    client = await rig.stdio("notes")
    await client.begin("tools/call", {"name": "wipe", "arguments": {}})
    await rig.asked()
    client.process.send_signal(signal.SIGKILL)
    await client.close()
    await rig.settled(("wipe", "ask", "cancelled"))
    assert await rig.person("approvals") == []
    assert record.calls() == []


async def test_half_a_line_at_the_end_of_input_runs_nothing(rig: Rig):
    record = rig.server("notes", WAITING, trust="trusted")
    client = await rig.stdio("notes")
    await client.call("peek", {"n": 0})
    await client.send_raw(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"peek","arguments":{"n":1}}')
    await client.close()
    assert len(record.calls("peek")) == 1


async def test_a_line_that_comes_in_pieces_is_one_call(rig: Rig):
    record = rig.server("notes", WAITING, trust="trusted")
    client = await rig.stdio("notes")
    client.expect(9)
    line = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"peek","arguments":{"n":1}}}\n'
    for part in (line[:25], line[25:70], line[70:-1], line[-1:]):
        await client.send_raw(part)
        await asyncio.sleep(0.02)
    assert text_of(await client.answer(9)) == '{"n":1}'
    assert len(record.calls()) == 1


async def test_a_client_that_reads_nothing_keeps_nobody_waiting_and_bounds_the_memory(rig: Rig):
    big = [{"text": "x" * 500_000}]
    rig.server("notes", {"tools": TOOLS, "calls": {"peek": big}}, trust="trusted")
    rig.server("other", {"tools": TOOLS}, trust="trusted")
    deaf = subprocess.Popen([*SHIM, "stdio", "notes"], env=rig.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert deaf.stdin is not None and deaf.stdout is not None
    os.set_blocking(deaf.stdin.fileno(), False)  # what no longer fits is not said
    about = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}'
    deaf.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}\n' % about)
    deaf.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    deaf.stdin.flush()
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"peek","arguments":{}}}\n'
    with contextlib.suppress(BlockingIOError):
        for n in range(1, 400):
            deaf.stdin.write(call % n)
            deaf.stdin.flush()
    client = await rig.stdio("other", client="another")
    for n in range(20):
        assert not refused(await client.call("peek", {"n": n}))
    daemon = await rig.daemon()

    def resident() -> int:
        with open(f"/proc/{daemon}/statm") as file:
            return int(file.read().split()[1]) * 4096

    await asyncio.sleep(1.0)
    assert resident() < 400 * 1024 * 1024
    deaf.kill()
    deaf.wait()
    deaf.stdout.close()
    with contextlib.suppress(OSError):
        deaf.stdin.close()
    await eventually(lambda: resident() < 400 * 1024 * 1024)
    assert not refused(await client.call("peek"))

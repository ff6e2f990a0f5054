"""Servers that die, babble, stay silent or answer wrongly: the caller is told, nothing hangs, no call runs twice."""

import asyncio
import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from attacks.rig import READ, Rig, gone, refused, text_of, tool

TOOLS = [tool("peek", **READ), tool("slow", **READ)]
TEXT = {"content": [{"type": "text", "text": "late"}]}
TRUST = "trusted"

ENDS: dict[str, Any] = {
    "dies": [{"kill": True}],
    "exits": [{"exit": 0}],
    "closes its output": [{"close": True}, {"sleep": 30}],
    "half a line, then death": [{"raw": '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"te'}, {"kill": True}],
}


@pytest.mark.parametrize("how", ENDS)
async def test_a_server_that_ends_in_a_call_is_told_and_started_again_without_the_call(rig: Rig, how: str):
    record = rig.server("notes", {"tools": TOOLS, "calls": {"slow": ENDS[how], "peek": [{"text": "back"}]}}, trust=TRUST)
    client = await rig.stdio("notes")
    answer = await client.call("slow")
    assert refused(answer) and "may or may not" in text_of(answer)
    assert text_of(await client.call("peek")) == "back"
    assert len(record.calls("slow")) == 1
    assert len({event["pid"] for event in record.events("start")}) == 2
    await rig.settled(("slow", "allow", "lost"), ("peek", "allow", "ok"))
    rig.verify()


ODD: dict[str, list[dict[str, Any]]] = {
    "answers twice": [{"text": "first"}, {"text": "second"}],
    "another id": [{"wrong_id": 99999}, {"text": "first"}],
    "another id, a string": [{"wrong_id": "1"}, {"text": "first"}],
    "garbage before": [{"raw": "not json\n\x00\x01\n{\n[1]\n"}, {"text": "first"}],
    "blank lines": [{"raw": "\n\n\r\n"}, {"text": "first"}],
}
UNREADABLE = {
    "duplicate keys": '{"jsonrpc":"2.0","id":$ID,"result":{},"result":{"content":[]}}',
    "result and error": '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":1,"message":"x"}}',
    "half a pair": '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"\\ud83d"}]}}',
}


@pytest.mark.parametrize("how", ODD)
async def test_what_is_no_answer_to_this_call_reaches_nobody(rig: Rig, how: str):
    record = rig.server("notes", {"tools": TOOLS, "calls": {"peek": ODD[how], "slow": [{"text": "other"}]}}, trust=TRUST)
    client = await rig.stdio("notes")
    assert text_of(await client.call("peek")) == "first"
    assert text_of(await client.call("slow")) == "other"
    assert client.orphans == [] and client.garbage == []
    assert len(record.calls()) == 2
    await rig.settled(("peek", "allow", "ok"), ("slow", "allow", "ok"))
    rig.verify()


@pytest.mark.parametrize("how", UNREADABLE)
async def test_an_answer_that_cannot_be_read_ends_its_call_at_once(rig: Rig, how: str):
    steps = [{"line": UNREADABLE[how]}, {"text": "too late"}]
    record = rig.server("notes", {"tools": TOOLS, "calls": {"peek": steps, "slow": [{"text": "other"}]}}, trust=TRUST)
    client = await rig.stdio("notes")
    answer = await client.call("peek")
    assert refused(answer) and "cannot be read" in text_of(answer)
    assert text_of(await client.call("slow")) == "other"
    assert client.orphans == [] and client.garbage == []
    assert len(record.calls()) == 2
    await rig.settled(("peek", "allow", "malformed"), ("slow", "allow", "ok"))
    rig.verify()


async def test_a_server_gets_its_three_descriptors_and_no_others(rig: Rig, tmp_path: Path):
    out = tmp_path / "fds"
    command, _ = rig.script("notes", {"tools": TOOLS})
    program = tmp_path / "notes.sh"
    program.write_text(f"ls /proc/self/fd > {out}\nexec {shlex.join(command)}\n")
    rig.add(f"[servers.notes]\ncommand = {json.dumps(['sh', str(program)])}\n")
    client = await rig.stdio("notes")
    await client.list_all()
    assert set(out.read_text().split()) - {"3"} == {"0", "1", "2"}  # 3 is the folder that is being listed


async def test_a_flood_on_stderr_neither_blocks_nor_fills_the_disk(rig: Rig):
    flood = 100 * 1024 * 1024
    rig.server("notes", {"tools": TOOLS, "calls": {"peek": [{"stderr": flood}, {"text": "done"}]}}, trust=TRUST)
    client = await rig.stdio("notes")
    before = _memory(await rig.daemon())
    assert text_of(await client.call("peek")) == "done"
    written = sum(path.stat().st_size for path in rig.instance.rglob("*") if path.is_file())
    assert written < 10 * 1024 * 1024
    assert _memory(await rig.daemon()) - before < 60 * 1024
    assert len(client.stderr) < 1024 * 1024


def _memory(pid: int) -> int:
    """Resident kB of a process."""
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1])


async def test_a_server_that_never_answers_is_given_up_and_told(rig: Rig):
    record = rig.server("notes", {"tools": TOOLS, "calls": {"slow": [{"never": True}]}}, trust=TRUST, more="timeout = 3\n")
    client = await rig.stdio("notes")
    answer = await client.call("slow")
    assert refused(answer) and "in time" in text_of(answer)
    await record.wait("cancelled")
    assert text_of(await client.call("peek", {"a": 1})) == '{"a":1}'
    await rig.settled(("slow", "allow", "timeout"), ("peek", "allow", "ok"))
    assert len(record.calls("slow")) == 1


async def test_an_answer_after_the_end_of_patience_is_nobodys(rig: Rig):
    steps = [{"sleep": 4}, {"text": "late"}]
    script = {"tools": TOOLS, "calls": {"slow": steps}, "ignore_cancel": True}
    record = rig.server("notes", script, trust=TRUST, more="timeout = 3\n")
    client = await rig.stdio("notes")
    assert refused(await client.call("slow"))
    await asyncio.sleep(1.5)
    assert text_of(await client.call("peek", {"a": 1})) == '{"a":1}'
    assert client.orphans == [] and len(record.calls("slow")) == 1


@pytest.mark.parametrize("script", ["exit 3", "echo no json; exit 0"])
async def test_a_server_that_never_becomes_one_fails_its_calls_in_words(rig: Rig, script: str):
    rig.add(f'[servers.notes]\ncommand = {json.dumps(["sh", "-c", script])}\ntrust = "trusted"\n')
    shim = await rig.shim("notes")
    opened = await shim.open("legacy")
    answer = await shim.call("peek") if "result" in opened else opened
    assert refused(answer)
    assert "notes" in json.dumps(answer)


async def test_a_missing_npx_is_one_clear_message(rig: Rig):
    rig.add('[servers.notes]\ncommand = ["npx-that-is-not-there", "-y", "some-server"]\n')
    shim = await rig.shim("notes")
    assert await shim.wait() == 3
    assert b"npx-that-is-not-there" in shim.stderr and b"PATH" in shim.stderr
    assert b"Traceback" not in shim.stderr


async def test_a_server_that_ignores_sigterm_and_its_grandchild_end_with_the_client(rig: Rig, tmp_path: Path):
    command, _ = rig.script("stubborn", {"tools": TOOLS, "linger": 600})
    pids = tmp_path / "pids"
    program = tmp_path / "stubborn.py"
    program.write_text(
        "import os, signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"  # holds the same pipes
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.execv({command[0]!r}, {command!r})\n"
    )
    rig.add(f'[servers.stubborn]\ncommand = {json.dumps([sys.executable, "-S", str(program)])}\ntrust = "trusted"\n')
    client = await rig.stdio("stubborn")
    assert text_of(await client.call("peek", {"a": 1})) == '{"a":1}'
    server, child = map(int, pids.read_text().split())
    await client.close()
    await gone(server)
    await gone(child)


async def test_a_server_that_dies_while_its_grandchild_holds_the_pipes_is_noticed(rig: Rig, tmp_path: Path):
    script = {"tools": TOOLS, "calls": {"slow": [{"never": True}]}}
    command, record = rig.script("forking", script)
    program = tmp_path / "forking.py"
    program.write_text(f"import os, subprocess\nsubprocess.Popen(['sleep', '600'])\nos.execv({command[0]!r}, {command!r})\n")
    rig.add(f'[servers.forking]\ncommand = {json.dumps([sys.executable, "-S", str(program)])}\ntrust = "trusted"\n')
    client = await rig.stdio("forking")
    call = await client.begin("tools/call", {"name": "slow", "arguments": {}})
    (event,) = await record.wait("call")
    os.kill(event["pid"], signal.SIGKILL)
    assert refused(await client.answer(call))
    assert text_of(await client.call("peek", {"a": 1})) == '{"a":1}'
    assert len(record.calls("slow")) == 1


async def test_a_server_that_reads_nothing_ends_and_does_not_fill_the_memory(rig: Rig):
    script = {"tools": TOOLS, "calls": {"slow": [{"stop_reading": 60}]}}
    record = rig.server("notes", script, trust=TRUST, more="timeout = 20\n")
    client = await rig.stdio("notes")
    stuck = await client.begin("tools/call", {"name": "slow", "arguments": {}})
    await asyncio.sleep(0.2)
    big = "x" * (2 * 1024 * 1024)
    calls = [await client.begin("tools/call", {"name": "peek", "arguments": {"big": big}}) for _ in range(8)]
    assert refused(await client.answer(stuck))
    answers = [await client.answer(call) for call in calls]
    assert any(refused(answer) for answer in answers)
    assert text_of(await client.call("peek", {"a": 1})) == '{"a":1}'
    assert len(record.calls("slow")) == 1 and len(record.calls("peek")) <= len(calls) + 1
    rig.verify()

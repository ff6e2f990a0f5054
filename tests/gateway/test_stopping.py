"""A daemon that is told to end answers every call on its pipes, once."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from gateway.live import reader


def daemon_of(home: Any) -> int:
    """The daemon of a test's home."""
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"earnest.gateway.process.daemon" in command and str(home.earnest).encode() in command:
            return int(entry.name)
    raise AssertionError("no daemon")


@pytest.mark.slow
async def test_a_call_in_flight_at_the_daemons_end_is_answered_once(home, scripted, stdio_client, earnest_cmd):
    command, record = scripted({"tools": [reader("hang")], "calls": {"hang": [{"wait_cancel": 60}]}})
    home.config.write_text(f'preset = "observe"\n[servers.one]\ncommand = {json.dumps(command)}\n')
    client = await stdio_client([*earnest_cmd, "stdio", "one"], home.env)
    await client.open("legacy")
    id = await client.begin("tools/call", {"name": "hang", "arguments": {}})
    await record.wait("call")
    os.kill(daemon_of(home), signal.SIGTERM)
    answer = await client.answer(id, 20)
    assert "may" in json.dumps(answer)
    await client.ended.wait()
    assert client.orphans == [] and len(record.calls()) == 1

"""A person at a terminal who reads a question and types an answer."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Seen:
    """What a command at a terminal did: `shown` on the terminal, `out` on standard output."""

    code: int
    shown: str
    out: str


def run_at_terminal(
    command: Sequence[str], answers: Sequence[str], env: Mapping[str, str], cwd: Path, timeout: float = 60.0
) -> Seen:
    """Run a command to its end at a terminal of its own, typing an answer to each question; standard output is a pipe. A hang
    fails the test."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        list(command), stdin=slave, stdout=subprocess.PIPE, stderr=slave, env=dict(env), cwd=cwd, start_new_session=True
    )
    os.close(slave)
    assert process.stdout is not None
    shown, out, left = b"", b"", list(answers)
    until = time.monotonic() + timeout
    streams = [master, process.stdout.fileno()]
    try:
        while streams:
            ready, _, _ = select.select(streams, [], [], max(0.0, until - time.monotonic()))
            if not ready:
                pytest.fail(f"{command} did not end within {timeout} s; it showed {shown.decode(errors='replace')!r}")
            for stream in ready:
                try:
                    data = os.read(stream, 65536)
                except OSError:  # how Linux says that nobody holds the other end of a terminal
                    data = b""
                if not data:
                    streams.remove(stream)
                elif stream == master:
                    shown += data
                else:
                    out += data
            if left and shown.endswith(b"/N] "):
                os.write(master, left.pop(0).encode() + b"\n")
                shown += b"\n"
        code = process.wait(max(0.1, until - time.monotonic()))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)
        process.stdout.close()
    return Seen(code, shown.decode().replace("\r\n", "\n"), out.decode())

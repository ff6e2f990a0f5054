"""Running the real command: to its end, in the foreground, and at a terminal."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from conftest import Finished, Home
from earnest.cli.demo_client import Answer, DemoClient

PATIENCE_S = 60.0


class Foreground:
    """`earnest run --json` or `serve --json`, running."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        first = self.line()
        assert "ready" in first, first
        self.ready: dict[str, Any] = first["ready"]

    def line(self) -> dict[str, Any]:
        """The next line of output."""
        assert self.process.stdout is not None and self.process.stderr is not None
        assert select.select([self.process.stdout], [], [], PATIENCE_S)[0], "said nothing"
        text = self.process.stdout.readline()
        assert text, self.process.stderr.read()
        found: dict[str, Any] = json.loads(text)
        return found

    def client(self) -> DemoClient:
        """An HTTP client of it."""
        with open(self.ready["token_file"]) as file:
            return DemoClient(self.ready["address"], file.read().strip(), PATIENCE_S)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, dict[str, Any]]:
        """Tell it to end: exit code and last words."""
        self.process.send_signal(number)
        said = self.line()
        while "ended" not in said:
            said = self.line()
        return self.process.wait(PATIENCE_S), said["ended"]


class AtTerminal:
    """A command with a pseudo-terminal for input and output, as a person has it."""

    def __init__(self, command: list[str], env: dict[str, str], out: int | None = None) -> None:
        self._own, other = pty.openpty()
        termios.tcsetwinsize(other, (40, 120))
        self.process = subprocess.Popen(
            command, env=env, stdin=other, stdout=other if out is None else out, stderr=other, start_new_session=True
        )
        os.close(other)
        self.seen = ""

    def expect(self, pattern: str) -> str:
        """Read until the pattern has come; what was read up to there."""
        end = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            ready = left > 0 and select.select([self._own], [], [], left)[0]
            data = b""
            if ready:
                with contextlib.suppress(OSError):  # the last one closed the other side
                    data = os.read(self._own, 65536)
            assert data, f"{pattern!r} did not come after {self.seen!r}"
            self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._own, text.encode() + b"\n")

    def end(self) -> int:
        """Wait for its end; the exit code."""
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self._own], [], [], 0.02)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._own, 65536).decode(errors="replace").replace("\r\n", "\n")
        return self.process.wait(0.1)

    def close(self) -> None:
        """Nothing is left."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._own)


@pytest.fixture
def cli(home: Home, earnest_cmd: list[str], run_bounded: Callable[..., Finished]) -> Callable[..., Finished]:
    """`cli("tools", "--json", …)`: the command to its end, with the test's home. `input`, `cwd`, `timeout` as `run_bounded`."""

    def run(*words: str, **more: Any) -> Finished:
        return run_bounded([*earnest_cmd, *words], {**home.env, **more.pop("env", {})}, **more)

    return run


@pytest.fixture
def foreground(home: Home, earnest_cmd: list[str]) -> Iterator[Callable[..., Foreground]]:
    """`foreground("run", "--demo")`: started, ready, and ended with the test."""
    started: list[Foreground] = []

    def start(*words: str) -> Foreground:
        started.append(Foreground([*earnest_cmd, *words, "--json"], home.env))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.fixture
def at_terminal(home: Home, earnest_cmd: list[str]) -> Iterator[Callable[..., AtTerminal]]:
    """`at_terminal("approvals")`: started at a pseudo-terminal; ended with the test."""
    started: list[AtTerminal] = []

    def start(*words: str, out: int | None = None) -> AtTerminal:
        started.append(AtTerminal([*earnest_cmd, *words], home.env, out))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def demo(foreground: Callable[..., Foreground]) -> Foreground:
    """`earnest run` with the demo servers, since nothing is configured."""
    return foreground("run", "--port", "0")


@pytest.fixture
def calling() -> Iterator[Callable[..., Future[Answer]]]:
    """`calling(client, server, tool, arguments)`: a call under way."""
    pool = ThreadPoolExecutor(4)
    yield lambda client, *what: pool.submit(client.call, *what)
    pool.shutdown(wait=False)



"""Whatever goes wrong before a tool is used: one refusal on standard output, in half a second."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import Home
from earnest.shim import paths
from hook.conftest import BOOT, Host

LIMIT_S = 0.5
CALL = {"tool_name": "Read", "tool_input": {"file_path": "/x"}, "tool_use_id": "u"}


def event(name: str = "PreToolUse", **more: Any) -> bytes:
    return json.dumps({"session_id": "one", "cwd": "/", "hook_event_name": name, **CALL, **more}).encode()


def run(home: Home, body: bytes, name: str = "PreToolUse", **more: Any) -> tuple[int, bytes, bytes, float]:
    begun = time.monotonic()
    command = [sys.executable, "-I", "-S", str(BOOT), "hook", "claude-code", name]
    done = subprocess.run(command, input=body, env=home.env, capture_output=True, timeout=30, **more)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - begun


def is_one_denial(out: bytes) -> bool:
    said = json.loads(out)["hookSpecificOutput"]
    assert said["hookEventName"] == "PreToolUse" and said["permissionDecisionReason"]
    return bool(said["permissionDecision"] == "deny")


def instance(home: Home) -> Path:
    folder = Path(paths.instance(home.env, ""))
    os.close(paths.open_folder(str(folder)))
    return folder


def test_without_a_daemon_it_is_refused_in_time_and_one_is_started(home: Home) -> None:
    with open(instance(home) / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # no daemon can be up in time, however fast the machine is
        code, out, _, took = run(home, event())
    assert code == 0 and is_one_denial(out) and took < LIMIT_S + 0.2, took
    assert run(home, event("SessionStart", source="startup"), "SessionStart")[:2] == (0, b"")
    code, out, _, _ = run(home, event())
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow"


def test_a_daemon_that_accepts_and_is_silent_is_not_waited_for(home: Home) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(instance(home) / "s"))
    listener.listen(8)
    with listener:
        code, out, _, took = run(home, event())
        assert code == 0 and is_one_denial(out) and took < LIMIT_S + 0.2, took


def test_a_daemon_that_stopped_in_its_tracks_prints_nothing_later(host: Host) -> None:
    host.start()
    (daemon,) = [
        int(one.name)
        for one in Path("/proc").iterdir()
        if one.name.isdigit() and b"earnest.daemon" in _command(one) and str(host.home.path).encode() in _command(one)
    ]
    os.kill(daemon, signal.SIGSTOP)
    read, write = os.pipe()
    try:
        process = subprocess.Popen(host.command("PreToolUse"), stdin=subprocess.PIPE, stdout=write, env=host.home.env)
        begun = time.monotonic()
        process.communicate(event(), 30)
        assert process.returncode == 0 and time.monotonic() - begun < LIMIT_S + 0.2
    finally:
        os.kill(daemon, signal.SIGCONT)
        os.close(write)
    assert host.before("Read", file_path="/x") == "allow"  # by now the daemon has been through what was waiting
    with open(read, "rb") as printed:
        assert is_one_denial(printed.read())


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"{}",
        b"\xff\xfe",
        event("PostToolUse"),
        event(session_id=7),
        event(session_id="../x/y z"),
        event(tool_input="ls"),
        event(tool_name=""),
        event()[:-1] + b',"tool_name":"Read"}',
        event().replace(b'"/x"', b'"/x","file_path":"/y"'),
    ],
)
def test_an_event_that_is_none_is_refused(host: Host, body: bytes) -> None:
    host.start()
    code, out, _, took = run(host.home, body)
    assert code == 0 and is_one_denial(out) and took < LIMIT_S + 0.2, (out, took)


def test_an_event_over_the_limit_is_refused(host: Host) -> None:
    host.start()
    code, out, _, took = run(host.home, event(tool_input={"x": "a" * (17 << 20)}))
    assert code == 0 and is_one_denial(out)
    assert took < LIMIT_S + 0.6, took


@pytest.mark.parametrize("how", ["closed", "broken"])
def test_a_closed_output_is_refused_by_the_exit_code(host: Host, how: str) -> None:
    host.start()
    command = " ".join(host.command("PreToolUse"))
    if how == "closed":
        done = subprocess.run(["sh", "-c", f"exec {command} >&-"], input=event(), env=host.home.env, stderr=subprocess.PIPE)
        assert done.returncode == 2
        return
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(host.command("PreToolUse"), input=event(), env=host.home.env, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.returncode == 2


@pytest.mark.parametrize("name", ["SessionEnd", "PostToolUse", "SubagentStop", "UserPromptSubmit"])
def test_events_that_decide_nothing_print_nothing(host: Host, name: str) -> None:
    host.start()
    assert run(host.home, event(name, prompt="hello", tool_response={"x": 1}), name)[:2] == (0, b"")
    code, out, err, _ = run(host.home, b"{", name)
    assert (code, out) == (1, b"") and b"E1" in err


def test_an_event_that_is_not_known_prints_nothing(host: Host) -> None:
    host.start()
    assert run(host.home, event("Notification"), "Notification")[:2] == (0, b"")

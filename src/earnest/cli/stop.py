"""`earnest stop`: end the daemon in good order."""

from __future__ import annotations

import json
import os
import time
from typing import Final

from earnest.cli.daemon import instance, kept_in, output, running
from earnest.cli.options import Config, Json
from earnest.core.errors import EarnestError
from earnest.gateway.process.control import Control

WAIT_S: Final = 25.0
"""Longer than a daemon takes to drain."""
FAILING_S: Final = 3.0


def stop(config: Config = "", as_json: Json = False) -> int:
    """End the daemon: calls in flight may finish, servers end, receipts are written. Clients that are connected start a new one
    with their next call.

    \b
    Examples:
      earnest stop
      earnest stop --config team.toml      the daemon of another configuration
    """
    kept_in(config)
    control = _reach(config)
    if control is None:
        _say(as_json, {"stopped": False}, "No daemon runs.")
        return 0
    with control:
        told = control.call("stop")
    end = time.monotonic() + WAIT_S
    while _alive(told["pid"], config):
        if time.monotonic() > end:
            raise EarnestError(
                "E1511", f"the daemon (process {told['pid']}) has not ended in {WAIT_S:g} s", "See daemon.log.", exit_code=3
            )
        time.sleep(0.02)
    many = "client was" if told["clients"] == 1 else "clients were"
    _say(as_json, {"stopped": True, **told}, f"The daemon has ended; {told['clients']} {many} connected.")
    return 0


def _reach(config: str) -> Control | None:
    """The daemon, or None. One that could not start says so for a moment, and is then gone: that is no error of stopping."""
    end = time.monotonic() + FAILING_S
    while True:
        try:
            return running(config)
        except EarnestError:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)


def _say(as_json: bool, facts: dict[str, object], text: str) -> None:
    if as_json:
        print(json.dumps(facts))
    else:
        output().line(text)


def _alive(pid: int, config: str) -> bool:
    """Whether the process is there and still ours: the instance's socket is the first to go."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False
    return os.path.isdir(instance(config)) and _named(pid)


def _named(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"earnest.daemon" in file.read()
    except FileNotFoundError:
        return not os.path.isdir("/proc/self")

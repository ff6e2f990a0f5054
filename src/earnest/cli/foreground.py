"""What `run` and `serve` share: the daemon with its HTTP listener, held by a command in the foreground."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import msgspec

from earnest.cli.daemon import connect, instance, running
from earnest.config.settings import load
from earnest.core.errors import EarnestError
from earnest.shim import paths


class Told(Exception):
    """SIGINT or SIGTERM came."""


class Opened(msgspec.Struct, frozen=True):
    """A daemon that listens. `started`: it was started for this."""

    config: str
    named: bool
    instance: str
    address: str
    token_file: str
    started: bool
    servers: tuple[str, ...]

    @property
    def flag(self) -> str:
        """` --config PATH` for commands that reach the same daemon; empty for the usual configuration."""
        return f" --config {self.config}" if self.named else ""


@contextmanager
def until_told() -> Iterator[None]:
    """Raises `Told` inside for SIGINT and SIGTERM."""

    def told(number: int, _: FrameType | None) -> None:
        raise Told(signal.Signals(number).name)

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_listener(config: str, host: str | None, port: int | None) -> Opened:
    """Start or find the daemon and let it listen. Where that fails, a daemon started for it is ended again."""
    path, named = paths.config_path(os.environ, config)
    settings = load(path, named, os.environ)
    found = running(config)
    started = found is None
    with found or connect(config) as control:
        try:
            status = control.call("status")
            if not started and status["config_sha256"] != settings.sha256:
                control.call("reload")
                status = control.call("status")
            heard = control.call("listen", host=host, port=port)
        except BaseException:
            if started:
                with suppress(EarnestError):
                    control.call("stop")
            raise
    servers = [line["name"] for line in status["servers"]] + list(status["broken"])
    return Opened(path, named, instance(config), heard["address"], heard["token_file"], started, tuple(sorted(servers)))


def close_listener(config: str) -> str:
    """Give the listener up, and the daemon if nobody else uses it; says in a sentence what happened."""
    control = running(config)
    if control is None:
        return "The daemon has ended."
    with control:
        left = control.call("unlisten")
        if left["holders"]:
            return "Another earnest in the foreground keeps the daemon and its address."
        if left["clients"]:
            clients = f"{left['clients']} client{'s' * (left['clients'] != 1)} on pipes"
            return (
                f"The address is closed. The daemon goes on for {clients}, and ends by itself some time after the last "
                "of them; `earnest stop` ends it now."
            )
        control.call("stop")
    return "The daemon has ended."


def look(config: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Each server with its tools, as the operation `tools` gives it; `{"error": EarnestError}` for one that cannot be had."""

    def one(name: str) -> tuple[str, dict[str, Any]]:
        try:
            with connect(config) as control:
                found: list[dict[str, Any]] = control.call("tools", server=name)
                return name, found[0]
        except EarnestError as error:
            return name, {"error": error}

    if not names:
        return {}
    pool = ThreadPoolExecutor(min(8, len(names)))
    try:
        return dict(pool.map(one, names))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def hold(opened: Opened, ready: Callable[[], None], asked: Callable[[dict[str, Any]], None]) -> None:
    """Hold the daemon until told to end, and hand on each ask. `ready` is called once it is held."""
    with connect(opened.config if opened.named else "") as control:
        ready()
        for ask in control.stream("hold"):
            asked(ask)


def program() -> str:
    """How a client's configuration starts earnest: the script that was started, where it was one."""
    own = os.path.abspath(sys.argv[0])
    beside = os.path.join(os.path.dirname(sys.executable), "earnest")
    for path in (own if os.path.basename(own) == "earnest" else "", beside):
        if path and os.access(path, os.X_OK):
            return path
    return "earnest"

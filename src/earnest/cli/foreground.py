"""What `run` and `serve` share: the daemon with its HTTP listener, held by a command in the foreground."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

import msgspec

import earnest
from earnest.cli.daemon import connect, instance, running
from earnest.cli.style import Terminal
from earnest.config.settings import load
from earnest.core.errors import EarnestError
from earnest.gateway.loss import REMEDY
from earnest.shim import paths

T = TypeVar("T")


class Told(Exception):
    """SIGINT or SIGTERM came; the message names it."""


class Opened(msgspec.Struct, frozen=True):
    """A daemon that listens. `started`: it was started for this."""

    config: str
    named: bool
    instance: str
    address: str
    token_file: str
    started: bool
    servers: tuple[str, ...]
    broken: dict[str, str] = {}
    """Servers that cannot be started as things are, each with why."""
    lost: str = ""
    """What the store has lost, if no person has understood it yet."""

    @property
    def flag(self) -> str:
        """` --config PATH` for commands that reach the same daemon; empty for the usual configuration."""
        return f" --config {self.config}" if self.named else ""


class Signals:
    """SIGINT and SIGTERM, told in order and never inside other code.

    A handler that raises may do so anywhere, within a fork or a finalizer too, where what it raises is lost. Here it only
    notes the signal, and the main thread raises `Told` where it waits: in `during`, `hold` and `check`.
    """

    def __init__(self) -> None:
        self._news: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._told = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._told = signal.Signals(number).name
        self._news.put(("told", self._told))

    def check(self) -> None:
        """Raises `Told` if a signal came."""
        if self._told:
            raise Told(self._told)

    def during(self, work: Callable[[], T]) -> T:
        """What `work` gives, done in a thread of its own; raises `Told` without waiting for it when a signal comes."""

        def run() -> None:
            try:
                self._news.put(("done", work()))
            except BaseException as error:
                self._news.put(("failed", error))

        threading.Thread(target=run, daemon=True).start()
        result: T = self._next()
        return result

    def hold(self, opened: Opened, ready: Callable[[], None], asked: Callable[[dict[str, Any]], None]) -> None:
        """Hold the daemon until a signal comes, and hand on each ask. `ready` is called once all is set up."""
        with connect(opened.config if opened.named else "") as control:

            def listen() -> None:
                try:
                    for ask in control.stream("hold"):
                        self._news.put(("done", ask))
                except Exception as error:
                    self._news.put(("failed", error))

            threading.Thread(target=listen, daemon=True).start()
            ready()
            while True:
                asked(self._next())

    def _next(self) -> Any:
        self.check()
        kind, value = self._news.get()
        if kind == "failed":
            raise value
        self.check()
        return value


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
    address, token_file, lost = heard["address"], heard["token_file"], status["store_lost"]
    broken = dict(status["broken"])
    return Opened(path, named, instance(config), address, token_file, started, tuple(sorted(servers)), broken, lost)


def tell_lost(terminal: Terminal, opened: Opened) -> None:
    """Say loudly that the store lost something, where it did."""
    if opened.lost:
        terminal.line(f"E1416: {opened.lost}.", "bad")
        terminal.line("  Every conversation counts as private and untrusted, and no definition as seen.", "bad")
        terminal.line(f"  {REMEDY}")
        terminal.line()


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


def program() -> str:
    """How a client's configuration starts earnest: the script beside this interpreter, a checkout's, or the one on the PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "earnest")
    checkout = os.path.join(os.path.dirname(os.path.abspath(earnest.__file__)), "..", "..", "bin", "earnest")
    for path in (beside, os.path.normpath(checkout)):
        if os.access(path, os.X_OK):
            return path
    return shutil.which("earnest") or "earnest"

"""Keeps a box, outside of it: waits for its end, whoever brings that about, and ends as its command did."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

from earnest.sandbox.launch import kernel
from earnest.sandbox.launch.report import Report

FAILED: Final = 125
"""Status where the box could not be made."""
_LONGEST_S: Final = 86400.0
"""That it waits at once: the kernel takes no more than some days."""
FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that are handed on to the command."""


class Inner(NamedTuple):
    """The process that holds all that runs in the box, and what makes it end with all of it."""

    process: int
    end: Callable[[], None]


class Begun(NamedTuple):
    """A box's process that has begun: its plan, where events go, since when, whom it must not outlive, its line to the Box."""

    plan: dict[str, Any]
    report: Report
    at: float
    above: int
    control: socket.socket


def begin(path: str) -> Begun:
    """Read the plan at `path` and get hold of what a box's process needs; ends this process where that fails."""
    begun = time.monotonic()
    parent = os.getppid()
    with open(path, "rb") as file:
        plan: dict[str, Any] = json.load(file)
    os.closerange(3, 1 << 16)
    state: str = plan["state"]
    above = kernel.syscall("pidfd_open", parent, 0)
    events = -1
    if plan["watch"]:
        events = os.open(f"{state}/events", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        control = line_to_box(state)
    except OSError as error:
        give_up(state, str(error))
    return Begun(plan, Report(events, begun), begun, above, control)


def look_out() -> None:
    """Where that is root: come before what runs inside, so that it cannot keep its watchers from looking."""
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -5)


def line_to_box(state: str) -> socket.socket:
    """The line to the Box. A path of a socket must be short, so it is named by its folder's descriptor."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{state}/ended")  # of an earlier start
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(state, os.O_PATH | os.O_DIRECTORY)
    control.connect(f"/proc/self/fd/{folder}/box")
    os.close(folder)
    return control


def give_up(state: str, why: str) -> NoReturn:
    with contextlib.suppress(OSError), open(f"{state}/ended", "w") as file:
        json.dump({"status": None, "limit": "", "error": why}, file)
    print(f"earnest: the box could not be made: {why}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(FAILED)


class Keeper:
    """Waits for the end of a box, whoever brings it about."""

    def __init__(self, begun: Begun, status: int, inner: Inner) -> None:
        self._plan = begun.plan
        self._report = begun.report
        self._until = begun.at + begun.plan["limits"]["wall_s"]
        self._above = begun.above
        self._control = begun.control
        self._status = status
        self._inner = inner

    def serve(self) -> NoReturn:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):  # the command's alone, so that its closing them is seen
            os.dup2(null, number)
        for number in FORWARDED:
            signal.signal(number, self._forward)
        poll = select.poll()
        poll.register(self._above, select.POLLIN)
        poll.register(self._control, 0)  # no event but its hanging up
        poll.register(self._status, select.POLLIN)
        while True:
            left = self._until - time.monotonic()
            ready = poll.poll(min(max(0.0, left), _LONGEST_S) * 1000)
            if not ready and left > _LONGEST_S:
                continue
            if not ready:
                self._report.say("refused", "wall", detail="limit of the box")
                self._end({"status": None, "limit": "wall"})
            for descriptor, _ in ready:
                if descriptor == self._status:
                    text = os.read(self._status, 65536)
                    told: dict[str, Any] = json.loads(text) if text else {"status": None, "limit": ""}
                    if "error" in told:
                        self._kill()
                        give_up(self._plan["state"], told["error"])
                    self._end(told)
                elif descriptor == self._above:
                    self._kill()
                    # Whoever would take the folder away may have gone with our parent.
                    if poll_hung_up(self._control):
                        self._remove()
                    os._exit(FAILED)
                else:
                    self._kill()
                    if not os.path.exists(f"{self._plan['state']}/closing"):
                        self._remove()
                    os._exit(FAILED)

    def _forward(self, number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._inner.process, number)

    def _kill(self) -> None:
        self._inner.end()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._inner.process, 0)

    def _remove(self) -> None:
        """Take away what the box was made of: whoever would have done it is gone."""
        import shutil  # slow to import, and rarely needed

        for path in (*self._plan.get("made", ()), self._plan["state"]):
            shutil.rmtree(path, ignore_errors=True)

    def _end(self, told: dict[str, Any]) -> NoReturn:
        """End as the command did."""
        self._kill()
        raw = told["status"]
        limit = told["limit"]
        plain = None if raw is None or limit else os.waitstatus_to_exitcode(raw)
        if plain == -signal.SIGXCPU:
            limit = "cpu"
        with contextlib.suppress(OSError):
            temporary = f"{self._plan['state']}/ended.new"
            with open(temporary, "w") as file:
                json.dump({"status": None if limit else plain, "limit": limit}, file)
            os.rename(temporary, f"{self._plan['state']}/ended")
        if plain is None or limit:
            plain = -signal.SIGKILL
        if plain < 0:
            with contextlib.suppress(OSError, ValueError):  # SIGKILL needs none
                signal.signal(-plain, signal.SIG_DFL)
            os.kill(os.getpid(), -plain)
        os._exit(max(plain, 0) if plain >= 0 else 128 - plain)


def poll_hung_up(line: socket.socket) -> bool:
    poll = select.poll()
    poll.register(line, 0)
    return bool(poll.poll(0))

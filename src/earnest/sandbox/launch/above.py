"""The process right above the command of a box: starts it under the rules, reaps, listens to it, watches the limits.

In tier A that is the first process of the pid namespace (`first.py`), in tier B the guard (`confined.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from earnest.sandbox.launch import kernel, limits
from earnest.sandbox.launch.keeper import FORWARDED
from earnest.sandbox.launch.listener import Handler, Listener
from earnest.sandbox.launch.report import Report


class Command(NamedTuple):
    """The command as a child. `told`: where it says the number of its listener."""

    process: int
    told: int


def start(plan: dict[str, Any], confine: Callable[[], int], others: int = 0) -> Command:
    """Start the command in a child. `confine` runs there last, without capabilities: it puts the rules on and gives the number
    of the listener's descriptor, -1 for none. `others`: processes that the kernel counts and that are not the box's."""
    own, other = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(own)
        _become(plan, confine, others, other)
    os.close(other)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):  # the command's alone, so that its closing them is seen
        os.dup2(null, number)
    return Command(child, own)


def _become(plan: dict[str, Any], confine: Callable[[], int], others: int, other: int) -> NoReturn:
    try:
        os.setsid()
        if os.getpriority(os.PRIO_PROCESS, 0) < plan["niceness"]:  # an ordinary user may not lower it
            os.setpriority(os.PRIO_PROCESS, 0, plan["niceness"])
        for forwarded in (*FORWARDED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(forwarded, signal.SIG_DFL)
        os.chdir(plan["cwd"])
        bounds = plan["limits"]
        limits.hold(bounds["memory"], bounds["processes"] + others, bounds["disk"], bounds["cpu_s"])
        program = _find(plan["argv"][0], plan["env"])
        kernel.drop_capabilities()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # so that the listener may read what is asked
        os.write(other, struct.pack("=i", confine()))
        os.execve(program, plan["argv"], plan["env"])
    except OSError as error:
        print(f"earnest: {plan['argv'][0]}: {error}", file=sys.stderr)
        sys.stderr.flush()
    os._exit(127)


def _find(command: str, env: dict[str, str]) -> str:
    """The file that a command means, by PATH."""
    if "/" in command:
        return command
    for folder in env.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder or ".", command)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(2, "there is no such command in the box's PATH")


def read_only(plan: dict[str, Any]) -> list[str]:
    """The folders that the box may only read."""
    return [folder["target"] for folder in plan["folders"] if folder["access"] == "read"]


class Above:
    """The loop. What a tier adds: who its members are, what counts as its disk, what its listener does, how all of it ends."""

    def __init__(self, plan: dict[str, Any], report: Report, status: int, command: Command) -> None:
        self._plan = plan
        self._report = report
        self._status = status
        self._child, self._number = command
        self._listener: Listener | None = None

    def members(self) -> list[int]:
        """The processes of the box, as process ids that this one can look up."""
        raise NotImplementedError

    def on_disk(self) -> int:
        """Bytes on disk that count against the limit."""
        raise NotImplementedError

    def handlers(self) -> dict[str, Handler]:
        """What is done with the calls that the rules tell."""
        raise NotImplementedError

    def end_all(self) -> None:
        """End what runs in the box, where that does not go with this process."""

    def serve(self, life: int = -1) -> NoReturn:
        """Until the command has ended, a limit is passed, or `life` hangs up."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in FORWARDED:
            signal.signal(number, self._forward)
        poll = select.poll()
        for descriptor in (woken, self._number):
            poll.register(descriptor, select.POLLIN)
        if life >= 0:
            poll.register(life, 0)
        next_look = time.monotonic() + limits.PERIOD_S
        while True:
            for descriptor, _ in poll.poll(max(0.0, next_look - time.monotonic()) * 1000):
                if descriptor == woken:
                    os.read(woken, 512)
                    self._reap()
                elif descriptor == life:
                    self._end(None)
                elif descriptor == self._number:
                    poll.unregister(descriptor)
                    self._listen(poll)
                elif self._listener is not None and not self._listener.serve():
                    poll.unregister(descriptor)
            if time.monotonic() >= next_look:
                if passed := self._passed():
                    self._report.say("refused", passed, detail="limit of the box")
                    self._end({"status": None, "limit": passed})
                next_look = time.monotonic() + limits.PERIOD_S

    def _passed(self) -> str:
        bounds = self._plan["limits"]
        passed = limits.passed(self.members(), bounds["memory"], bounds["processes"], bounds["cpu_s"])
        return passed or ("disk" if self.on_disk() > bounds["disk"] else "")

    def _listen(self, poll: select.poll) -> None:
        told = os.read(self._number, 4)
        if len(told) < 4 or (number := struct.unpack("=i", told)[0]) < 0:
            return
        handlers = self.handlers()
        self._listener = Listener(kernel.descriptor_of(self._child, number), self._report, handlers)
        self._listener.aside(handlers["connect"])
        poll.register(self._listener.descriptor, select.POLLIN)

    def _forward(self, number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._child:
                    self._end({"status": status, "limit": ""})

    def _end(self, told: Mapping[str, Any] | None) -> NoReturn:
        self.end_all()
        if told is not None:
            os.write(self._status, json.dumps(told).encode())
        os._exit(0)

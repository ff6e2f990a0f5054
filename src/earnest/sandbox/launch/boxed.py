"""The process that is a box of tier A: what a caller starts and, when it ends, has ended.

Run as `python -I -S boxed.py PLAN`, PLAN a JSON file that `namespaces.py` wrote. It enters namespaces of its own, starts the
box's first process (`first.py`), hands on signals, ends with the command's status. It ends, and with it everything,
when its parent does, when the Box it belongs to is closed, and when the box's time is over.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

if __name__ == "__main__":  # started as a file, in isolation: nobody else says where the package is
    sys.path.append(os.path.abspath(__file__).removesuffix("/earnest/sandbox/launch/boxed.py"))

from earnest.sandbox.launch import first, kernel
from earnest.sandbox.launch.report import Report

FAILED: Final = 125
"""Status where the box could not be made."""
_FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main(path: str) -> NoReturn:
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
    report = Report(events, begun)
    try:
        control = _control(state)
        process, status, helpers = _start(plan, report, control)
    except OSError as error:
        _give_up(state, str(error))
    Keeper(plan, report, begun, above, control, process, status, helpers).serve()


def _control(state: str) -> socket.socket:
    """The line to the Box. A path of a socket must be short, so it is named by its folder's descriptor."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(state, os.O_PATH | os.O_DIRECTORY)
    control.connect(f"/proc/self/fd/{folder}/box")
    os.close(folder)
    return control


def _give_up(state: str, why: str) -> NoReturn:
    with contextlib.suppress(OSError), open(f"{state}/ended", "w") as file:
        json.dump({"status": None, "limit": "", "error": why}, file)
    print(f"earnest: the box could not be made: {why}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(FAILED)


def _start(plan: dict[str, Any], report: Report, control: socket.socket) -> tuple[int, int, list[int]]:
    """The box's first process, where it tells how the command ended, and the helpers that stay outside of its namespace."""
    helpers: list[int] = []
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -5)  # so that what runs inside cannot keep its watchers from looking
    way_out: socket.socket | None = None
    if plan["reach"] == "hosts":
        way_out, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        from earnest.sandbox.internet import outlet

        helpers.append(_helper(lambda: outlet.serve(theirs, plan["hosts"], report)))
        theirs.close()
    kernel.become_itself_in_a_user_namespace()
    kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
    socket.sethostname("localhost")
    _raise_loopback()
    ready = -1
    if plan["reach"] != "none":
        from earnest.sandbox.internet import sink

        ready, done = os.pipe()
        helpers.append(_helper(lambda: sink.serve(plan, report, way_out, done)))
        os.close(done)
    status, told = os.pipe()
    kernel.unshare(kernel.CLONE_NEWPID)
    process = os.fork()
    if process == 0:
        try:
            os.close(status)
            first.run(plan, report, told, control, ready)
        except BaseException as error:
            os.write(told, json.dumps({"error": f"{error}"}).encode())
        os._exit(FAILED)
    os.close(told)
    return process, status, helpers


def _helper(serve: Callable[[], None]) -> int:
    me = os.getpid()
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        kernel.die_with(me)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):
            os.dup2(null, number)
        serve()
    finally:
        os._exit(FAILED)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("=16sH14x", b"lo", 0)
        flags = struct.unpack("=16sH14x", fcntl.ioctl(any_socket, 0x8913, request))[1]
        fcntl.ioctl(any_socket, 0x8914, struct.pack("=16sH14x", b"lo", flags | 1))


class Keeper:
    """Waits for the end of a box, whoever brings it about."""

    def __init__(
        self,
        plan: dict[str, Any],
        report: Report,
        begun: float,
        above: int,
        control: socket.socket,
        process: int,
        status: int,
        helpers: list[int],
    ) -> None:
        self._plan = plan
        self._report = report
        self._until = begun + plan["limits"]["wall_s"]
        self._above = above
        self._control = control
        self._process = process
        self._status = status
        self._helpers = helpers

    def serve(self) -> NoReturn:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):  # the command's alone, so that its closing them is seen
            os.dup2(null, number)
        for number in _FORWARDED:
            signal.signal(number, self._forward)
        poll = select.poll()
        poll.register(self._above, select.POLLIN)
        poll.register(self._control, 0)  # no event but its hanging up
        poll.register(self._status, select.POLLIN)
        while True:
            ready = poll.poll(max(0.0, self._until - time.monotonic()) * 1000)
            if not ready:
                self._report.say("refused", "wall", detail="limit of the box")
                self._end({"status": None, "limit": "wall"})
            for descriptor, _ in ready:
                if descriptor == self._status:
                    text = os.read(self._status, 65536)
                    told: dict[str, Any] = json.loads(text) if text else {"status": None, "limit": ""}
                    if "error" in told:
                        self._kill()
                        _give_up(self._plan["state"], told["error"])
                    self._end(told)
                elif descriptor == self._above:
                    self._kill()
                    # Whoever would take the folder away may have gone with our parent.
                    if poll_hung_up(self._control):
                        shutil.rmtree(self._plan["state"], ignore_errors=True)
                    os._exit(FAILED)
                else:
                    self._kill()
                    if not os.path.exists(f"{self._plan['state']}/closing"):
                        shutil.rmtree(self._plan["state"], ignore_errors=True)
                    os._exit(FAILED)

    def _forward(self, number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, number)

    def _kill(self) -> None:
        for process in (self._process, *self._helpers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._process, 0)

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


if __name__ == "__main__":
    main(sys.argv[1])

"""The process that is a box of tier B: no namespaces, the machine's own paths, Landlock and a listener that does what that
does not hold (`ward.py`).

Run as `python -I -S confined.py PLAN`. Two processes: the one that the caller started, which may be killed at any time, and a
guard in a session of its own, from which all that runs in the box descends. The guard ends all of it when the other is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from typing import Any, Final, NoReturn

if __name__ == "__main__":  # started as a file, in isolation: nobody else says where the package is
    sys.path.append(os.path.abspath(__file__).removesuffix("/earnest/sandbox/launch/confined.py"))

from earnest.sandbox.internet.hosts import Hosts
from earnest.sandbox.launch import family, kernel, landlock, limits, sockets, ward
from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch.first import find
from earnest.sandbox.launch.keeper import FAILED, FORWARDED, Inner, Keeper, give_up, line_to_box
from earnest.sandbox.launch.layers import DEVICES
from earnest.sandbox.launch.listener import Listener, forks, locks, starts
from earnest.sandbox.launch.report import Report

_MEANT_S: Final = 2.0
_AT_ONCE: Final = 128


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
        control = line_to_box(state)
    except OSError as error:
        give_up(state, str(error))
    status, told = os.pipe()
    life, ours = os.pipe()
    process = os.fork()
    if process == 0:
        for each in (status, ours):
            os.close(each)
        control.close()
        _guard(plan, report, told, life)
    os.close(told)
    os.close(life)

    def end() -> None:
        with contextlib.suppress(OSError):
            os.close(ours)

    Keeper(plan, report, begun, above, control, status, Inner(process, end)).serve()


def _guard(plan: dict[str, Any], report: Report, status: int, life: int) -> NoReturn:
    """The process that all of the box descends from."""
    try:
        os.setsid()
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, 0, -5)  # so that what runs inside cannot keep its watcher from looking
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        own, other = os.pipe()
        child = os.fork()
        if child == 0:
            _command(plan, other)
        os.close(other)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):
            os.dup2(null, number)
        _Guard(plan, report, status, life, child, own).serve()
    except BaseException as error:
        os.write(status, json.dumps({"error": str(error)}).encode())
        family.end_all(os.getpid())
    os._exit(FAILED)


def _command(plan: dict[str, Any], other: int) -> NoReturn:
    """Become the command, confined. `other`: where the listener's number is told."""
    try:
        os.setsid()
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        for forwarded in (*FORWARDED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(forwarded, signal.SIG_DFL)
        os.chdir(plan["cwd"])
        bounds = plan["limits"]
        user = os.getuid()
        # The kernel's count of a user's threads includes those that are not the box's.
        others = family.threads(user)
        limits.hold(bounds["memory"], bounds["processes"] + others // 4, bounds["disk"], bounds["cpu_s"])
        program = find(plan["argv"][0], plan["env"])
        kernel.drop_capabilities()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        devices = [f"/dev/{name}" for name in (*DEVICES, "ptmx", "pts")]
        landlock.restrict(plan["readable"], plan["writable"], devices, tcp=False)
        held = ward.wanted(plan["watch"], landlock.version()) | (rules.counted() if user == 0 else {})
        held |= rules.locks() if any(folder["access"] == "read" for folder in plan["folders"]) else {}
        held["fcntl"] = rules.when_equal(1, (*rules.LOCKS, *rules.OWNERS), rules.TELL)
        number = rules.install(held, listened=True)
        os.write(other, struct.pack("=i", number))
        os.execve(program, plan["argv"], plan["env"])
    except OSError as error:
        print(f"earnest: {plan['argv'][0]}: {error}", file=sys.stderr)
        sys.stderr.flush()
    os._exit(127)


class _Guard:
    def __init__(self, plan: dict[str, Any], report: Report, status: int, life: int, child: int, own: int) -> None:
        self._plan = plan
        self._report = report
        self._status = status
        self._life = life
        self._child = child
        self._number = own
        self._listener: Listener | None = None
        self._places: dict[int, tuple[str, int]] = {}
        self._placed = threading.Condition()

    def serve(self) -> NoReturn:
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in FORWARDED:
            signal.signal(number, self._forward)
        poll = select.poll()
        for descriptor in (woken, self._number):
            poll.register(descriptor, select.POLLIN)
        poll.register(self._life, 0)
        next_look = time.monotonic() + limits.PERIOD_S
        while True:
            for descriptor, _ in poll.poll(max(0.0, next_look - time.monotonic()) * 1000):
                if descriptor == woken:
                    os.read(woken, 512)
                    self._reap()
                elif descriptor == self._life:
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
        members = list(family.below(os.getpid()))
        passed = limits.passed(members, bounds["memory"], bounds["processes"], bounds["cpu_s"])
        if not passed and sum(limits.size_below(folder) for folder in self._plan["counted"]) > bounds["disk"]:
            passed = "disk"
        return passed

    def _listen(self, poll: select.poll) -> None:
        told = os.read(self._number, 4)
        if len(told) < 4:
            return
        inlet = self._internet()
        named = Hosts(self._plan["hosts"] if self._plan["reach"] == "hosts" else ())
        here = frozenset(port for host in named.all if host.is_here for port in host.ports)
        folders = sockets.Folders(self._plan["writable"], self._plan["counted"])
        own = ward.Ward(self._report, folders, os.getpid(), landlock.version())
        lines = sockets.Sockets(self._report, folders, inlet, self._meant, here)
        handlers = locks(self._report, [each["target"] for each in self._plan["folders"] if each["access"] == "read"])
        handlers |= own.handlers(handlers["fcntl"]) | lines.handlers() | starts(self._report)
        handlers |= forks(self._report, self._plan["limits"]["processes"], lambda: len(family.below(os.getpid())))
        self._listener = Listener(kernel.descriptor_of(self._child, struct.unpack("=i", told)[0]), self._report, handlers)
        self._listener.aside(handlers["connect"])
        poll.register(self._listener.descriptor, select.POLLIN)

    # the internet of the box: a listener of our own, to which its connections lead

    def _internet(self) -> tuple[str, int] | None:
        reach = self._plan["reach"]
        if reach == "none":
            return None
        from earnest.sandbox.internet import outlet, sink  # slow to import

        hosts = Hosts(self._plan["hosts"]) if reach == "hosts" else None
        out = outlet.Outlet(hosts, self._report) if hosts is not None else None

        def lead(connection: socket.socket, name: str, port: int) -> None:
            assert out is not None
            out.take(connection.dup(), name, port)

        free = threading.Semaphore(_AT_ONCE)
        inside = sink.Sink(self._plan, self._report, hosts, lead)
        listener = outlet.listener()

        def accept() -> None:
            while True:
                with contextlib.suppress(OSError):
                    connection, (_, port) = listener.accept()
                    free.acquire()
                    threading.Thread(target=one, args=(connection, port), daemon=True).start()

        def one(connection: socket.socket, port: int) -> None:
            with self._placed:
                self._placed.wait_for(lambda: port in self._places, _MEANT_S)
                place = self._places.pop(port, None)
            try:
                if place is None:  # not from the box
                    connection.close()
                else:
                    inside.one(connection, *place)
            finally:
                free.release()

        threading.Thread(target=accept, daemon=True).start()
        address: tuple[str, int] = listener.getsockname()
        return address

    def _meant(self, port: int, host: str, where: int) -> None:
        with self._placed:
            self._places[port] = host, where
            self._placed.notify_all()

    # the end

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

    def _end(self, told: dict[str, Any] | None) -> NoReturn:
        family.end_all(os.getpid())
        if told is not None:
            os.write(self._status, json.dumps(told).encode())
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])

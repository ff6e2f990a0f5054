"""The process that is a box of tier B: no namespaces, the machine's own paths, Landlock and a listener that does what that
does not hold (`ward.py`).

Run as `python -I -S confined.py PLAN`. Two processes: the one that the caller started, which may be killed at any time, and a
guard in a session of its own, from which all that runs in the box descends. The guard ends all of it when the other is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from typing import Any, Final, NoReturn

if __name__ == "__main__":  # started as a file, in isolation: nobody else says where the package is
    sys.path.append(os.path.abspath(__file__).removesuffix("/earnest/sandbox/launch/confined.py"))

from earnest.sandbox.internet.hosts import Hosts
from earnest.sandbox.launch import above, family, kernel, landlock, limits, sockets, ward
from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch.group import Group
from earnest.sandbox.launch.keeper import FAILED, Inner, Keeper, begin, look_out
from earnest.sandbox.launch.layers import DEVICES
from earnest.sandbox.launch.listener import Handler, forks, locks, starts
from earnest.sandbox.launch.report import Report

_MEANT_S: Final = 2.0
_AT_ONCE: Final = 128
_OWN: Final = _AT_ONCE + 72
"""Threads of the guard, which is in its box's group."""


def main(path: str) -> NoReturn:
    begun = begin(path)
    status, told = os.pipe()
    life, ours = os.pipe()
    process = os.fork()
    if process == 0:
        for each in (status, ours):
            os.close(each)
        begun.control.close()
        _guard(begun.plan, begun.report, told, life)
    os.close(told)
    os.close(life)

    def end() -> None:
        with contextlib.suppress(OSError):
            os.close(ours)

    Keeper(begun, status, Inner(process, end)).serve()


def _guard(plan: dict[str, Any], report: Report, status: int, life: int) -> NoReturn:
    """The process that all of the box descends from."""
    try:
        os.setsid()
        look_out()
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        # The kernel's count of a user's threads includes those that are not the box's.
        group = Group(limits.threads(plan["limits"]["processes"]) + _OWN) if plan["root"] else None
        plan["asked"] = group is not None and not group.path
        command = above.start(plan, lambda: _confined(plan), family.threads(os.getuid()) // 4)
        _Guard(plan, report, status, command, group).serve(life)
    except BaseException as error:
        os.write(status, json.dumps({"error": str(error)}).encode())
        family.end_all(os.getpid())
    os._exit(FAILED)


def _confined(plan: dict[str, Any]) -> int:
    """Put Landlock and the rules on; the number of the listener."""
    devices = [f"/dev/{name}" for name in (*DEVICES, "ptmx", "pts")]
    landlock.restrict(plan["readable"], plan["writable"], devices, tcp=False)
    held = ward.wanted(plan["watch"], landlock.version()) | (rules.counted() if plan["asked"] else {})
    held |= rules.locks() if above.read_only(plan) else {}
    held["fcntl"] = rules.when_equal(1, (*rules.LOCKS, *rules.LEASES, *rules.OWNERS), rules.TELL)
    return rules.install(held, listened=True)


class _Guard(above.Above):
    def __init__(self, plan: dict[str, Any], report: Report, status: int, command: above.Command, group: Group | None) -> None:
        super().__init__(plan, report, status, command)
        self._group = group
        self._places: dict[int, tuple[str, int]] = {}
        self._placed = threading.Condition()

    def members(self) -> list[int]:
        return list(family.below(os.getpid()))

    def on_disk(self) -> int:
        return sum(limits.size_below(folder) for folder in self._plan["counted"])

    def end_all(self) -> None:
        family.end_all(os.getpid())
        if self._group is not None:
            self._group.leave()

    def handlers(self) -> dict[str, Handler]:
        inlet = self._internet()
        named = Hosts(self._plan["hosts"] if self._plan["reach"] == "hosts" else ())
        here = frozenset(port for host in named.all if host.is_here for port in host.ports)
        folders = sockets.Folders(self._plan["writable"], self._plan["counted"])
        own = ward.Ward(self._report, folders, os.getpid(), landlock.version())
        lines = sockets.Sockets(self._report, folders, inlet, self._meant, here)
        found = locks(self._report, above.read_only(self._plan))
        found |= own.handlers(found["fcntl"]) | lines.handlers() | starts(self._report)
        if self._plan["asked"]:
            found |= forks(self._report, self._plan["limits"]["processes"], lambda: len(self.members()))
        return found

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


if __name__ == "__main__":
    main(sys.argv[1])

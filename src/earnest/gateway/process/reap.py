"""Upstream processes of a daemon that was killed: noted by number and start time, ended by the next daemon.

A server left behind goes on with its call, beside the one that the fresh daemon starts.
"""

import os
import signal
import time
from collections.abc import Callable

from earnest.gateway.process.peers import process


class Children:
    """The processes this daemon started, in a file that outlives it: a line for each start and each end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._boot = boot_id()
        self._alive: dict[int, int] = {}
        self._fd = -1

    @property
    def alive(self) -> frozenset[tuple[int, int]]:
        """(pid, start) of those that run."""
        return frozenset(self._alive.items())

    def end_leftovers(self, limit_s: float = 2.0, sleep: Callable[[float], None] = time.sleep) -> int:
        """Ends what an earlier daemon left, SIGTERM first, SIGKILL after `limit_s`; returns how many there
        were."""
        left = [(pid, start) for pid, start in self._read().items() if _runs(pid, start)]
        for pid, start in left:
            _kill(pid, start, signal.SIGTERM)
        waited = 0.0
        while waited < limit_s and any(_runs(*one) for one in left):
            sleep(0.02)
            waited += 0.02
        for pid, start in left:
            _kill(pid, start, signal.SIGKILL)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = os.open(self._path, flags, 0o600)
        return len(left)

    def add(self, pid: int) -> None:
        """Notes a process just started; call it before the process is given work."""
        one = process(pid)
        if one is None:
            return
        self._alive[pid] = one.start
        self._note(f"+ {self._boot} {pid} {one.start}\n")

    def remove(self, pid: int) -> None:
        """Notes that it ended."""
        if self._alive.pop(pid, None) is not None:
            self._note(f"- {self._boot} {pid} 0\n")

    def _note(self, line: str) -> None:
        if self._fd < 0:
            self._fd = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
        os.write(self._fd, line.encode())

    def _read(self) -> dict[int, int]:
        found: dict[int, int] = {}
        try:
            with open(self._path, encoding="ascii", errors="replace") as f:
                lines = f.readlines()
        except FileNotFoundError:
            return found
        for line in lines:
            words = line.split()
            if len(words) != 4 or words[1] != self._boot or not (words[2] + words[3]).isdigit():
                continue  # another boot: the numbers mean nothing now
            if words[0] == "+":
                found[int(words[2])] = int(words[3])
            else:
                found.pop(int(words[2]), None)
        return found


def boot_id() -> str:
    """What tells this boot of the machine from others: process numbers mean nothing beyond it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return "unknown"


def _runs(pid: int, start: int) -> bool:
    one = process(pid)
    return one is not None and one.start == start and not _zombie(pid)


def _zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


def _kill(pid: int, start: int, number: signal.Signals) -> None:
    """Signals the process, with its group if it leads one, if it is still the one that was noted."""
    if not _runs(pid, start):
        return
    try:
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        pass

"""The limits of a box: some hold each process (man 2 setrlimit), the sums are watched."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final

PERIOD_S: Final = 0.2
"""Between two looks at the sums: what a box may overshoot them by is what it manages in that time."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def threads(processes: int) -> int:
    """How many processes and threads together a box may have that may have so many processes."""
    return 4 * processes + 16


def hold(memory: int, processes: int, disk: int, cpu_s: int) -> None:
    """Bind this process and what it starts. Memory counts what may be written to (RLIMIT_DATA), not what is only reserved, as
    some runtimes reserve gigabytes. The kernel counts threads as processes, and none of real root's."""
    wanted = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_FSIZE: disk,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_CORE: 0,
    }
    release = os.uname().release.split("-")[0].split(".")
    counted_apart = tuple(int(part) for part in release[:2] if part.isdigit()) >= (5, 14)
    if sys.platform.startswith("linux") and counted_apart:  # elsewhere all the user's processes count
        wanted[resource.RLIMIT_NPROC] = threads(processes)
    for which, amount in wanted.items():
        _, most = resource.getrlimit(which)
        amount = amount if most == resource.RLIM_INFINITY else min(amount, most)
        later = amount + 1 if which == resource.RLIMIT_CPU else amount  # a signal that says why, before the one that does not
        resource.setrlimit(which, (amount, later if most == resource.RLIM_INFINITY else min(later, most)))


def passed(pids: list[int], memory: int, processes: int, cpu_s: int) -> str:
    """Which limit these processes are past together, empty for none. Memory that two of them share counts for neither."""
    if len(pids) > processes:
        return "processes"
    used_memory, used_ticks = 0, 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as file:
                _, resident, shared, *_ = file.read().split()
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except (OSError, ValueError):  # it ended meanwhile
            continue
        used_memory += (int(resident) - int(shared)) * _PAGE
        used_ticks += sum(int(field) for field in fields[11:15])
    if used_memory > memory:
        return "memory"
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    return "cpu" if used_ticks / _TICKS + reaped.ru_utime + reaped.ru_stime > cpu_s else ""


def size_below(folder: str) -> int:
    """Bytes on disk below a folder."""
    total = 0
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except OSError:
                continue
    return total

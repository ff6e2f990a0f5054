"""The processes of a box that has no pid namespace: the descendants of one process, which adopts those that lose their parent
(PR_SET_CHILD_SUBREAPER), so that none can leave."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Final

_ROUNDS: Final = 200


def parents() -> dict[int, tuple[int, int]]:
    """Parent and process group of every process there is."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
                found[int(name)] = int(fields[1]), int(fields[2])
    return found


def threads(user: int) -> int:
    """How many threads a user has."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if os.stat(f"/proc/{name}").st_uid == user:
                    with open(f"/proc/{name}/stat") as file:
                        count += int(file.read().rpartition(")")[2].split()[17])
    return count


def below(root: int) -> dict[int, int]:
    """All descendants of a process, each with its process group."""
    known = parents()
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in known.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, int] = {}
    waiting = list(children.get(root, ()))
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found[pid] = known[pid][1]
            waiting += children.get(pid, ())
    return found


def end_all(root: int) -> None:
    """End every descendant of this very process. Those that multiply are stopped before they are killed."""
    for _ in range(_ROUNDS):
        members = below(root)
        if not members:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)

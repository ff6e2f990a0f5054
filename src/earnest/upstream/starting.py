"""What a server's process is started with: its executable, and that it does not outlive the daemon."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable
from typing import Final

from earnest.core.errors import EarnestError

_PR_SET_PDEATHSIG: Final = 1


def find_executable(command: str, path: str, cwd: str | None = None) -> str:
    """The absolute path of a command; raises E1201 naming the PATH that was searched."""
    if os.sep in command:
        candidate = command if os.path.isabs(command) else os.path.join(cwd or os.getcwd(), command)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
        raise EarnestError("E1201", f"cannot run {command!r}: there is no such executable file", exit_code=3)
    found = shutil.which(command, path=path)
    if found is None:
        raise EarnestError(
            "E1201",
            f"cannot run {command!r}: no such command in PATH ({path or 'which is empty'})",
            f"Install {command!r}, or give its absolute path in the server's `command`.",
            exit_code=3,
        )
    return found


def before_start(umask: int | None = None) -> Callable[[], None]:
    """A pre-exec function that gives the child a umask (None: this process's) and, on Linux, asks the kernel to end it with the
    daemon, and lets it have no descriptors but its three: the loop leaves second copies of its pipes open, so that a server
    that closes its output would never be heard to."""
    linux = sys.platform.startswith("linux")
    prctl = ctypes.CDLL(None, use_errno=True).prctl if linux else None
    parent = os.getpid()

    def before_exec() -> None:
        if umask is not None:
            os.umask(umask)
        if prctl is None:
            return
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2:
                with contextlib.suppress(OSError):  # the one that lists
                    os.set_inheritable(int(name), False)

    return before_exec

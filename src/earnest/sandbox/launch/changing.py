"""System calls that change files, by the path they name: which they are, and what of them is told."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable
from typing import Final

from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch.layers import within
from earnest.sandbox.launch.listener import Answer, Call, Handler, signed
from earnest.sandbox.launch.report import Report

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_SURELY: Final = os.O_WRONLY | os.O_TRUNC | os.O_APPEND
"""Flags of opening without which a file may be only read after all: libraries open a database both ways, as a habit."""
_AT_CWD: Final = -100
PATHS: Final[dict[str, tuple[int, int]]] = {
    # Which argument is the path that is changed, and which the folder it is relative to (-1: the working folder).
    "open": (0, -1), "openat": (1, 0), "creat": (0, -1), "truncate": (0, -1), "rename": (1, -1), "renameat": (3, 2),
    "renameat2": (3, 2), "mkdir": (0, -1), "mkdirat": (1, 0), "rmdir": (0, -1), "unlink": (0, -1), "unlinkat": (1, 0),
    "link": (1, -1), "linkat": (3, 2), "symlink": (1, -1), "symlinkat": (2, 1), "mknod": (0, -1), "mknodat": (1, 0),
}  # fmt: skip
_MOVED: Final = {"rename": (0, -1), "renameat": (1, 0), "renameat2": (1, 0)}
"""As in `PATHS`, what is moved."""
_MADE_WITH: Final = {"open": (1, 2), "openat": (2, 3), "creat": (-1, 1), "mknod": (-1, 1), "mknodat": (-1, 2)}
"""Which argument has flags of opening (-1: it always makes a file), and which the mode that a file is made with."""


def told(tell: int) -> dict[str, rules.Block]:
    """Rules that tell of each. `openat2` has its flags in memory; libraries then use openat."""
    found = {name: rules.always(tell) for name in PATHS}
    found["open"] = rules.when_any(1, _WRITES, tell)
    found["openat"] = rules.when_any(2, _WRITES, tell)
    return found | {"openat2": rules.always(rules.ABSENT)}


def path_of(call: Call) -> str:
    """The path that a call changes, as the process sees it."""
    place, folder = PATHS[call.name]
    return call.path(call.args[place], signed(call.args[folder]) if folder >= 0 else _AT_CWD)


def sets_id(call: Call) -> bool:
    """Whether a file is made that would run as whom it belongs to."""
    flags, mode = _MADE_WITH.get(call.name, (-1, -1))
    makes = flags < 0 or call.args[flags] & (os.O_CREAT | 0o20000000)
    return mode >= 0 and bool(makes) and bool(call.args[mode] & rules.SET_ID)


def comes_to_nothing(call: Call, path: str) -> bool:
    """Whether a call fails whoever makes it: what is to be made is there, what is to be changed is not, or no such folder is.
    Programs make folders that may be there, and remove files that may not, by habit."""
    if not os.path.isdir(os.path.dirname(path)):
        return True
    there = os.path.lexists(path)
    if call.name in ("open", "openat"):
        flags = call.args[_MADE_WITH[call.name][0]]
        return bool(flags & os.O_EXCL) if there else not flags & os.O_CREAT
    if call.name.startswith("rename"):
        place, folder = _MOVED[call.name]
        return not os.path.lexists(call.path(call.args[place], signed(call.args[folder]) if folder >= 0 else _AT_CWD))
    if call.name in ("unlink", "unlinkat", "rmdir", "truncate"):
        return not there
    return there and call.name != "creat"


def refused(report: Report, path: str, call: Call) -> None:
    """Tell of a change that fails, and whether it would have been one (`box.Event.method`); not of what comes to nothing."""
    if comes_to_nothing(call, path):
        return
    flags, _ = _MADE_WITH.get(call.name, (-1, -1))
    opens = call.name in ("open", "openat") and not call.args[flags] & _SURELY and os.path.lexists(path)
    report.say("refused", path, method="open" if opens else "change", detail=f"{call.name} by process {call.thread}")


def held(report: Report, is_writable: Callable[[str], bool]) -> dict[str, Handler]:
    """Refuses changes outside of where a box may make them, and tells of them. By the time that the kernel looks the path may
    be another one: what that reaches is held by the mounts, and only not told."""

    def change(call: Call) -> Answer:
        path = means(call)
        if sets_id(call) or _makes_pipe(call):
            report.say("refused", path, method="change", detail=f"{call.name} by process {call.thread}")
            return errno.EPERM
        if not path or is_writable(path) or comes_to_nothing(call, path):
            return None  # the kernel says why, where it fails
        refused(report, path, call)
        return errno.EROFS

    return dict.fromkeys(PATHS, change)


def no_pipes(report: Report, readable: list[str]) -> dict[str, Handler]:
    """Refuses to open pipes with a name for writing in folders that are mounted to be read, which no mount does; and to make
    files that would run as whom they belong to."""

    def change(call: Call) -> Answer:
        path = means(call)
        if sets_id(call):
            report.say("refused", path, method="change", detail=f"{call.name} by process {call.thread}")
            return errno.EPERM
        with contextlib.suppress(OSError):
            if any(within(path, folder) for folder in readable) and stat.S_ISFIFO(os.stat(path).st_mode):
                report.say("refused", path, method="change", detail=f"a pipe with a name, by process {call.thread}")
                return errno.EACCES
        return None

    return {"open": change, "openat": change}


def written(tell: int) -> dict[str, rules.Block]:
    """Rules that tell of files that are opened to be written to, and no more."""
    found = told(tell)
    return {name: found[name] for name in ("open", "openat", "openat2")}


def _makes_pipe(call: Call) -> bool:
    """Whether a pipe with a name is made: who has it in a folder that is mounted to be read could write to it all the same, and
    so speak to who made it."""
    return call.name in ("mknod", "mknodat") and stat.S_ISFIFO(call.args[_MADE_WITH[call.name][1]] & 0xFFFF)


def means(call: Call) -> str:
    """The path of what a call changes, links followed as it would; empty for what has none, such as a process's own pipes."""
    path = re.sub(r"^/proc/(?:thread-)?self/", f"/proc/{call.thread}/", path_of(call))
    numbered = re.fullmatch(r"/dev/(std(?:in|out|err)|fd/\d+)", path)
    if numbered is not None:
        path = f"/proc/{call.thread}/fd/{_STANDARD.get(numbered[1]) or numbered[1].removeprefix('fd/')}"
    if re.fullmatch(r"/proc/\d+/(?:task/\d+/)?fd/\d+", path):
        try:
            path = os.readlink(path)
        except OSError:
            return ""
        return path if path.startswith("/") and not path.endswith(" (deleted)") else ""
    if call.name in ("open", "openat"):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


_STANDARD: Final = {"stdin": "0", "stdout": "1", "stderr": "2"}

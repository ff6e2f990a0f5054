"""Files below a folder that is held open, reached without following a link or leaving it (man 2 openat2, renameat2).

Paths are relative to the folder's descriptor. Linux 5.6 and later; where the kernel has no `openat2`, or a filter forbids it,
nothing is done (`E1843`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import struct
import time
from typing import Final

from earnest.core.errors import EarnestError

_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_RESOLVE: Final = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_NOREPLACE, _EXCHANGE = 1, 2
_SETSIG: Final = 10
"""F_SETSIG (man 2 fcntl)."""
_COARSE: Final = 5
"""CLOCK_REALTIME_COARSE (man 2 clock_gettime)."""
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_below(folder: int, path: str, flags: int) -> int:
    """A descriptor of what stands at `path`; raises OSError: ELOOP for a link on the way, EXDEV for a way out."""
    from earnest.sandbox.launch import kernel

    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE)
    try:
        return kernel.syscall("openat2", folder, os.fsencode(path or "."), how, len(how))
    except (OSError, KeyError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        raise EarnestError(
            "E1843", "this system has no openat2, without which a change cannot be kept within its folder", exit_code=3
        ) from error


def status_of(folder: int, name: str) -> os.stat_result | None:
    """What stands at a name right in a folder, None where nothing does."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def move(from_folder: int, name: str, to_folder: int, to: str) -> None:
    """Give what stands at a name another one that is free."""
    _rename(from_folder, name, to_folder, to, _NOREPLACE)


def exchange(one_folder: int, one: str, other_folder: int, other: str) -> None:
    """Let two names change places, in one step."""
    _rename(one_folder, one, other_folder, other, _EXCHANGE)


def _rename(from_folder: int, name: str, to_folder: int, to: str, flags: int) -> None:
    from earnest.sandbox.launch import kernel

    kernel.syscall("renameat2", from_folder, os.fsencode(name), to_folder, os.fsencode(to), flags)


def read(folder: int, name: str, most: int) -> tuple[bytes, os.stat_result]:
    """The bytes of a regular file right in a folder, at most `most` (OSError EFBIG past that; EINVAL where it is no file)."""
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(number, "rb", buffering=0) as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        pieces: list[bytes] = []
        size = 0
        while piece := file.read(1 << 20):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise OSError(errno.EFBIG, "too large")
        return b"".join(pieces), status


def is_written_to(folder: int, name: str) -> bool:
    """Whether some process has a file open for writing: the kernel gives a lease to read (man 2 fcntl) only where none has.
    False where the file system or the file's owner does not let one be asked for."""
    try:
        number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        # Who opens it in this very moment makes the kernel send a signal: let it be one that is ignored.
        fcntl.fcntl(number, _SETSIG, signal.SIGURG)
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(number)
    return False


def attributes(folder: int, name: str) -> dict[str, bytes]:
    """The extended attributes that are a file's own and its owner's: `user.*` and access lists. Raises OSError EPERM where it
    carries capabilities, which only root may give."""
    number = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        path = f"/proc/self/fd/{number}"
        try:
            names = os.listxattr(path)
        except OSError:
            return {}
        if "security.capability" in names:
            raise OSError(errno.EPERM, "it carries capabilities")
        return {one: os.getxattr(path, one) for one in names if one.startswith(("user.", "system.posix_acl_"))}
    finally:
        os.close(number)


def set_status(folder: int, name: str, *, mode: int | None = None, mtime_ns: int | None = None) -> None:
    """Mode and time of a file or folder right in a folder, never of what a link points to. Raises OSError ELOOP for a link."""
    number = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(number)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, "a link")
        path = f"/proc/self/fd/{number}"
        if mode is not None and stat.S_IMODE(status.st_mode) != mode:
            os.chmod(path, mode)
        if mtime_ns is not None and status.st_mtime_ns != mtime_ns:
            os.utime(path, ns=(status.st_atime_ns, mtime_ns))
    finally:
        os.close(number)


def now_ns() -> int:
    """A moment in the clock that file systems take times of change from, later than any change made before this was called, and
    not later than any made afterwards."""
    now = time.time_ns()
    while time.clock_gettime_ns(_COARSE) < now:  # a tick behind, and what a change may be given
        time.sleep(0.0005)
    return now

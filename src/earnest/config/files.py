"""Files of a person: read without waiting on pipes, replaced whole or not at all.

`replace` writes a new file beside the old one and renames it, so that a client never sees half of it; it
goes to the target of a symbolic link, keeps the mode, and refuses when the file is no longer what was read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

import msgspec

from earnest.core.errors import EarnestError


class Contents(msgspec.Struct, frozen=True):
    """What a regular file held, with its owner and mode bits."""

    data: bytes
    owner: int
    mode: int


def contents(path: str, limit: int) -> Contents:
    """Read a regular file of at most `limit` bytes.

    Raises `OSError` as the system does; EISDIR or EINVAL where it is no regular file, EFBIG where it is
    larger.
    """
    # O_NONBLOCK: opening a FIFO somebody left there must not wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            folder = stat.S_ISDIR(status.st_mode)
            raise OSError(errno.EISDIR if folder else errno.EINVAL, "Is no regular file", path)
        pieces = []
        left = limit + 1
        while left and (piece := os.read(descriptor, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
        if not left:
            raise OSError(errno.EFBIG, f"Is over {limit // 1024} KiB", path)
        return Contents(b"".join(pieces), status.st_uid, stat.S_IMODE(status.st_mode))
    finally:
        os.close(descriptor)


def replace(path: str, data: bytes, *, expected: bytes, limit: int = 1 << 26) -> None:
    """Replace a file's bytes in one step. `expected`: what it must still hold.

    Raises E1029 where it changed meanwhile, E1013 where it cannot be written; then it is as it was.
    """
    target = os.path.realpath(path)
    temporary = f"{target}.earnest-{os.getpid()}"
    try:
        now = contents(target, limit)
        if now.data != expected:
            raise EarnestError(
                "E1029",
                f"{path} changed while it was being worked on; it was left alone",
                "run the command again",
            )
        try:
            create(temporary, data, now.mode)
            _keep_owner(temporary, target)
            os.replace(temporary, target)
        finally:
            _remove(temporary)
        _sync_folder(os.path.dirname(target))
    except OSError as error:
        raise EarnestError(
            "E1013",
            f"{path} cannot be written: {error.strerror}",
            "check the folder's permissions and the disk",
        ) from None


def create(path: str, data: bytes, mode: int = 0o600, *, sync: Callable[[int], None] = os.fsync) -> None:
    """Make a new file with exactly this mode, on the disk when this returns. `FileExistsError` where there
    is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)
        sync(descriptor)
    finally:
        os.close(descriptor)


def _keep_owner(temporary: str, target: str) -> None:
    """Root editing somebody's file leaves it theirs; anyone else cannot give files away, and need not."""
    status = os.stat(target)
    if os.geteuid() == 0:
        os.chown(temporary, status.st_uid, status.st_gid)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

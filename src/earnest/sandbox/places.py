"""Folders that boxes are made of, in the system's temporary folder, and those that a killed process left there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from typing import Final

_PREFIX: Final = "earnest-box-"
_YOUNG_S: Final = 600.0
"""Younger than this, a folder without a lock may be one that is being made."""
_swept = False


class Place:
    """A fresh folder. Nobody takes it for left behind while this is there."""

    def __init__(self) -> None:
        sweep()
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._lock = os.open(f"{self.path}/lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        remove(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep() -> None:
    """Take away what processes of this user left that were killed; once in a process."""
    global _swept
    if _swept:
        return
    _swept = True
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    _sweep(entry)


def _sweep(entry: os.DirEntry[str]) -> None:
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return
    try:
        lock = os.open(f"{entry.path}/lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        if time.time() - status.st_mtime > _YOUNG_S:
            remove(entry.path)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by who is still there
        for path in _made(entry.path):
            remove(path)
        remove(entry.path)
    finally:
        os.close(lock)


def _made(state: str) -> list[str]:
    try:
        with open(f"{state}/plan") as file:
            made: list[str] = json.load(file).get("made", [])
    except FileNotFoundError:
        return []
    return made


def remove(path: str) -> None:
    """Take away a folder or file, whatever permissions a command left in it; those of what it lies in are not touched."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, onerror=lambda function, failed, _: _forced(failed, path))
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _forced(path: str, top: str) -> None:
    with contextlib.suppress(OSError):
        if path != top:
            os.chmod(os.path.dirname(path), 0o700)
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
        else:
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)

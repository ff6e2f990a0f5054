"""Folders of a plan where a tier cannot show them at another place: copies at their targets, taken away with the box."""

from __future__ import annotations

import os
import shutil
import stat

from earnest.core.errors import EarnestError
from earnest.sandbox.box import Folder, Look, Plan, within
from earnest.sandbox.folders import Folders
from earnest.sandbox.overlay import Contents
from earnest.sandbox.places import remove

_FEW, _SMALL = 1000, 16 << 20
_MOST_COPIED, _LARGEST_COPIED = 5000, 64 << 20


class Copies:
    """The folders of one box. `writable` may be written to, `readable` read; `own` are the box's alone and looked at; `made`
    are to be taken away with it."""

    def __init__(self, plan: Plan, state: str) -> None:
        self.readable: list[str] = []
        self.writable: list[str] = []
        self.own: list[str] = []
        self.made: list[str] = []
        self._watched: Folders | None = None
        self._contents = Contents(f"{state}/kept")
        try:
            temporary = f"{state}/tmp"
            os.mkdir(temporary, 0o700)
            self._is_own(temporary)
            later = [path for path in (plan.home, plan.cwd) if any(within(path, folder.target) for folder in plan.folders)]
            for path in (plan.home, plan.cwd):
                if path not in later:
                    self._place(path)
            for folder in plan.folders:
                self._folder(folder)
            for path in later:
                self._place(path)
            if plan.watch:
                self._watched = Folders(self.own, self._contents)
        except BaseException:
            self.remove()
            raise

    @property
    def temporary(self) -> str:
        return self.own[0]

    def look(self) -> Look:
        return self._watched.look() if self._watched is not None else Look({})

    def bytes_of(self, path: str, look: Look | None) -> bytes | None:
        if self._watched is None:
            return None
        entry = look.entries.get(path) if look is not None else None
        file = entry.now if entry is not None else self._watched.base(path)
        return self._contents.bytes_of(file.digest, file.size) if file is not None and file.kind == "file" else None

    def remove(self) -> None:
        """Take away what was made."""
        for path in reversed(self.made):
            remove(path)
        self.made.clear()

    def _is_own(self, path: str) -> None:
        self.writable.append(path)
        if not any(within(path, other) for other in self.own):
            self.own.append(path)

    def _folder(self, folder: Folder) -> None:
        if folder.access == "copy" or folder.source is None:
            self._copy(folder)
            return
        if os.path.realpath(folder.source) != os.path.realpath(folder.target):
            raise EarnestError(
                "E1803",
                f"{folder.source} cannot be shown at {folder.target}: without namespaces a box has the machine's own paths",
                "Give a target that is the source itself, or let the box have a copy.",
            )
        (self.writable if folder.access == "write" else self.readable).append(folder.target)

    def _copy(self, folder: Folder) -> None:
        target, source = folder.target, folder.source
        inside = any(within(target, own) for own in self.own)
        if os.path.lexists(target) and not inside:
            if source is None or os.path.realpath(source) != os.path.realpath(target):
                raise _occupied(target)
            self.readable.append(target)  # it cannot be another one at its own path; that writes fail is the next best
            return
        self._parents(target)
        if source is None:
            os.makedirs(target, exist_ok=True)
        elif os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=_special)
        else:
            shutil.copy2(source, target)
        if not inside:
            self.made.append(target)
        self._is_own(target)

    def _parents(self, path: str) -> None:
        """Make the folders a path lies in; the topmost that was not there is taken away with the box."""
        missing: list[str] = []
        above = os.path.dirname(path)
        while not os.path.isdir(above):
            missing.append(above)
            above = os.path.dirname(above)
        for each in reversed(missing):
            try:
                os.mkdir(each, 0o700)
            except OSError as error:
                raise EarnestError(
                    "E1803",
                    f"{path} cannot be made on this machine: {error.strerror}",
                    "Without namespaces a box has the machine's own paths: choose one below a temporary folder.",
                ) from error
        if missing:
            self.made.append(missing[-1])

    def _place(self, path: str) -> None:
        """A home or working folder that no folder of the plan is."""
        if any(within(path, known) for known in (*self.own, *self.writable, *self.readable)):
            if not os.path.isdir(path):
                os.makedirs(path, exist_ok=True)
        elif not os.path.lexists(path):
            self._parents(path)
            os.mkdir(path, 0o700)
            self.made.append(path)
            self._is_own(path)
        elif path != "/":
            raise _occupied(path)


def _occupied(path: str) -> EarnestError:
    return EarnestError(
        "E1803",
        f"{path} is there on this machine, and cannot be another one in a box without namespaces",
        "Choose a path that does not exist, below a temporary folder.",
    )


def _special(folder: str, names: list[str]) -> set[str]:
    """What a copy leaves out: sockets, pipes, devices."""
    kinds = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return {name for name, mode in kinds.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))}


def measured(source: str, to: str) -> tuple[str, bool]:
    """A folder to lay into a box, and whether it is small. Where it is not, and something in it belongs to others, it is copied
    to `to`: an overlay can change that only if a user namespace knows them, and an ordinary user's does not. What is very large
    stays as it is."""
    user, group = os.geteuid(), os.getegid()
    count, size, foreign = 0, 0, False
    waiting = [source]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                count, size = count + 1, size + status.st_size
                foreign = foreign or status.st_uid != user or status.st_gid != group
                if stat.S_ISDIR(status.st_mode) and os.access(entry.path, os.R_OK | os.X_OK):
                    waiting.append(entry.path)
        if count > _MOST_COPIED or size > _LARGEST_COPIED:
            return source, False
    if count <= _FEW and size <= _SMALL:
        return source, True
    if foreign:
        shutil.copytree(source, to, symlinks=True, ignore=_special)
        return to, False
    return source, False

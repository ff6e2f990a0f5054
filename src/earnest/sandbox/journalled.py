"""A change as steps, and the journal in which it stands while it is made (`commit.py`)."""

from __future__ import annotations

import os
import secrets
from typing import Final, Literal

import msgspec

from earnest.core.errors import EarnestError
from earnest.sandbox import beneath
from earnest.sandbox.changeset import Root, Seen, State

STAGING: Final = ".earnest-"


class Step(msgspec.Struct):
    """One path, relative to a root. `seen`: which very file stands there, where that is known; without, what has the kind, mode
    and bytes of `before` will do. `inode`: of what stood there, `staged`: of what is put there, once known."""

    root: int
    path: str
    before: State | None
    after: State | None
    seen: Seen | None = None
    inode: int = 0
    staged: int = 0

    @property
    def kinds(self) -> tuple[str, str]:
        """File or folder, before and after; empty for nothing."""
        return self.before.kind if self.before else "", self.after.kind if self.after else ""

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def swaps(self) -> bool:
        """A file is replaced by another file."""
        one, other = self.before, self.after
        return one is not None and other is not None and one.kind == other.kind == "file" and one.digest != other.digest

    @property
    def stays(self) -> bool:
        """The same file or folder, with another mode or time."""
        one, other = self.before, self.after
        return one is not None and other is not None and one.kind == other.kind and not self.swaps

    @property
    def leaves(self) -> bool:
        return self.before is not None and not self.stays and not self.swaps

    @property
    def comes(self) -> bool:
        return self.after is not None and not self.stays and not self.swaps


class Above(msgspec.Struct):
    """A folder in which steps lie and that is none: its time before, and after (0: not known, or whatever it comes to)."""

    root: int
    path: str
    before_ns: int
    after_ns: int = 0


class Job(msgspec.Struct):
    """See the module. `state` is `applying` until all of it stands. `wanted`: for folders of `above`, the time to give them."""

    roots: tuple[Root, ...]
    steps: list[Step]
    staging: str
    state: Literal["applying", "done"] = "applying"
    above: list[Above] = []
    wanted: list[Above] = []


class Conflict(EarnestError):
    """A path is not as the change was made from. `paths`: which, whole."""

    def __init__(self, code: str, message: str, paths: tuple[str, ...]) -> None:
        super().__init__(code, message, "Nothing was changed.", exit_code=1)
        self.paths = paths


def job_of(roots: tuple[Root, ...], steps: list[Step]) -> Job:
    return Job(roots, steps, STAGING + secrets.token_hex(8))


def write_whole(path: str, data: bytes) -> None:
    """A file of the daemon's own, there in whole or as it was before."""
    with open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)
    folder = os.open(os.path.dirname(path), beneath.FOLDER)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

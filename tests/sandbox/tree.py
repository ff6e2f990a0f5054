"""Trees of files, what is done to them, and how they compare: for tests of commits and undos."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from earnest.sandbox import changeset
from earnest.sandbox.box import Folder, Look, Plan
from earnest.sandbox.changeset import ChangeSet, Start
from earnest.sandbox.folders import Folders
from earnest.sandbox.overlay import Contents

NAMES = ("a", "b", "c", "ä x")
names = st.sampled_from(NAMES)
places = st.lists(names, min_size=1, max_size=3).map("/".join)
times = st.integers(1_000_000_000_000_000_000, 1_700_000_000_000_000_000)
contents = st.sampled_from([b"", b"one\n", b"two\nlines\n", b"\0\1binary", b"same"])
modes = st.sampled_from([0o600, 0o644, 0o755, 0o400, 0o640])
doings = st.one_of(
    st.tuples(st.just("write"), places, contents, modes, times),
    st.tuples(st.just("append"), places, contents),
    st.tuples(st.just("folder"), places),
    st.tuples(st.just("remove"), places),
    st.tuples(st.just("move"), places, places),
    st.tuples(st.just("mode"), places, modes),
    st.tuples(st.just("touch"), places, times),
)
histories = st.lists(doings, max_size=12)


def do(root: Path, what: str, place: str, *rest: object) -> None:
    """One act in a tree; an act that cannot be done is none."""
    path = root / place
    try:
        if what == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rest[0])  # type: ignore[arg-type]
            path.chmod(rest[1])  # type: ignore[arg-type]
            os.utime(path, ns=(rest[2], rest[2]))  # type: ignore[arg-type]
        elif what == "append":
            with path.open("ab") as file:
                file.write(rest[0])  # type: ignore[arg-type]
        elif what == "folder":
            path.mkdir(parents=True)
        elif what == "remove":
            (shutil.rmtree if path.is_dir() else os.unlink)(path)
        elif what == "move":
            to = root / str(rest[0])
            to.parent.mkdir(parents=True, exist_ok=True)
            path.rename(to)
        elif what == "mode":
            path.chmod(rest[0] | (0o700 if path.is_dir() else 0))  # type: ignore[operator]
        elif what == "touch" and path.is_file():
            os.utime(path, ns=(rest[0], rest[0]))  # type: ignore[arg-type]
    except OSError:
        pass


def settle(root: Path, seed: int = 1_600_000_000_000_000_000) -> None:
    """Give every folder a time of its own, so that one that was not put back shows."""
    for number, (folder, _, _) in enumerate(os.walk(root, topdown=False)):
        os.utime(folder, ns=(seed + number * 7919, seed + number * 7919))


def picture(root: Path, folder_times: bool = True) -> dict[str, tuple[object, ...]]:
    """All of a tree: kind, mode, time, bytes."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if path.is_dir():
            seen[str(path.relative_to(root))] = ("folder", mode, status.st_mtime_ns if folder_times else 0)
        else:
            seen[str(path.relative_to(root))] = ("file", mode, status.st_mtime_ns, path.read_bytes())
    return seen


def changed(base: Path, aside: Path, act: Callable[[Path], None], umask: int = 0o022) -> tuple[ChangeSet, Start]:
    """The change that `act` makes to a copy of a tree, as tier B sees it: by its copies at another path."""
    copy = aside / "copy"
    (aside / "kept").mkdir()
    plan = Plan(("x",), {}, "/", "/home", (Folder(str(copy), str(base), "copy"),))
    begun = changeset.start(plan)
    shutil.copytree(base, copy, symlinks=True)
    watched = Folders([str(copy)], Contents(str(aside / "kept")))
    act(copy)
    look = watched.look()

    def bytes_of(path: str, seen: Look | None) -> bytes | None:
        entry = look.entries[path]
        file = entry.now if seen is not None else entry.base
        return watched._contents.bytes_of(file.digest, file.size) if file is not None else None

    return changeset.change_set(look, bytes_of, begun, umask=umask), begun

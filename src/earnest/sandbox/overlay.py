"""What was written in a box, from the upper folders of its overlays (Documentation/filesystems/overlayfs.rst).

A path is in an upper folder if it was written to, or opened for writing; so a look costs what was done, not what is there.
"Deleted" is a character device 0:0, or a folder marked opaque over one that had more.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from io import FileIO
from typing import Final, NamedTuple

from earnest.sandbox.box import Entry, File, Look, within

KEPT: Final = 8 << 20
"""Bytes of a file whose content is kept; of larger ones there is the digest alone."""
KEPT_TOGETHER: Final = 512 << 20
"""Bytes that are kept for one box."""
_DELETED: Final = 20_000
"""Paths that the loss of one folder is spelled out for."""
_PIECE: Final = 1 << 20
_OWN: Final = ("user.", "system.posix_acl_")


class Layer(NamedTuple):
    """One folder of the box: `upper` holds what was written below `target`, `lowers`, the upper ones first, what was there.
    `times`: for a folder that was copied in whole, when each part of it was changed last before the command began."""

    target: str
    upper: str
    lowers: tuple[str, ...]
    times: dict[str, int] | None = None


class Contents:
    """Digests of files by what the file system says of them, and the content that goes with a digest, kept in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._digests: dict[tuple[int, ...], str] = {}
        self._room = KEPT_TOGETHER

    def digest(self, path: str, status: os.stat_result, ours: bool) -> str:
        """SHA-256 of a file in hex; its content is kept where it is small enough. Empty where it cannot be read. `ours`: the
        file is the box's alone, so its mode may be changed for a moment to read it."""
        key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size, status.st_ctime_ns)
        known = self._digests.get(key)
        if known is None:
            known = self._digests[key] = self._read(path, status, ours)
        return known

    def _read(self, path: str, status: os.stat_result, ours: bool) -> str:
        whole = hashlib.sha256()
        pieces: list[bytes] = []
        try:
            with _opened(path, status, ours) as file:
                while piece := file.read(_PIECE):
                    whole.update(piece)
                    if status.st_size <= KEPT and len(pieces) * _PIECE <= KEPT:
                        pieces.append(piece)
        except OSError:
            return ""
        digest = whole.hexdigest()
        place = os.path.join(self._folder, digest)
        if pieces and status.st_size <= self._room and not os.path.exists(place):
            self._room -= status.st_size
            with open(f"{place}.new", "wb") as file:
                file.writelines(pieces)
            os.rename(f"{place}.new", place)
        return digest

    def bytes_of(self, digest: str, size: int) -> bytes | None:
        if size == 0 and digest:
            return b""
        try:
            with open(os.path.join(self._folder, digest), "rb") as file:
                return file.read() if digest and size <= KEPT else None
        except OSError:
            return None


@contextlib.contextmanager
def _opened(path: str, status: os.stat_result, ours: bool) -> Iterator[FileIO]:
    """A file opened without following links."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        number = os.open(path, flags)
    except PermissionError:
        if not ours:
            raise
        os.chmod(path, stat.S_IMODE(status.st_mode) | stat.S_IRUSR)
        try:
            number = os.open(path, flags)
        finally:
            os.chmod(path, stat.S_IMODE(status.st_mode))
    with open(number, "rb", buffering=0) as file:
        yield file


class Looker:
    """Makes looks of one box. `base` is what stood at a path when the box began."""

    def __init__(self, layers: list[Layer], contents: Contents) -> None:
        self._layers = sorted(layers, key=lambda layer: layer.target.count("/") if layer.target != "/" else 0)
        self._targets = {layer.target for layer in layers}
        self._contents = contents
        self._bases: dict[str, File | None] = {}

    def look(self) -> Look:
        entries: dict[str, Entry] = {}
        for layer in self._layers:
            if layer.times is None:
                self._folder(layer, layer.target, layer.upper, entries)
            else:
                self._plain(layer, layer.times, entries)
        return Look(entries)

    def _plain(self, layer: Layer, times: dict[str, int], entries: dict[str, Entry]) -> None:
        seen: set[str] = set()
        waiting = [""]
        while waiting:
            above = waiting.pop()
            try:
                found = list(os.scandir(os.path.join(layer.upper, above)))
            except OSError:
                continue
            for item in found:
                rest = os.path.join(above, item.name)
                path = os.path.join(layer.target, rest)
                seen.add(rest)
                if path in self._targets:
                    continue
                try:
                    status = item.stat(follow_symlinks=False)
                except OSError:
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                if is_folder:
                    waiting.append(rest)
                if times.get(rest) == status.st_ctime_ns:
                    continue
                base, now = self.base(path) if rest in times else None, self._file(item.path, status, ours=True)
                if not is_folder or base != now:
                    entries[path] = Entry(base, now)
        inner = [target for target in self._targets if target != layer.target and within(target, layer.target)]
        for rest in times.keys() - seen:
            path = os.path.join(layer.target, rest)
            if not any(within(path, target) for target in inner):
                entries[path] = Entry(self.base(path), None)

    def base(self, path: str) -> File | None:
        if path not in self._bases:
            found = self._lower(path)
            self._bases[path] = self._file(*found, ours=False) if found else None
        return self._bases[path]

    def holder(self, path: str) -> Layer:
        return max(
            (layer for layer in self._layers if path == layer.target or path.startswith(layer.target.rstrip("/") + "/")),
            key=lambda layer: len(layer.target),
        )

    def _lower(self, path: str) -> tuple[str, os.stat_result] | None:
        """Where what stood at a path stands on this machine."""
        layer = self.holder(path)
        rest = os.path.relpath(path, layer.target)
        parts = [] if rest == "." else rest.split("/")
        for lower in layer.lowers:
            here = lower
            for place, part in enumerate([".", *parts]):
                here = os.path.join(here, part)
                try:
                    status = os.lstat(here)
                except OSError:
                    break
                if _is_whiteout(status):
                    return None
                if place == len(parts):
                    return here, status
                if not stat.S_ISDIR(status.st_mode):
                    return None
            if _is_opaque(os.path.dirname(here)):
                return None
        return None

    def _folder(self, layer: Layer, inside: str, upper: str, entries: dict[str, Entry]) -> None:
        try:
            found = sorted(os.scandir(upper), key=lambda entry: entry.name)
        except PermissionError:
            return
        except OSError:  # it went meanwhile
            return
        for item in found:
            path = os.path.join(inside, item.name)
            if path in self._targets:
                continue  # what lies there is seen in its own layer
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue
            if _is_whiteout(status):
                self._gone(path, entries)
                continue
            base, now = self.base(path), self._file(item.path, status, ours=True)
            if stat.S_ISDIR(status.st_mode):
                if base != now:
                    entries[path] = Entry(base, now)
                if base is not None and (base.kind != "folder" or _is_opaque(item.path)):
                    self._gone(path, entries, itself=False)
                self._folder(layer, path, item.path, entries)
            else:
                entries[path] = Entry(base, now)
                if base is not None and base.kind == "folder":
                    self._gone(path, entries, itself=False)

    def _gone(self, path: str, entries: dict[str, Entry], itself: bool = True) -> None:
        """A path is no more, with all that was below it; what was made there anew is told after this."""
        base = self.base(path)
        if base is None:
            return
        if itself:
            entries[path] = Entry(base, None)
        if base.kind == "folder":
            layer = self.holder(path)
            for below in self._below(layer, path):
                entries[below] = Entry(self.base(below), None)

    def _below(self, layer: Layer, path: str) -> Iterator[str]:
        seen: set[str] = set()
        for lower in layer.lowers:
            root = os.path.normpath(os.path.join(lower, os.path.relpath(path, layer.target)))
            for folder, folders, files in os.walk(root):
                for name in (*folders, *files):
                    inside = os.path.normpath(os.path.join(path, os.path.relpath(folder, root), name))
                    if inside not in seen and len(seen) < _DELETED and self.base(inside) is not None:
                        seen.add(inside)
                        yield inside

    def _file(self, path: str, status: os.stat_result, ours: bool) -> File:
        return file_at(path, status, self._contents, ours)


def file_at(path: str, status: os.stat_result, contents: Contents, ours: bool) -> File:
    """What stands at a path of this machine."""
    mode = stat.S_IMODE(status.st_mode)
    own = _attributes(path) if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else ()
    if stat.S_ISREG(status.st_mode):
        return File("file", status.st_size, mode, status.st_mtime_ns, contents.digest(path, status, ours), attributes=own)
    if stat.S_ISLNK(status.st_mode):
        target = ""
        with contextlib.suppress(OSError):
            target = os.readlink(path)
        return File("link", status.st_size, mode, status.st_mtime_ns, target=target)
    if stat.S_ISDIR(status.st_mode):
        return File("folder", 0, mode, 0, attributes=own)  # these change with what is in it, and that is told by itself
    return File("other", 0, mode, status.st_mtime_ns)


def _attributes(path: str) -> tuple[tuple[str, str], ...]:
    """See `File.attributes`; what overlayfs keeps there for itself is none of them."""
    with contextlib.suppress(OSError):
        names = sorted(os.listxattr(path, follow_symlinks=False))
        return tuple(
            (name, hashlib.sha256(os.getxattr(path, name, follow_symlinks=False)).hexdigest())
            for name in names
            if name.startswith(_OWN) and not name.startswith("user.overlay.")
        )
    return ()


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: str) -> bool:
    try:
        return os.getxattr(folder, "user.overlay.opaque", follow_symlinks=False) == b"y"
    except OSError:
        return False

"""What kind of place a path is. Caches, logs, scratch and companions of other files are no state of their own: what changes
there is told, and never held against a claim by itself. A file that was there before the server came is state wherever it
lies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from earnest.assay.model import Place

_CACHE: Final = frozenset(
    {
        ".cache", "cache", "caches", "__pycache__", ".npm", "_npx", "node-compile-cache", ".pytest_cache", ".mypy_cache",
        ".ruff_cache", ".yarn", ".pnpm-store", ".parcel-cache", ".next", "cachedir", "code cache", "gpucache",
    }
)  # fmt: skip
_LOG: Final = re.compile(
    r"(?:^|/)(?:logs?|\.logs?|_logs)/|\.log(?:\.\d+|\.gz)?$|\.jsonl?\.log$|(?:^|/)(?:npm-debug|debug)\.log"
)
_SIDE: Final = re.compile(
    r"(?:-wal|-shm|-journal|\.lock|\.lck|\.pid|\.swp|~|\.tmp|\.temp|\.bak~|\.pyc|\.pyo|\.part|\.sock|\.socket)$"
    r"|(?:^|/)\.(?:~lock|#)[^/]*$"
)
_TEMP: Final = ("/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/var/run/", "/private/tmp/")
_DEVICES: Final = ("/dev/", "/proc/", "/sys/")


class Lay(msgspec.Struct, frozen=True):
    """How a box is laid out: the fixture's home, where the server's own installation lies, and beginnings of paths `apart`: of
    files of a database that runs beside it, whose rows are looked at instead."""

    home: str
    programs: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    def place(self, path: str, existed: bool) -> Place:
        """What kind of place a path is. `existed`: it was there before the server was started."""
        return place_of(path, self.home, self.programs, existed)

    def shown(self, path: str) -> str:
        """The path as a person reads it: `~` for the home of the fixture."""
        return "~" + path[len(self.home) :] if path == self.home or path.startswith(self.home + "/") else path


def place_of(path: str, home: str, programs: Sequence[str], existed: bool) -> Place:
    """See `Lay.place`."""
    inside = path.startswith(home + "/")
    relative = path[len(home) :] if inside else path
    parts = [part.lower() for part in relative.split("/")[:-1]]
    if "/.git/" in relative or relative.endswith("/.git"):
        return "repository"
    if any(part in _CACHE for part in parts) or relative.split("/")[-1].lower() in _CACHE:
        # What another program had put there is no cache of this server's.
        return "cache" if not existed or "__pycache__" in parts else "state"
    if _SIDE.search(relative):
        return "side"
    if _LOG.search(relative.lower()):
        return "log"
    if not inside:
        if path.startswith(_DEVICES):
            return "side"
        if any(path == program or path.startswith(program + "/") for program in programs):
            return "program"
        if path.startswith(_TEMP):
            return "temp" if not existed else "state"
    return "state"

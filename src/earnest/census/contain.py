"""How a surveyed server is held while it runs: in the best sandbox this machine has (`earnest.sandbox`), without network.

Nothing of a package runs before this: installers run no scripts of packages. The server sees the system's own folders, what
its program needs, a copy of its prefix (some unpack themselves), and a home that is empty at each start; where boxes have paths
of their own that is always the same one, so that what it says does not depend on the machine. Everything it started ends with
it. Where no sandbox works, nothing is started (E1804): a census of unknown programs without containment is not offered.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from earnest.sandbox.box import Box, Folder, Limits, Plan
from earnest.sandbox.tiers import choose

HOME: Final = "/home/census"
"""The home of a server, inside, where a box has paths of its own."""
_CPU_S: Final = 300
_MEMORY: Final = 4 << 30
_PROCESSES: Final = 512
_DISK: Final = 1 << 30
_SPARE_S: Final = 30.0


def name() -> str:
    """How servers are held here, for their records. Raises E1804 where they cannot be."""
    return choose().name


@contextmanager
def box(
    argv: Sequence[str], env: Mapping[str, str], folders: Sequence[Path], prefix: Path | None, wall_s: float
) -> Iterator[Box]:
    """A command that runs in an empty home with exactly `env`; `folders` are what it may read at their own paths, `prefix` is
    where it was installed. Ends with the context, and all that ran in it. Raises E18xx."""
    tier = choose()
    # Elsewhere folders lie at paths of this machine, and nobody may make one beside the homes of others.
    apart = "" if tier.name == "namespaces" else tempfile.mkdtemp(prefix="census-")
    home = os.path.join(apart, "home") if apart else HOME
    given = [Folder(home)]
    given += [Folder(str(folder), str(folder), "read") for folder in folders]
    if prefix is not None:
        given.append(Folder(str(prefix), str(prefix), "copy"))
    limits = Limits(wall_s=wall_s + _SPARE_S, cpu_s=_CPU_S, memory=_MEMORY, processes=_PROCESSES, disk=_DISK)
    try:
        made = tier.box(Plan(tuple(argv), env, home, home, tuple(given), limits=limits))
        try:
            yield made
        finally:
            made.close()
    finally:
        if apart:
            shutil.rmtree(apart, ignore_errors=True)


def path() -> str:
    """The PATH of a server: the system's, and where Node is."""
    node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
    return ":".join(dict.fromkeys((node, "/usr/local/bin", "/usr/bin", "/bin")))

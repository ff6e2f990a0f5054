"""How a surveyed server is held while it runs: no network, an unprivileged user, nothing of the person's home.

Nothing of a package runs before this: installers run no scripts of packages. The server sees the system's own folders, its
prefix, and a home that is empty at each start and always at the same path, so that what it says does not depend on the
machine. It has no network but an empty loopback, and everything it started ends with it.

Uses Linux namespaces through util-linux (`unshare`, `setpriv`, `mount`). As root the server runs as user 65534. Without root,
and where the kernel gives user namespaces to everybody, it keeps the user's id inside a namespace of its own, without
privileges. Elsewhere nothing is started (E1910): a census of unknown programs without containment is not offered.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from earnest.core.errors import EarnestError

NOBODY: Final = 65534
HOME: Final = "/home/census"
"""The home of a server, inside."""
_MEMORY: Final = 16 << 30
"""Bytes of address space (Node reserves over ten gigabytes that it never touches)."""
_FILE: Final = 512 << 20
_OPEN: Final = 4096
_PRIVATE: Final = ("/root", "/home", "/run", "/media")
_TOOLS: Final = ("unshare", "setpriv", "mount", "prlimit")

# Arguments: number of folders, then for each `source target rw|ro`; number of places to cover, and these; folder and command.
# The stage keeps the sources within reach when the places they lie in are covered.
_INSIDE: Final = """
set -eu
count=$1; shift
mount -t tmpfs -o mode=700,size=1m census /mnt
i=0
while [ "$i" -lt "$count" ]; do
  eval "source=\\${$((i * 3 + 1))}"
  mkdir "/mnt/$i"; mount --bind "$source" "/mnt/$i"
  i=$((i + 1))
done
covers=$((count * 3 + 1)); eval "covers=\\${$covers}"
i=0
while [ "$i" -lt "$covers" ]; do
  eval "covered=\\${$((count * 3 + 2 + i))}"
  mount -t tmpfs -o mode=755,size=1m census "$covered"
  i=$((i + 1))
done
i=0
while [ "$i" -lt "$count" ]; do
  eval "target=\\${$((i * 3 + 2))}"; eval "mode=\\${$((i * 3 + 3))}"
  mkdir -p "$target"
  mount --bind "/mnt/$i" "$target"
  [ "$mode" = rw ] || mount -o remount,bind,ro "$target"
  i=$((i + 1))
done
shift $((count * 3 + 1 + covers))
ip link set lo up 2>/dev/null || :
umount -l /mnt 2>/dev/null || :
cd "$1"; shift
exec "$@"
"""


class Cell(msgspec.Struct, frozen=True):
    """A command as it is started: `argv` with `env` in place of the command's own."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def name() -> str:
    """How servers are held here, for their records. Raises E1910 where they cannot be."""
    problem = _problem()
    if problem:
        raise EarnestError(
            "E1910",
            f"servers cannot be contained on this machine: {problem}",
            "Run the census as root on Linux, with util-linux and iproute2; recordings and addresses need no containment.",
            exit_code=3,
        )
    return "namespaces, uid 65534" if os.geteuid() == 0 else "user namespace"


def own(folder: Path) -> None:
    """Give a folder, and all below it, to the user that servers run as."""
    if os.geteuid() == 0:
        for where, _, names in os.walk(folder):
            for name in (where, *(os.path.join(where, one) for one in names)):
                os.lchown(name, NOBODY, NOBODY)


def cell(argv: Sequence[str], env: Mapping[str, str], home: Path, folders: Sequence[Path], prefix: Path | None = None) -> Cell:
    """A command that runs in `HOME` with exactly `env`; `home` is what lies there, `folders` what it may read at their own
    paths, `prefix` where it was installed, which it may change (some unpack themselves). Raises E1910."""
    name()
    binds: list[str] = []
    mounts = [(home, HOME, "rw"), *((folder, str(folder), "ro") for folder in folders)]
    if prefix is not None:
        mounts.append((prefix, str(prefix), "rw"))
    for source, target, mode in mounts:
        binds += (str(source), target, mode)
    root = os.geteuid() == 0
    limits = ["prlimit", f"--as={_MEMORY * 4}", f"--fsize={_FILE}", f"--nofile={_OPEN}", "--core=0", "--"]
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if root else ["setpriv"]
    drop += ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--"]
    spaces = ["--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL", "--mount-proc"]
    spaces = spaces if root else ["--user", "--map-root-user", *spaces]
    covers = _covers([target for _, target, _ in mounts])
    places = [str(len(binds) // 3), *binds, str(len(covers)), *covers]
    inside = ["sh", "-c", _INSIDE, "census", *places, HOME, *drop, *limits, *argv]
    # It dies with its starter, by the signal that nobody can put off.
    return Cell((shutil.which("setpriv") or "setpriv", "--pdeathsig=KILL", "unshare", *spaces, "--", *inside), env)


def readable(*programs: str) -> list[Path]:
    """Folders without which programs outside the system's own places do not start: the trees of Python and Node."""
    found = [Path(sys.base_prefix)]
    for program in programs:
        real = Path(os.path.realpath(shutil.which(program) or "/usr/bin/env"))
        found.append(real.parent.parent)
    return [path for path in dict.fromkeys(found) if not path.is_relative_to("/usr")]


def _covers(targets: Sequence[str]) -> list[str]:
    """Places that are covered by an empty one: what is private anyway, and whatever a stranger may not walk through on the way
    to a folder that the server is given."""
    found = [place for place in _PRIVATE if os.path.isdir(place)]
    for target in targets:
        for above in reversed(Path(target).parents):
            if any(above.is_relative_to(one) for one in found):
                break
            if above.is_dir() and not above.stat().st_mode & 0o001:
                found.append(str(above))
                break
    return found


@functools.cache
def _problem() -> str:
    if not sys.platform.startswith("linux"):
        return "it takes Linux"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found (util-linux)"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    spaces = [*user, "--net", "--mount", "--pid", "--fork", "--kill-child=KILL"]
    probe = ["unshare", *spaces, "--", "mount", "-t", "tmpfs", "x", "/mnt"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or ["unshare failed"])[-1]

"""Which tiers this machine gives, found by making a box of each: a system that promises something may still refuse it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from earnest.core.errors import EarnestError
from earnest.sandbox.box import Plan, Tier
from earnest.sandbox.confined import Confined
from earnest.sandbox.namespaces import Namespaces
from earnest.sandbox.seatbelt import Seatbelt

_WORKED: Final = 42
_TRY_S: Final = 30.0
_PROBE: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch", "probe.py")
LETTERS: Final = {"namespaces": "A", "confined": "B", "seatbelt": "C"}


class Tried(msgspec.Struct, frozen=True):
    """One tier on this machine. `why` it does not work, in the system's own words, and what gives a better one; both empty
    where it works."""

    name: str
    letter: str
    works: bool
    why: str = ""
    remedy: str = ""


class Mechanism(msgspec.Struct, frozen=True):
    """One of the things boxes are made of. `tiers`: letters of those that cannot do without; `detail`: how, or why not."""

    name: str
    tiers: str
    works: bool
    detail: str


class _Kind(NamedTuple):
    make: Callable[[], Tier]
    platform: str


_KINDS: Final = (_Kind(Namespaces, "linux"), _Kind(Confined, "linux"), _Kind(Seatbelt, "darwin"))
_known: dict[str, Tried] = {}


def tried() -> tuple[Tried, ...]:
    """Every tier, the best first; each is tried once in a process."""
    for kind in _KINDS:
        tier = kind.make()
        if tier.name not in _known:
            _known[tier.name] = _try(tier, kind.platform)
    return tuple(_known.values())


def choose(name: str = "") -> Tier:
    """The best tier that works here, or the one named (its name or letter). Raises E1804."""
    wanted = name.lower()
    if wanted and wanted not in LETTERS and wanted.upper() not in LETTERS.values():
        raise EarnestError("E1804", f"there is no tier {name!r}", f"Tiers are {', '.join(LETTERS)}.")
    reasons = []
    for kind in _KINDS:
        tier = kind.make()
        if wanted and wanted not in (tier.name, LETTERS[tier.name].lower()):
            continue
        if tier.name not in _known:
            _known[tier.name] = _try(tier, kind.platform)
        found = _known[tier.name]
        if found.works:
            return tier
        reasons.append(found)
    raise EarnestError(
        "E1804",
        ("that tier does not work here: " if wanted else "nothing can be run in a sandbox here: ")
        + "; ".join(f"{each.name}: {each.why}" for each in reasons),
        next((each.remedy for each in reasons if each.remedy), "`earnest assay doctor` shows what was tried."),
        exit_code=3,
    )


def _try(tier: Tier, platform: str) -> Tried:
    letter = LETTERS[tier.name]
    if not sys.platform.startswith(platform):
        return Tried(tier.name, letter, False, f"it needs {'Linux' if platform == 'linux' else 'macOS'}")
    with tempfile.TemporaryDirectory(prefix="earnest-try-") as folder:
        home = f"{folder}/home"
        command = ("/bin/sh", "-c", f"echo tried > {home}/file && exit {_WORKED}")
        plan = Plan(command, {"PATH": os.defpath}, home, home, watch=True)
        try:
            box = tier.box(plan)
        except (EarnestError, OSError) as error:
            return Tried(tier.name, letter, False, str(error), remedy(os.environ))
        try:
            done = subprocess.run(box.argv, env=dict(box.env), capture_output=True, text=True, timeout=_TRY_S)
            seen = f"{home}/file" in box.look().entries
        except (OSError, subprocess.TimeoutExpired) as error:
            return Tried(tier.name, letter, False, str(error), remedy(os.environ))
        finally:
            box.close()
    if done.returncode == _WORKED and seen:
        return Tried(tier.name, letter, True)
    said = done.stderr.strip().splitlines()
    why = said[-1].removeprefix("earnest: ") if said else "what was written in it was not seen"
    return Tried(tier.name, letter, False, why, remedy(os.environ))


def mechanisms() -> tuple[Mechanism, ...]:
    """Each mechanism, tried by itself; nothing on a system that has none of them."""
    if not sys.platform.startswith("linux"):
        return ()
    with tempfile.TemporaryDirectory(prefix="earnest-try-") as folder:
        command = [sys.executable, "-I", "-S", _PROBE, folder]
        done = subprocess.run(command, capture_output=True, timeout=_TRY_S)
    return tuple(msgspec.json.decode(line, type=Mechanism) for line in done.stdout.splitlines())


def remedy(env: Mapping[str, str]) -> str:
    """What stands in the way of namespaces on this machine, and how to take it away, as far as the system says."""
    found = []
    if _says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        found.append(
            "AppArmor keeps ordinary programs from user namespaces (Ubuntu's default): "
            "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or a profile (docs/sandbox.md)."
        )
    if _says("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        found.append("User namespaces are off for ordinary users: `sudo sysctl -w kernel.unprivileged_userns_clone=1`.")
    if _says("/proc/sys/user/max_user_namespaces") == "0":
        found.append("No user namespace may be made: `sudo sysctl -w user.max_user_namespaces=10000`.")
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or env.get("container"):
        found.append(
            "This is a container: start it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined` "
            "(Docker), or run earnest outside of it."
        )
    if _says("/proc/sys/kernel/yama/ptrace_scope") in ("2", "3"):
        found.append("Yama keeps a listener from its own children: `sudo sysctl -w kernel.yama.ptrace_scope=1`.")
    release = os.uname().release.split("-")[0].split(".")
    numbers = tuple(int(part) for part in release[:2] if part.isdigit())
    if sys.platform.startswith("linux") and numbers < (5, 13):
        found.append(f"Linux {os.uname().release} is too old: namespaces need 5.12, confinement 5.13.")
    return " ".join(found)


def _says(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""

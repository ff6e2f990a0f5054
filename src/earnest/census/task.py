"""The task of one server: install it, start it contained in each era, keep what it says. A pure function of spec and settings.

`isolated` runs it in a process of its own, which is what every scheduler calls: a server that brings its task down, or a task
that hangs, costs one record. `python -m earnest.census.task` is that process; it reads `[spec, settings]` and writes a record.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from earnest import __version__
from earnest.census import contain
from earnest.census.ask import Era, Timeouts, ask_command, ask_url
from earnest.census.install import Installed, install, sdks
from earnest.census.record import Failure, Leg, Record
from earnest.census.spec import Spec
from earnest.core.errors import EarnestError
from earnest.core.scrub import Scrubber

_PR_SET_PDEATHSIG: Final = 1
_ERAS: Final[tuple[Era, ...]] = ("legacy", "modern")
_SPARE_S: Final = 60.0


class Settings(msgspec.Struct, frozen=True):
    """How the task is done. `work`: where prefixes are made (empty: the system's temporary folder); `keep`: they stay."""

    timeouts: Timeouts = Timeouts()
    install_s: float = 600.0
    work: str = ""
    keep: bool = False

    @property
    def longest_s(self) -> float:
        """After which a task is given up from outside."""
        return self.install_s + len(_ERAS) * (self.timeouts.leg_s + 10.0) + _SPARE_S


def unasked(spec: Spec, failure: Failure | None = None) -> Record:
    """What a record says before anything is known but its spec and the time."""
    return Record(
        spec=spec.digest,
        name=spec.name,
        cohort=spec.cohort,
        source=spec.source,
        package=f"{spec.source}:{spec.package}" if spec.package else "",
        recorded=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        licence=spec.licence,
        provenance=spec.url or spec.package or spec.program,
        transport="http" if spec.source == "url" else "stdio",
        failure=failure,
        note=spec.note,
    )


def record(spec: Spec, settings: Settings) -> Record:
    """The record of one server. Whatever goes wrong with the server is in it; raises nothing of the kind."""
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, earnest {__version__}"
    found = msgspec.structs.replace(unasked(spec), machine=machine)
    if spec.source == "url":
        legs = asyncio.run(_of_url(spec, settings.timeouts))
        return msgspec.structs.replace(found, legs=legs, failure=_common_failure(legs))
    return _contained(spec, settings, found)


def _contained(spec: Spec, settings: Settings, found: Record) -> Record:
    work = Path(settings.work) if settings.work else None
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{spec.name}-", dir=work))
    step = "contain"
    try:
        folder.chmod(0o755)
        held = contain.name()
        step = "install"
        prefix = folder / "prefix"
        if spec.source == "command":
            installed = None
            argv = (spec.program, *spec.args)
        else:
            installed = install(spec, prefix, settings.install_s)
            argv = (str(installed.program), *spec.args)
        step = "start"
        made = prefix if installed is not None else None
        legs = asyncio.run(_of_command(spec, settings.timeouts, argv, made))
        found = msgspec.structs.replace(found, legs=legs, failure=_common_failure(legs), containment=held)
        return _with_facts(found, installed, spec)
    except EarnestError as error:
        told = _placeless(folder / "prefix")(error.told)
        return msgspec.structs.replace(found, failure=Failure(step, error.code, told))  # type: ignore[arg-type]
    finally:
        if not settings.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _with_facts(found: Record, installed: Installed | None, spec: Spec) -> Record:
    if installed is None:
        folders = sorted({sdk for folder in spec.folders for sdk in sdks(Path(folder))})
        return msgspec.structs.replace(found, sdk=tuple(folders))
    return msgspec.structs.replace(
        found,
        version=installed.version,
        licence=found.licence or installed.licence,
        sdk=installed.sdk,
        install_s=installed.seconds,
        install_bytes=installed.size,
    )


def _common_failure(legs: tuple[Leg, ...]) -> Failure | None:
    """A server failed if no leg answered; then the first reason counts."""
    return legs[0].failure if all(leg.failure is not None for leg in legs) else None


async def _of_url(spec: Spec, timeouts: Timeouts) -> tuple[Leg, ...]:
    scrub = Scrubber(spec.headers.values())
    return tuple([await ask_url(spec.name, spec.url, spec.headers, era, timeouts, scrub) for era in _ERAS])


async def _of_command(spec: Spec, timeouts: Timeouts, argv: tuple[str, ...], prefix: Path | None) -> tuple[Leg, ...]:
    """Start a command for each era, each time in a box of its own with an empty home."""
    places = {"{PREFIX}": str(prefix or ""), "{HOME}": contain.HOME}
    env = {"PATH": contain.path(), "HOME": contain.HOME, "TMPDIR": contain.HOME, "LANG": "C.UTF-8"}
    env |= {"PYTHONDONTWRITEBYTECODE": "1"} | {name: _filled(value, places) for name, value in spec.env.items()}
    words = tuple(_filled(word, places) for word in argv)
    if spec.setup:
        lines = " && ".join(f"{{ {_filled(line, places)}\n}}" for line in spec.setup)
        words = ("sh", "-c", f'{{ {lines}; }} >&2 || exit 111; exec "$@"', "setup", *words)
    legs = []
    for era in _ERAS:
        with contain.box(words, env, [Path(one) for one in spec.folders], prefix, timeouts.leg_s) as box:
            legs.append(await ask_command(spec.name, box.argv, box.env, era, timeouts, _placeless(prefix)))
    return tuple(legs)


def _placeless(prefix: Path | None) -> Callable[[str], str]:
    """Takes the place where a server was installed out of what is told of it: it says nothing but how this machine is."""
    return lambda text: text if prefix is None else text.replace(str(prefix), "{PREFIX}")


def _filled(text: str, places: dict[str, str]) -> str:
    for mark, path in places.items():
        text = text.replace(mark, path)
    return text


def isolated(spec: Spec, settings: Settings, started: Callable[[int], None] = lambda pid: None) -> Record:
    """`record` in a process of its own. What ends that process, or makes it hang, is a failure of the server.

    `started` hears its process id, which is also that of its group.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "earnest.census.task"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    started(process.pid)
    why = ""
    try:
        out, err = process.communicate(msgspec.json.encode([spec, settings]), settings.longest_s)
    except subprocess.TimeoutExpired:
        why = f"the task was not done within {settings.longest_s:g} s"
        out, err = b"", b""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if not why:
        try:
            return msgspec.json.decode(out, type=Record)
        except msgspec.MsgspecError:
            last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
            why = f"the task ended with status {process.returncode}: {' '.join(last)[:400]}"
    return unasked(spec, Failure("worker", "E1913", why))


def main() -> None:
    """The process of one task. It ends with whoever started it."""
    parent = os.getppid()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(1)
    spec, settings = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[Spec, Settings])
    sys.stdout.buffer.write(msgspec.json.encode(record(spec, settings)))


if __name__ == "__main__":
    main()

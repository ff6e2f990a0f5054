"""Installing one server into a prefix of its own, without running anything of it.

npm runs no scripts of packages (`--ignore-scripts`), pip takes wheels alone (`--only-binary :all:`). The installers run with
the environment of whoever runs the census, because registries and certificates are configured there; the server never sees it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

import msgspec

from earnest.census.spec import Spec
from earnest.core.errors import EarnestError

_SDKS: Final = re.compile(r"@modelcontextprotocol/(?:sdk|server|core)|mcp|fastmcp|fastmcp[-_]slim", re.I)
_NPM: Final = (
    *("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--no-update-notifier"),
    *("--loglevel=error", "--save-exact"),
)
_PIP: Final = ("install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "--no-input")
_MAX_DEPTH: Final = 6
MAX_INSTALLED: Final = 4 << 30
"""Bytes of one prefix, on disk."""
_LOOK_S: Final = 1.0
_MAX_FILES: Final = 400_000


class Installed(msgspec.Struct, frozen=True):
    """What was installed: the executable, and what the packages say of themselves. `size`: bytes on disk."""

    program: Path
    version: str
    licence: str
    sdk: tuple[str, ...]
    seconds: float
    size: int


def install(spec: Spec, prefix: Path, timeout: float) -> Installed:
    """Install a spec of npm or PyPI. Raises E1911 (the installer's last words), E1912 for a program that is not there."""
    begun = time.monotonic()
    prefix.mkdir(parents=True, exist_ok=True)
    (_npm if spec.source == "npm" else _pip)(spec, prefix, timeout)
    seconds = round(time.monotonic() - begun, 2)
    program = _bin(spec, prefix) / spec.program
    if not program.exists():
        there = sorted(path.name for path in _bin(spec, prefix).iterdir()) if _bin(spec, prefix).is_dir() else []
        shown = ", ".join(one for one in there if not re.match(r"(?:python|pip|activate|Activate)", one))
        told = f"{spec.package} has no executable {spec.program!r}; it has {shown[:300] or 'none'}"
        raise EarnestError("E1912", told, exit_code=3)
    version, licence = (_npm_facts if spec.source == "npm" else _pip_facts)(spec, prefix)
    return Installed(program, version, licence, sdks(prefix), seconds, size_of(prefix))


def sdks(prefix: Path) -> tuple[str, ...]:
    """The MCP SDKs below a prefix, `name@version` of npm and `name==version` of PyPI."""
    found: set[str] = set()
    for modules in prefix.rglob("node_modules"):
        if len(modules.relative_to(prefix).parts) > 2 * _MAX_DEPTH:
            continue
        for package in (modules / "@modelcontextprotocol").glob("*/package.json"):
            try:
                facts = json.loads(package.read_bytes())
            except (OSError, ValueError):
                continue
            if isinstance(facts, dict) and _SDKS.fullmatch(str(facts.get("name", ""))):
                found.add(f"{facts['name']}@{facts.get('version', '')}")
    for info in prefix.glob("**/site-packages/*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
        if _SDKS.fullmatch(name):
            found.add(f"{name}=={version}")
    return tuple(sorted(found))


def size_of(folder: Path) -> int:
    """Bytes below a folder; counting ends after a bound."""
    total = seen = 0
    for where, _, names in os.walk(folder):
        for name in names:
            seen += 1
            if seen > _MAX_FILES:
                return total
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except OSError:
                continue
    return total


def _npm(spec: Spec, prefix: Path, timeout: float) -> None:
    if shutil.which("npm") is None:
        raise EarnestError("E1911", "npm is not on this machine", "Install Node 20 or later.", exit_code=3)
    (prefix / "package.json").write_text('{"name": "census", "private": true}\n')
    _run(spec, [*_NPM, spec.package, *spec.requires], prefix, timeout)


def _pip(spec: Spec, prefix: Path, timeout: float) -> None:
    venv = prefix / "venv"
    _run(spec, [sys.executable, "-m", "venv", "--without-pip", str(venv)], prefix, timeout)
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python")]
    _run(spec, [*pip, *_PIP, spec.package, *spec.requires], prefix, timeout)


def _run(spec: Spec, command: Sequence[str], cwd: Path, timeout: float) -> None:
    # A task that is killed takes its installer with it.
    tied = ["setpriv", "--pdeathsig=KILL", *command] if shutil.which("setpriv") else [*command]
    process = subprocess.Popen(
        tied,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        said = _watched(process, spec, cwd, timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if process.returncode:
        lines = [line for line in said.strip().splitlines() if line.strip() and "debug-0.log" not in line]
        words = " / ".join(lines[-6:])
        raise EarnestError("E1911", f"{spec.package} could not be installed: {words[-600:]}", exit_code=3)


def _watched(process: subprocess.Popen[str], spec: Spec, prefix: Path, timeout: float) -> str:
    """What an installer says until it ends. A package may be a bomb that unpacks without end: its size is looked at."""
    end = time.monotonic() + timeout
    pause = _LOOK_S
    while True:
        try:
            return process.communicate(timeout=max(0.0, min(pause, end - time.monotonic())))[0]
        except subprocess.TimeoutExpired:
            begun = time.monotonic()
            if begun >= end:
                raise EarnestError("E1911", f"{spec.package} was not installed within {timeout:g} s", exit_code=3) from None
        if (size := size_of(prefix)) > MAX_INSTALLED:
            told = f"{spec.package} unpacks to {size >> 20} MiB and more; {MAX_INSTALLED >> 20} MiB are allowed"
            raise EarnestError("E1911", told, exit_code=3)
        pause = max(_LOOK_S, 10 * (time.monotonic() - begun))


def _bin(spec: Spec, prefix: Path) -> Path:
    return prefix / "node_modules" / ".bin" if spec.source == "npm" else prefix / "venv" / "bin"


def _npm_facts(spec: Spec, prefix: Path) -> tuple[str, str]:
    name = spec.package.rsplit("@", 1)[0]
    try:
        facts = json.loads((prefix / "node_modules" / name / "package.json").read_bytes())
    except (OSError, ValueError):
        return "", ""
    if not isinstance(facts, dict):
        return "", ""
    licence = facts.get("license", "")
    if isinstance(licence, dict):
        licence = licence.get("type", "")
    return str(facts.get("version", "")), str(licence)[:80]


def _pip_facts(spec: Spec, prefix: Path) -> tuple[str, str]:
    name = re.sub(r"[-_.]+", "_", spec.package.partition("==")[0].partition("[")[0]).lower()
    for info in (prefix / "venv").glob("lib/python*/site-packages/*.dist-info"):
        if re.sub(r"[-_.]+", "_", info.name.removesuffix(".dist-info").rpartition("-")[0]).lower() == name:
            try:
                facts = HeaderParser().parsestr((info / "METADATA").read_text("utf-8", "replace"))
            except OSError:
                continue
            return str(facts.get("Version", "")), _licence(facts)
    return "", ""


def _licence(facts: object) -> str:
    get, get_all = facts.get, facts.get_all  # type: ignore[attr-defined]
    expression = str(get("License-Expression") or "").strip()
    if expression:
        return expression[:80]
    written = str(get("License") or "").strip()
    if written and "\n" not in written and len(written) <= 40:
        return written
    classes = [one.rsplit(" :: ", 1)[-1] for one in get_all("Classifier") or () if one.startswith("License ::")]
    return ", ".join(classes)[:80] or written.partition("\n")[0][:80]

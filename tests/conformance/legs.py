"""The official conformance suite as a judge: started against a server, bare or through earnest, and its checks read.

A *leg* is one run of the suite: a side (`server` or `client`) and a revision. What comes out of it is a `Checks`: each check of
each scenario with its status. Everything is on loopback and ends with its `async with`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / ".servers" / "conformance" / "node_modules"
SUITE = INSTALLED / "@modelcontextprotocol" / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
COUNTED = ("SUCCESS", "FAILURE")
"""What the suite adds up; `WARNING`, `INFO` and `SKIPPED` are said beside it."""
ALLOW_ALL = '[[policy.rule]]\nname = "everything"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'
"""The whole policy of a conformance run: decisions, labels and receipts are made, and none says no."""
PATIENCE_S = 120.0

Check = tuple[str, str, str, int]
"""Scenario, the check's id and name, and which of several of one name it is."""


def node() -> Path | None:
    """The Node that the suite runs on, None where it is not installed."""
    found = sorted(INSTALLED.glob("node-*/bin/node"))
    return found[0] if found and (SUITE / "dist" / "index.js").exists() else None


@dataclass
class Checks:
    """What one leg said. `seconds`: how long it took."""

    status: dict[Check, str] = field(default_factory=dict)
    why: dict[Check, str] = field(default_factory=dict)
    output: str = ""

    def of(self, *statuses: str) -> set[Check]:
        """The checks with one of these statuses."""
        return {check for check, status in self.status.items() if status in statuses}

    def counts(self, scenario: str = "") -> tuple[int, int]:
        """Passed and failed checks, as the suite counts them; of one scenario or of all."""
        said = [status for check, status in self.status.items() if scenario in ("", check[0])]
        return said.count("SUCCESS"), said.count("FAILURE")

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that ran, in order."""
        return list(dict.fromkeys(check[0] for check in self.status))

    def add(self, scenario: str, raw: Sequence[Mapping[str, Any]]) -> None:
        """Take one scenario's `checks.json`."""
        seen: dict[tuple[str, str], int] = {}
        for one in raw:
            key = (one["id"], one["name"])
            seen[key] = seen.get(key, 0) + 1
            check = (scenario, *key, seen[key])
            self.status[check] = one["status"]
            if one["status"] not in ("SUCCESS", "INFO"):
                self.why[check] = str(one.get("errorMessage") or "")


async def run_suite(
    folder: Path, side: str, *arguments: str, env: Mapping[str, str] | None = None, patience_s: float = PATIENCE_S
) -> Checks:
    """Run the suite once and read what it wrote into `folder`. Raises `RuntimeError` where it wrote nothing."""
    program = node()
    assert program is not None, "run scripts/setup-conformance first"
    folder.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        str(program),
        str(SUITE / "dist" / "index.js"),
        side,
        *arguments,
        "-o",
        str(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", **(env or {})},
        start_new_session=True,
    )
    reading = asyncio.create_task(process.stdout.read()) if process.stdout is not None else None
    assert reading is not None
    done, _ = await asyncio.wait((reading,), timeout=patience_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    output = (await reading).decode(errors="replace")
    await process.wait()
    if not done:
        raise RuntimeError(f"the suite did not end within {patience_s:g} s: {side} {' '.join(arguments)}: {output[-1000:]}")
    checks = Checks(output=output)
    for written in sorted(folder.rglob("checks.json"), key=lambda path: path.stat().st_mtime_ns):
        checks.add(_scenario(written.parent.relative_to(folder).as_posix()), json.loads(written.read_bytes()))
    if not checks.status:
        raise RuntimeError(f"the suite wrote no checks: {checks.output[-2000:]}")
    return checks


def _scenario(written: str) -> str:
    """The scenario of a folder that is named after side, scenario and time."""
    return re.sub(r"-\d{4}-\d\d-\d\dT[^/]*\Z", "", written).removeprefix("server-").removeprefix("client-")


@contextlib.asynccontextmanager
async def started(command: Sequence[str], env: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """A process that prints a line when it is ready; the line. It and all that it started are ended at the end."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, **(env or {})}, start_new_session=True
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        if not line:
            raise RuntimeError(f"{command} ended before it was ready")
        yield line.decode().strip()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(process.wait(), 15)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def everything(only: str = "") -> contextlib.AbstractAsyncContextManager[str]:
    """The server with everything, on the official SDK: its URL. `only`: it knows this one era (`legacy`, `modern`) alone."""
    return started([sys.executable, str(Path(__file__).parent / "server"), *(("--only", only) if only else ())])


@dataclass(frozen=True)
class Gateway:
    """A running `earnest serve`."""

    port: int
    token: str
    home: Path
    env: Mapping[str, str]


@contextlib.asynccontextmanager
async def gateway(home: Path, servers: Mapping[str, str]) -> AsyncIterator[Gateway]:
    """`earnest serve` in a home of its own, with the allow-all policy. `servers`: name to the TOML of its table."""
    home.mkdir(parents=True, exist_ok=True)
    config = home / "earnest.toml"
    tables = [f"[servers.{name}]\n{table}\n" for name, table in servers.items()]
    config.write_text('preset = "balanced"\n\n' + "\n".join(tables) + "\n" + ALLOW_ALL)
    env = {
        "HOME": str(home),
        "EARNEST_HOME": str(home / "state"),
        "PYTHONPATH": str(ROOT / "src"),
        "EARNEST_CONFIG": str(config),
    }
    command = [sys.executable, "-P", "-m", "earnest"]
    async with started([*command, "serve", "--port", "0", "--json"], env) as line:
        ready = json.loads(line).get("ready")
        if ready is None:
            raise RuntimeError(f"earnest did not start: {line}")
        token = Path(ready["token_file"]).read_text().strip()
        try:
            yield Gateway(int(ready["address"].rsplit(":", 1)[1]), token, home, env)
        finally:
            stopping = await asyncio.create_subprocess_exec(
                *command, "stop", stdout=asyncio.subprocess.DEVNULL, env={**os.environ, **env}
            )
            await asyncio.wait_for(stopping.wait(), 30)

"""`earnest doctor`: look at everything that has to be right, and say what to do about what is not."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from earnest.cli import doctor_checks as checks
from earnest.cli.daemon import confirm, current, output
from earnest.cli.doctor_checks import Found
from earnest.cli.doctor_clients import clients
from earnest.cli.doctor_hooks import hooks
from earnest.cli.options import Config, Json

_NoStart = Annotated[bool, typer.Option("--no-start", help="Start no server.")]

_Lost = Annotated[
    bool, typer.Option("--store-lost-understood", help="Say that you know what the store has lost; at a terminal.")
]


def doctor(
    no_start: _NoStart = False, store_lost_understood: _Lost = False, config: Config = "", as_json: Json = False
) -> int:
    """Look for what is wrong with this installation: configuration, programs, servers (each is started once), folders, the
    daemon, its address, clients, hooks, receipts. Exit code 1 if there is a problem; changes nothing.

    \b
    Examples:
      earnest doctor
      earnest doctor --no-start --json
    """
    if store_lost_understood:
        return _understood(config, as_json)
    found: list[Found] = []
    terminal = output()
    tones = {"ok": "good", "note": "warn", "problem": "bad"}
    for line in _all(config, start=not no_start):
        found.append(line)
        if not as_json:
            mark = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}[line.state]
            first, *rest = line.text.split("\n")
            terminal.line(f"{mark}  {line.area}: {first}", tones[line.state] if line.state != "ok" else None)  # type: ignore[arg-type]
            for more in (*rest, *([line.remedy] if line.remedy else [])):
                terminal.line(f"           {more}")
    problems = sum(line.state == "problem" for line in found)
    if as_json:
        print(json.dumps({"problems": problems, "checks": [msgspec.to_builtins(line) for line in found]}, ensure_ascii=False))
    else:
        terminal.line(f"{problems} problem{'s' * (problems != 1)}." if problems else "No problems.")
    return 1 if problems else 0


def _understood(config: str, as_json: bool) -> int:
    with current(config) as control:
        lost = control.call("status")["store_lost"]
        if lost:
            confirm(
                "saying that the loss of the store is understood",
                "Go on with what is there?",
                f"{lost[0].upper()}{lost[1:]}.",
                "So nobody knows what conversations have read, which definitions you saw, whom you trusted.",
                "If you go on, conversations begin anew from here. Definitions wait until you accept them (`earnest pins`).",
            )
        answer = control.call("store-lost-understood")
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        output().line(f"Understood (receipt {answer['receipt']}).", "good")
    return 0


def _all(config: str, *, start: bool) -> Iterator[Found]:
    at = checks.place(os.environ, config)
    yield from checks.programs(at)
    settings, lines = checks.configuration(at)
    yield from lines
    yield from checks.folders(at)
    status, lines = checks.daemon(at)
    yield from lines
    counts: dict[str, int] = {}
    if settings is not None:
        yield from checks.listener(settings, status)
        counts, lines = checks.servers(at, settings, start=start)
        yield from lines
    yield from clients(at, counts, sys.platform)
    yield from hooks(at, os.getcwd())
    yield from checks.receipts(at)

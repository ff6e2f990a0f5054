"""`earnest undo`: put back what a call changed, byte for byte."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Annotated, Any

import typer

from earnest.cli.approvals import age
from earnest.cli.daemon import connect, kept_in, output, person
from earnest.cli.options import Config, Json
from earnest.cli.style import Terminal
from earnest.core.errors import EarnestError
from earnest.core.visible import visible
from earnest.sandbox.difference import as_json as shown_as_json
from earnest.sandbox.difference import told
from earnest.sandbox.journalled import Conflict
from earnest.sandbox.undo import Done, Undos

_Receipt = Annotated[str, typer.Argument(metavar="[RECEIPT]", help="The receipt of the call.")]
_List = Annotated[bool, typer.Option("--list", help="What can be undone.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be put back, and change nothing.")]


def undo(
    receipt: _Receipt = "", list_: _List = False, dry_run: _DryRun = False, config: Config = "", as_json: Json = False
) -> int:
    """Put back what a call changed, byte for byte, with modes and times; for calls of contained servers that were previewed.

    \b
    It takes a person at a terminal, and is on record. Where something was changed since, nothing is put back, and the paths
    are named. How long: `undo_days` of [receipts], seven days unless said otherwise. An undo is not undone.

    \b
    Examples:
      earnest undo --list                   what can be undone
      earnest undo gateway.17 --dry-run     what would be put back
      earnest undo gateway.17
    """
    undos = Undos(f"{kept_in(config)}/undo", time.time)
    if list_ or not receipt:
        return _list(undos, as_json)
    done = undos.get(receipt)
    opposite = undos.opposite(receipt)
    if dry_run:
        conflicts = _conflicts(undos, receipt)
        if as_json:
            line = {**described(done), "undo": shown_as_json(opposite), "conflicts": conflicts}
            print(json.dumps(line, ensure_ascii=False))
        else:
            _draw(output(), done, told(opposite))
            for path in conflicts:
                output().line(f"  changed since, so nothing is put back: {visible(path)}", "bad")
        return 1 if conflicts else 0
    with person("undoing a call") as terminal:
        _draw(terminal, done, told(opposite))
        undos.undo(receipt, look_only=True)
        if terminal.ask("Put it back?", {"y": "yes", "n": "no"}, "n") != "y":
            raise EarnestError("E1611", "nothing was changed", exit_code=1)
        with connect(config) as control:
            result: dict[str, Any] = control.call("undo", id=receipt)
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        count = len(result["paths"])
        output().line(f"Undone: {count} path{'' if count == 1 else 's'} as before (receipt {result['receipt']}).", "good")
    return 0


def _conflicts(undos: Undos, receipt: str) -> list[str]:
    """What was changed since."""
    try:
        undos.undo(receipt, look_only=True)
    except Conflict as conflict:
        return list(conflict.paths)
    return []


def _list(undos: Undos, as_json: bool) -> int:
    found = undos.listed()
    if as_json:
        print(json.dumps([described(done) for done in found], ensure_ascii=False))
        return 0
    terminal = output()
    if not found:
        terminal.line("Nothing can be undone.")
        return 0
    now = time.time()
    rows = []
    for done in found:
        paths = [item.shown for item in done.items]
        what = f"{done.items[0].word} {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "") if paths else ""
        until = "undone" if done.undone else datetime.fromtimestamp(done.meta.expires).strftime("%Y-%m-%d %H:%M")
        rows.append((done.meta.id, f"{done.meta.server}/{done.meta.tool}", age(now - done.meta.time), until, what))
    terminal.table(("receipt", "call", "age", "until", "what"), rows)
    return 0


def described(done: Done) -> dict[str, Any]:
    """A commit that is kept, for programs."""
    meta = done.meta
    return {
        "id": meta.id,
        "time": meta.time,
        "until": meta.expires,
        "server": meta.server,
        "tool": meta.tool,
        "undone": done.undone,
        "paths": [{"path": item.shown, "change": item.word} for item in done.items],
    }


def _draw(terminal: Terminal, done: Done, lines: list[str]) -> None:
    terminal.line(f"{done.meta.server}/{done.meta.tool} ({done.meta.id}). Putting it back would:", "strong")
    for line in lines or ["change nothing"]:
        terminal.line(f"  {line}")

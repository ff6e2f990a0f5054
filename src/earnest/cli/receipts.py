"""`earnest receipts`: what was decided and what came of it, read from the files; and whether the record is whole."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
import typer

from earnest.cli.daemon import kept_in, output, running
from earnest.cli.options import Config, Json
from earnest.cli.undo import described
from earnest.core.errors import EarnestError
from earnest.core.receipt import Checkpoint, Event, Report
from earnest.sandbox.undo import Undos
from earnest.store import payloads, read
from earnest.store.anchor import Anchor
from earnest.store.signing import Signer
from earnest.store.sqlite import open_store

app = typer.Typer(invoke_without_command=True, no_args_is_help=False, add_completion=False)

_Server = Annotated[str, typer.Option(metavar="GLOB", help="Calls of this server.")]
_Tool = Annotated[str, typer.Option(metavar="GLOB", help="Calls of this tool.")]
_Decision = Annotated[str, typer.Option(metavar="allow|ask|deny", help="Calls that were decided so.")]
_Since = Annotated[str, typer.Option(metavar="TIME", help="From then on: 30m, 2h, 7d ago, or 2026-11-30T18:00.")]
_Id = Annotated[str, typer.Option(metavar="ID", help="This one.")]
_Events = Annotated[bool, typer.Option("--events", help="Also what is on record apart from calls: trust, labels, pins.")]
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@app.callback()
def receipts(
    context: typer.Context,
    server: _Server = "",
    tool: _Tool = "",
    decision: _Decision = "",
    since: _Since = "",
    id: _Id = "",
    events: _Events = False,
    config: Config = "",
    as_json: Json = False,
) -> int:
    """Every call: what was decided and why, and what came of it. With --json one JSON object a line.

    \b
    Examples:
      earnest receipts --since 1h
      earnest receipts --decision deny --server 'mail*' --json
      earnest receipts show gateway.17      one of them, with arguments and result
      earnest receipts verify               is the record whole?
    """
    if context.invoked_subcommand is not None:
        return 0
    if decision not in ("", "allow", "ask", "deny"):
        raise EarnestError("E1018", f"{decision!r} is no decision", "It is allow, ask or deny.")
    begin = moment(since, time.time()) if since else 0.0
    _settle(config)
    folder = f"{kept_in(config)}/receipts"
    calls = read.receipts(folder, server=server, tool=tool, decision=decision, since=begin, id=id)
    lines: list[dict[str, Any]] = [msgspec.to_builtins(receipt) for receipt in calls]
    if events:
        lines += [line for line in _events(folder, begin) if not id or line["id"] == id]
        lines.sort(key=lambda line: str(line["time"]))
    if as_json:
        for line in lines:
            print(json.dumps(line, ensure_ascii=False))
        return 0
    terminal = output()
    if not lines:
        terminal.line("No receipts." if not os.path.isdir(folder) else "No receipts that fit.")
        return 0
    terminal.table(("time", "call", "decision", "outcome", "labels", "why", "id"), [_row(line) for line in lines])
    return 0


@app.command()
def show(id: str, config: Config = "", as_json: Json = False) -> int:
    """One receipt in full, with arguments and result as far as they are kept (see [receipts] in earnest.toml).

    \b
    Example:
      earnest receipts show gateway.17
    """
    _settle(config)
    home = kept_in(config)
    found = next(read.receipts(f"{home}/receipts", id=id), None)
    line: dict[str, Any]
    if found is None:
        event = next((line for line in _events(f"{home}/receipts", 0.0) if line["id"] == id), None)
        if event is None:
            raise EarnestError("E1420", f"there is no receipt {id!r}", "`earnest receipts` lists them.")
        line = {"event": event}
    else:
        line = {"receipt": msgspec.to_builtins(found)}
        for kind, digest in (("arguments", found.arguments_sha256), ("result", found.result_sha256)):
            kept = payloads.find(f"{home}/payloads", digest) if digest else None
            line[kind] = msgspec.to_builtins(kept) if kept is not None else None
        with suppress(EarnestError):
            line["undo"] = described(Undos(f"{home}/undo", time.time).get(id))
    if as_json:
        print(json.dumps(line, ensure_ascii=False))
        return 0
    terminal = output()
    for name, value in (line.get("receipt") or line["event"]).items():
        if name == "reasons":
            terminal.line("reasons:")
            for reason in value:
                terminal.line(f"  {reason['rule']}: {reason['text']}")
        elif name == "profile":
            terminal.line("profile:")
            for label, known in value.items():
                terminal.line(f"  {label}: {'yes' if known['value'] else 'no'} ({known['basis']})")
        elif value not in ("", None, [], {}):
            terminal.line(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    for kind in ("arguments", "result") if found is not None else ():
        terminal.line(f"{kind}:", "strong")
        terminal.lines(_payload(line[kind]))
    if (undo := line.get("undo")) is not None:
        until = datetime.fromtimestamp(undo["until"]).isoformat(" ", "minutes")
        terminal.line(f"undo: {'was done' if undo['undone'] else f'`earnest undo {id}` until {until}'}")
    return 0


@app.command()
def verify(config: Config = "", as_json: Json = False) -> int:
    """Walk the chain of receipts from its first record: was anything changed, lost, reordered or cut off?

    The heads that the store noted and the signed checkpoints beside the record are held against it. Exit code 1 if
    anything is wrong, with where.

    \b
    Example:
      earnest receipts verify --json
    """
    _settle(config)
    reports = check(kept_in(config))
    intact = all(report.intact for report in reports)
    if as_json:
        print(json.dumps({"intact": intact, "writers": [{**msgspec.to_builtins(r), "intact": r.intact} for r in reports]}))
        return 0 if intact else 1
    terminal = output()
    if not reports:
        terminal.line("There are no receipts yet.")
    for report in reports:
        many = f"{report.records} record{'s' * (report.records != 1)}"
        checked = f"a checkpoint vouches up to record {report.covered}" if report.covered else "no checkpoint yet"
        if report.intact:
            terminal.line(f"{report.writer}: {many}, whole; {checked}", "good")
        else:
            terminal.line(f"{report.writer}: {many}, NOT whole; {checked}", "bad")
        for finding in report.findings:
            terminal.line(f"  {finding.kind}: {finding.text}")
        for repair in report.repairs:
            terminal.line(f"  mended {read.stamp(repair.time)}: {repair.text}", "dim")
    return 0 if intact else 1


def check(home: str) -> list[Report]:
    """What `verify` says of the receipts of an instance's folder."""
    heads: list[Checkpoint] = []
    store = f"{home}/store.db"
    if os.path.exists(store):
        opened = open_store(store, read_only=True)
        try:
            heads = [Checkpoint(row.writer, row.seq, row.head, row.time) for row in opened.heads()]
        finally:
            opened.close()
    outside = Anchor(f"{home}/epoch").checkpoint()
    if outside is not None:
        heads.append(outside)
    key = f"{home}/signing.key"
    return read.verify_all(f"{home}/receipts", heads, [Signer(key).public] if os.path.exists(key) else [])


def moment(text: str, now: float) -> float:
    """Seconds since the epoch: `2h` is two hours before `now`, anything else an ISO 8601 time. Raises E1018."""
    span = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip())
    if span:
        return now - float(span[1]) * _UNITS[span[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        remedy = "Write 30m, 2h or 7d, or a time such as 2026-11-30T18:00."
        raise EarnestError("E1018", f"{text!r} is no time", remedy) from None


def _settle(config: str) -> None:
    """Let a running daemon write what it still holds. What it cannot write is the daemon's to report."""
    control = running(config)
    if control is not None:
        with control, suppress(EarnestError):
            control.call("checkpoint")


def _events(folder: str, since: float) -> Iterator[dict[str, Any]]:
    for id, record in read.events(folder, since=since):
        what = record.what if isinstance(record, Event) else "repair"
        facts = {k: v for k, v in msgspec.to_builtins(record).items() if k not in ("kind", "what", "time")}
        yield {"id": id, "time": read.stamp(record.time), "event": what, **facts}


def _row(line: dict[str, Any]) -> tuple[str, ...]:
    when = datetime.fromisoformat(str(line["time"])).astimezone().strftime("%m-%d %H:%M:%S")
    if "event" in line:
        where = f"{line['server']}/{line['tool']}" if line.get("tool") else line.get("server", "")
        return (when, where, line["event"], "", "", line["text"], line["id"])
    call = f"{line['server']}/{line['tool']}"
    if line["method"] != "tools/call":
        call = f"{line['server']} {line['method']} {line['tool']}"
    before, after = line["labels_before"], line["labels_after"]
    labels = "+".join(before)
    if after is not None and after != before:
        labels = f"{labels or 'none'} > {'+'.join(after) or 'none'}"
    answered = ["it was asked about, and the answer was yes"] if line["approval"] else []
    why = "; ".join([*answered, *(reason["text"] for reason in line["reasons"])])
    return (when, call, line["decision"], line["outcome"] or "-", labels, why, line["id"])


def _payload(kept: dict[str, Any] | None) -> str:
    if kept is None:
        return "  (not kept, or no longer)"
    if kept["left_out"]:
        return f"  (left out: {kept['left_out']}; {kept['size']} bytes)"
    text = str(kept["text"])
    hidden = f"\n  ({kept['redacted']} values hidden)" if kept["redacted"] else ""
    return "\n".join(f"  {part}" for part in text.split("\n")) + hidden

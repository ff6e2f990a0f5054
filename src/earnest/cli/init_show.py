"""What a person sees of `earnest init`, and what a script reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from earnest.cli.init_plan import Hooks, Plan, Surroundings
from earnest.cli.style import Terminal
from earnest.config.clients.changes import Change, Undo
from earnest.config.clients.dialect import Dialect, Entry
from earnest.config.clients.registry import client, over_limit
from earnest.config.clients.shown import diff_texts
from earnest.core.errors import EarnestError
from earnest.core.profile import Trust


def reached(entry: Entry) -> str:
    """The exact command, in full, or the address without its query, which may hold a key."""
    return shlex.join(entry.argv) if entry.kind == "stdio" else entry.url.partition("?")[0]


def preview(terminal: Terminal, around: Surroundings, plan: Plan) -> None:
    """All that was found, each command that will be started through earnest, and the difference."""
    words = {"wrap": "put earnest before it", "wrapped": "is behind earnest", "leave": "left"}
    if plan.found:
        terminal.table(
            ("client", "server", "as", "what happens"),
            [
                (
                    client(item.client).title,
                    item.entry.name + (" (disabled)" if item.entry.disabled else ""),
                    item.name if item.action != "leave" else "",
                    words[item.action] + (f": {item.why}" if item.why else ""),
                )
                for item in plan.found
            ],
        )
    elif not plan.errors:
        terminal.line("No MCP servers were found in any client.")
    local = [item for item in plan.found if item.action == "wrap" and item.entry.kind == "stdio"]
    if local:
        terminal.line()
        terminal.line("These commands run on this machine with all your rights:", "warn")
        for name, text in dict.fromkeys((item.name, reached(item.entry)) for item in local):
            terminal.line(f"  {name}: {text}")
    for dialect, change in plan.changes:
        terminal.line()
        terminal.diff(change.file.path, *diff_texts(dialect, change))
    for item in plan.uncovered:
        terminal.line(f"Not covered: {client(item.client).title}, {item.name}: {item.why} ({item.path})", "warn")
    for error in plan.errors:
        terminal.error(error)
    if around.named and plan.changes:
        terminal.line(
            f"Clients start earnest with the usual configuration, unless EARNEST_CONFIG={around.config} is set for them.",
            "warn",
        )
    if around.wsl:
        terminal.line(
            "This is WSL: clients that run on Windows keep their configuration there and are not touched. "
            "To use earnest with one, let it start `wsl earnest stdio …`.",
            "warn",
        )


def changed(terminal: Terminal, around: Surroundings, plan: Plan, written: Sequence[Change]) -> None:
    """What was written, and what each client wants now."""
    count = sum(len(change.names) for change in written)
    terminal.line(
        f"earnest now stands before {count} server{'s' * (count != 1)}. `earnest init --undo` takes it back.",
        "good",
    )
    terminal.line(f"Settings: {around.config}")
    if any(entry.kind == "http" for change in written for entry, _ in change.names):
        terminal.line(
            "Remote servers are reached through earnest's listener, which is there while `earnest run` or `earnest serve` "
            "runs: start one of them, or let your system do so (docs/clients.md has a unit for it).",
            "warn",
        )
    for name in dict.fromkeys(change.file.client for change in written):
        note = client(name).note or "Restart it, or reload its servers."
        terminal.line(f"{client(name).title}: {note}")


def trust_each(terminal: Terminal, plan: Plan, written: Sequence[Change], hooks: Hooks) -> None:
    """Server by server: what its tools claim, and how far that is to be trusted."""
    if hooks.set_trust is None:
        return
    done: set[str] = set()
    counts: dict[str, int] = {}
    for change in written:
        for entry, name in change.names:
            if name in done:
                continue
            done.add(name)
            terminal.line()
            terminal.line(f"{name}: {reached(entry)}", "strong")
            if hooks.claims is not None:
                try:
                    seen = hooks.claims(name, entry)
                except EarnestError as error:
                    terminal.error(error)
                    continue
                terminal.table(seen.headers, seen.rows)
                counts[name] = len(seen.rows)
                for line in seen.prompts:
                    terminal.line(f"  {line}")
            choices = {"u": "untrusted", "v": "verified", "t": "trusted"}
            answer = terminal.ask(f"How far may {name} be believed?", choices, "u")
            if answer != "u":
                try:
                    hooks.set_trust(name, entry, Trust(choices[answer]))
                except EarnestError as error:
                    terminal.error(error)
    _too_many(terminal, plan, counts)


def _too_many(terminal: Terminal, plan: Plan, counts: Mapping[str, int]) -> None:
    """Name the clients that would not offer their model all the tools that were just seen."""
    for name_of in dict.fromkeys(item.client for item in plan.found):
        names = {item.name for item in plan.found if item.client == name_of and not item.entry.disabled}
        warning = over_limit(client(name_of), sum(counts.get(name, 0) for name in names))
        if warning:
            terminal.line()
            terminal.line(warning, "warn")


def undone(terminal: Terminal, found: Sequence[tuple[Dialect, Undo]], errors: Sequence[EarnestError]) -> None:
    """What an undo would do."""
    for dialect, undo in found:
        how = "restored byte for byte" if undo.exact else "edited since: only earnest's own text is taken out"
        terminal.line(f"{undo.change.file.path}: {how}")
        terminal.diff(undo.change.file.path, *diff_texts(dialect, undo.change), becomes="without earnest")
        for entry in undo.left:
            terminal.line(f"  {entry.name} stays: nothing remembers its address; look in the backups", "warn")
    for error in errors:
        terminal.error(error)
    if not found and not errors:
        terminal.line("earnest stands in no client's configuration.")


def as_json(
    terminal: Terminal,
    around: Surroundings,
    plan: Plan,
    written: Sequence[Change],
    errors: Sequence[EarnestError],
) -> None:
    """One JSON document."""
    terminal.line(
        json.dumps(
            {
                "config": around.config,
                "servers": [
                    {
                        "client": item.client,
                        "path": item.entry.file.path,
                        "server": item.entry.name,
                        "name": item.name,
                        "kind": item.entry.kind,
                        "target": reached(item.entry),
                        "disabled": item.entry.disabled,
                        "action": item.action,
                        "why": item.why,
                    }
                    for item in plan.found
                ],
                "written": [change.file.path for change in written],
                "uncovered": [
                    {"client": item.client, "name": item.name, "path": item.path, "why": item.why} for item in plan.uncovered
                ],
                "errors": [{"code": e.code, "message": e.message, "remedy": e.remedy} for e in errors],
            }
        )
    )

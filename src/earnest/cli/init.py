"""`earnest init`: find clients' servers and put earnest before them, after showing exactly what will
change."""

from __future__ import annotations

import os
import platform as system
import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from earnest.cli.init_daemon import hooks as daemon_hooks
from earnest.cli.init_plan import Hooks, Plan, Surroundings, make_plan
from earnest.cli.init_show import as_json, changed, preview, trust_each, undone
from earnest.cli.style import Terminal
from earnest.config import starting
from earnest.config.clients import changes
from earnest.config.clients.changes import Undo
from earnest.config.clients.dialect import Dialect, find, read
from earnest.config.clients.registry import CLIENTS, client
from earnest.core.errors import EarnestError
from earnest.shim import paths

_Clients = Annotated[list[str] | None, typer.Option("--client", help="Only this client; may be repeated.")]
_Project = Annotated[str, typer.Option("--project", help="Also the files of the project in this folder.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Write without asking.")]
_Dry = Annotated[bool, typer.Option("--dry-run", help="Show, and change nothing.")]
_Undo = Annotated[bool, typer.Option("--undo", help="Take earnest out of the clients again.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON; asks nothing.")]
_Config = Annotated[str, typer.Option("--config", help="The configuration to set up for.")]
_Plain = Annotated[bool, typer.Option("--no-color", help="No colours.")]


def command(hooks: Callable[[Surroundings, str], Hooks]) -> Callable[..., None]:
    """The Typer command. `hooks`: from where it runs and the configuration as named, what only a daemon can answer."""

    def init(
        clients: _Clients = None,
        project: _Project = "",
        yes: _Yes = False,
        dry_run: _Dry = False,
        undo: _Undo = False,
        json: _Json = False,
        config: _Config = "",
        no_color: _Plain = False,
    ) -> None:
        """Put earnest before the servers of your MCP clients. Shows what will change, and asks before it
        writes."""
        env = dict(os.environ)
        terminal = Terminal(sys.stdout, sys.stdin, env, no_color=no_color)
        around = Surroundings(
            home=env.get("HOME") or os.path.expanduser("~"),
            env=env,
            platform=sys.platform,
            release=system.release(),
            project=os.path.abspath(project) if project else "",
        )
        try:
            found, named = paths.config_path(env, config)
            around = around.with_config(found, paths.instance(env, config), named=named)
            chosen = tuple(client(name) for name in clients) if clients else CLIENTS
            run = run_undo if undo else run_init
            code = run(terminal, around, chosen, hooks(around, config), yes=yes, dry_run=dry_run, json=json)
        except (EarnestError, paths.ShimError) as error:
            Terminal(sys.stderr, None, env, no_color=no_color).error(EarnestError(error.code, error.message, error.remedy))
            code = error.exit_code
        raise typer.Exit(code)

    return init


init = command(daemon_hooks)
"""The command `earnest init`."""


def run_init(
    terminal: Terminal,
    around: Surroundings,
    clients: tuple[Dialect, ...],
    hooks: Hooks,
    *,
    yes: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Find, show, ask, write. Returns the exit code: 0, or 2 where some file could not be read or written."""
    if around.platform == "win32":
        raise EarnestError("E1015", "earnest runs on Linux and macOS", "on Windows: inside WSL, with the servers there too")
    plan = make_plan(around, clients, hooks)
    write = bool(plan.changes) and not dry_run and (yes or (terminal.interactive and not json))
    if not json:
        preview(terminal, around, plan)
        if write and not yes:
            write = terminal.ask("Write these changes?", {"y": "yes", "n": "no"}, "n") == "y"
        elif plan.changes and not write:
            terminal.line("Nothing was changed." + ("" if dry_run else " --yes writes without asking."))
    failed = list(plan.errors)
    written: list[changes.Change] = []
    if write:
        _configure(around, plan, hooks)
        for _, change in plan.changes:
            try:
                changes.write(change, around.instance, time.time())
                written.append(change)
            except EarnestError as error:
                failed.append(error)
                if not json:
                    terminal.error(error)
    if json:
        as_json(terminal, around, plan, written, failed)
    elif written:
        changed(terminal, around, plan, written)
        if not yes:
            trust_each(terminal, plan, written, hooks)
    return 2 if failed else 0


def _configure(around: Surroundings, plan: Plan, hooks: Hooks) -> None:
    """Tokens and configuration first: a client must never bring a token, or point at a server, that earnest does not know."""
    made = starting.make_first(around.config)
    remote = [change.file.client for _, change in plan.changes if any(entry.kind == "http" for entry, _ in change.names)]
    if remote and hooks.commit is not None:
        hooks.commit(tuple(dict.fromkeys(remote)))
    if plan.remote:
        starting.add_servers(plan.servers_path, plan.remote)
    if (made or plan.remote) and hooks.reload is not None:
        hooks.reload()


def run_undo(
    terminal: Terminal,
    around: Surroundings,
    clients: tuple[Dialect, ...],
    hooks: Hooks,
    *,
    yes: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Take earnest out of every file that it is in. Returns the exit code as `run_init`; `hooks` are not
    asked."""
    records = changes.journal(around.instance)
    found: list[tuple[Dialect, Undo]] = []
    errors: list[EarnestError] = []
    for dialect in clients:
        places = dict.fromkeys(find(dialect, around.home, around.env, around.platform, around.project))
        places |= dict.fromkeys(r.path for r in records if r.client == dialect.name and os.path.isfile(r.path))
        seen: set[str] = set()
        for path in places:
            if os.path.realpath(path) in seen:
                continue
            seen.add(os.path.realpath(path))
            try:
                undo = changes.undoing(dialect, read(dialect, path), records)
            except EarnestError as error:
                errors.append(error)
                continue
            if undo.left or undo.change.after != undo.change.file.data:
                found.append((dialect, undo))
    write = bool(found) and not dry_run and (yes or (terminal.interactive and not json))
    if not json:
        undone(terminal, found, errors)
        if write and not yes:
            write = terminal.ask("Write these changes?", {"y": "yes", "n": "no"}, "n") == "y"
        elif found and not write:
            terminal.line("Nothing was changed." + ("" if dry_run else " --yes writes without asking."))
    written = []
    for _, undo in found if write else ():
        try:
            changes.restore(undo, around.instance)
            written.append(undo.change)
        except EarnestError as error:
            errors.append(error)
    if json:
        as_json(terminal, around, Plan(), written, errors)
    elif written:
        terminal.line(f"{len(written)} file{'s' * (len(written) != 1)} restored.", "good")
    return 2 if errors or any(undo.left for _, undo in found) else 0

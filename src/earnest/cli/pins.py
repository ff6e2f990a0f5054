"""`earnest pins`: the definitions a person has seen, what became of them, and taking them as they are."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer

from earnest.cli.daemon import current, output, person
from earnest.cli.options import Config, Json
from earnest.cli.style import Terminal
from earnest.cli.target import Identity, only, print_json, words
from earnest.config.document import nearest
from earnest.core.errors import EarnestError

app = typer.Typer(invoke_without_command=True, no_args_is_help=False, add_completion=False, rich_markup_mode=None)

_Server = Annotated[list[str] | None, typer.Argument(metavar="[SERVER [-- COMMAND…]]")]
_Tool = Annotated[list[str], typer.Argument(metavar="SERVER [TOOL] [-- COMMAND…]")]
_Tools = Annotated[list[str], typer.Argument(metavar="SERVER [TOOL…] [-- COMMAND…]")]
_Noise = Annotated[list[str], typer.Argument(metavar="SERVER PATTERN")]

WAITING: Final = ("loosened", "unseen", "refused")
_STATES: Final = {
    "loosened": "changed since a person saw it; its calls ask, and it is served as it was",
    "unseen": "no person has seen it; its calls ask",
    "refused": "can be read in two ways; it is not served as it is now and cannot be accepted",
    "tightened": "changed for the stricter; taken as it is now",
    "holds": "as a person saw it",
}


@app.callback()
def pins(ctx: typer.Context, as_json: Json = False, config: Config = "") -> int:
    """Definitions of tools: what you have seen holds; what changes for the looser asks until you have seen that too.

    \b
    earnest pins                            every server's
    earnest pins diff files                 what waits for you
    earnest pins accept files read_file     take it as it is now
    earnest pins noise files '/home/[a-z]+' text in paths that may differ
    """
    return 0 if ctx.invoked_subcommand is not None else _list(None, {}, as_json, config)


@app.command("list")
def list_(
    ctx: typer.Context, server: _Server = None, identity: Identity = "", as_json: Json = False, config: Config = ""
) -> int:
    """List pins and how each definition stands to its pin.

    \b
    earnest pins list files --json
    """
    before, members = words(server, ctx.obj)
    return _list(only(before, "server") if before else None, {**members, "identity": identity}, as_json, config)


def _list(server: str | None, members: dict[str, Any], as_json: bool, config: str) -> int:
    rows = _rows(server, members, config)
    if as_json:
        print_json(rows)
        return 0
    out = output()
    table = [(f"{row['server']}/{row['tool']}", row["state"], row["pin"] or "none yet") for row in rows]
    if not table:
        out.line("No tools, so no pins.")
        return 0
    out.table(("tool", "state", "pin"), table)
    for name in dict.fromkeys(row["server"] for row in rows if row["state"] in WAITING):
        out.line(f"Some of {name} wait for you: earnest pins diff {name}", "warn")
    return 0


@app.command("diff")
def diff(ctx: typer.Context, target: _Tool, identity: Identity = "", as_json: Json = False, config: Config = "") -> int:
    """Show what differs from what you have seen. Exit code 1 if something waits for you.

    \b
    earnest pins diff files
    earnest pins diff files read_file
    """
    before, members = words(target, ctx.obj)
    found = _waiting(before[0], before[1:], {**members, "identity": identity}, config)
    if as_json:
        print_json(found)
    else:
        _draw(output(), before[0], found)
    return 1 if any(row["state"] in WAITING for row in found) else 0


@app.command("accept")
def accept(ctx: typer.Context, target: _Tools, identity: Identity = "", as_json: Json = False, config: Config = "") -> int:
    """Take definitions as they are now, at a terminal, after their differences were shown; all that wait without names.

    \b
    earnest pins accept files
    earnest pins accept files read_file write_file
    """
    before, members = words(target, ctx.obj)
    server, names = before[0], before[1:]
    members |= {"identity": identity}
    with person("accepting a pin") as terminal, current(config) as daemon:
        rows = [row for row in _rows(server, members, config) if not names or row["tool"] in names]
        found = _chosen(server, rows, names)
        refused = [row for row in found if row["state"] == "refused" and row["tool"] in names]
        if refused:
            raise EarnestError("E1602", f"{server}/{refused[0]['tool']} has two schemas that differ; it cannot be accepted")
        offered = [row for row in found if row["state"] in ("loosened", "unseen")]
        if not offered:
            terminal.line(f"Nothing of {server} waits for you.")
            if as_json:
                print_json({"accepted": [], "receipt": ""})
            return 0
        _draw(terminal, server, offered)
        if terminal.ask(f"Take {_counted(offered)} as shown?", {"y": "yes", "n": "no"}, "n") != "y":
            raise EarnestError("E1611", "nothing was changed", exit_code=1)
        done = daemon.call(
            "pins-accept",
            server=server,
            tools=[row["tool"] for row in offered],
            pins={row["tool"]: row["offered_pin"] for row in offered},
            **members,
        )
        if as_json:
            print_json(done)
        else:
            terminal.line(f"Accepted: {', '.join(done['accepted'])} (receipt {done['receipt']}).", "good")
    return 0


@app.command("noise")
def noise(ctx: typer.Context, target: _Noise, identity: Identity = "", as_json: Json = False, config: Config = "") -> int:
    """Say which text in paths may differ without being a change, at a terminal. PATTERN is a regular expression.

    \b
    earnest pins noise files '/home/[a-z]+/work'
    """
    before, members = words(target, ctx.obj)
    if len(before) != 2:
        raise EarnestError("E1018", "a server and one pattern are wanted", "earnest pins noise files '/home/[a-z]+'")
    with person("marking noise") as terminal, current(config) as daemon:
        done = daemon.call("noise", server=before[0], pattern=before[1], identity=identity, **members)
        if as_json:
            print_json(done)
        else:
            terminal.line(f"Paths like {before[1]} may differ in {before[0]} now (receipt {done['receipt']}).", "good")
    return 0


def _rows(server: str | None, members: dict[str, Any], config: str) -> list[dict[str, Any]]:
    with current(config) as daemon:
        rows: list[dict[str, Any]] = daemon.call("pins", server=server, refresh=True, **members)
    return rows


def _waiting(server: str, names: list[str], members: dict[str, Any], config: str) -> list[dict[str, Any]]:
    return _chosen(server, _rows(server, members, config), names)


def _chosen(server: str, rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """The rows named, or all that differ. Raises E1607 for a name that is none."""
    known = {row["tool"]: row for row in rows}
    for name in names:
        if name not in known:
            raise EarnestError("E1607", f"{server} has no tool {name!r}", nearest(name, sorted(known)))
    return [known[name] for name in names] if names else [row for row in rows if row["state"] != "holds"]


def _draw(out: Terminal, server: str, found: list[dict[str, Any]]) -> None:
    if not found:
        out.line(f"All definitions of {server} are as you have seen them.")
    for row in found:
        out.line(f"{server}/{row['tool']}: {_STATES[row['state']]}", "strong")
        for change in row["changes"]:
            out.line(f"  {change}")
        if row["offered"]:
            for line in json.dumps(json.loads(row["offered"]), indent=2, ensure_ascii=False).splitlines():
                out.line(f"  {line}")


def _counted(rows: list[dict[str, Any]]) -> str:
    return "the one" if len(rows) == 1 else f"these {len(rows)}"

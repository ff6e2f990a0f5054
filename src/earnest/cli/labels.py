"""`earnest labels`: what the operator says of tools."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from earnest.cli.daemon import current, output, person
from earnest.cli.options import Config, Json
from earnest.cli.profiles import TITLES, value
from earnest.cli.style import Terminal
from earnest.cli.target import Identity, print_json, server_and_tool, words
from earnest.config.document import nearest
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES

app = typer.Typer(invoke_without_command=True, no_args_is_help=False, add_completion=False, rich_markup_mode=None)

_Words = Annotated[list[str], typer.Argument(metavar="SERVER/TOOL NAME=true|false… [-- COMMAND…]")]
_Names = Annotated[list[str], typer.Argument(metavar="SERVER/TOOL [NAME…] [-- COMMAND…]")]


@app.callback()
def labels(ctx: typer.Context, as_json: Json = False, config: Config = "") -> int:
    """What you know better about a tool than its server says; it comes first of all.

    \b
    earnest labels                                          all of them
    earnest labels set files/read_file reads_private=false
    earnest labels unset files/read_file

    Names: read_only, destructive, idempotent, open_world, reads_private, sees_untrusted, can_exfiltrate. A label holds for the
    definition the tool has now; for a later one it only makes the tool look more dangerous.
    """
    return 0 if ctx.invoked_subcommand is not None else list_(as_json, config)


@app.command("list")
def list_(as_json: Json = False, config: Config = "") -> int:
    """List the labels of store and file.

    \b
    earnest labels list --json
    """
    with current(config) as daemon:
        rows: list[dict[str, Any]] = daemon.call("labels")
    if as_json:
        print_json(rows)
        return 0
    out = output()
    if not rows:
        out.line("No labels. `earnest labels set SERVER/TOOL NAME=true|false` writes one.")
        return 0
    table = [
        (
            f"{row['server']}/{row['tool']}",
            ", ".join(f"{name}={str(said).lower()}" for name, said in row["labels"].items()),
            "" if row.get("holds", True) else "written for an earlier definition: only raises",
            row["source"],
        )
        for row in rows
    ]
    out.table(("tool", "labels", "", "from"), table)
    return 0


@app.command("set")
def set_(ctx: typer.Context, target: _Words, identity: Identity = "", as_json: Json = False, config: Config = "") -> int:
    """Label a tool, at a terminal.

    \b
    earnest labels set gh/get_issue read_only=true reads_private=false
    earnest labels set mail/send can_exfiltrate=true
    """
    before, members = words(target, ctx.obj)
    values = dict(_setting(word) for word in before[1:])
    if not values:
        raise EarnestError("E1018", "nothing to set", f"earnest labels set {before[0]} read_only=true")
    return _write(before[0], values, {**members, "identity": identity}, as_json, config)


@app.command("unset")
def unset(ctx: typer.Context, target: _Names, identity: Identity = "", as_json: Json = False, config: Config = "") -> int:
    """Take labels back, at a terminal; all of a tool's without names.

    \b
    earnest labels unset gh/get_issue reads_private
    earnest labels unset gh/get_issue
    """
    before, members = words(target, ctx.obj)
    values = dict.fromkeys([_name(word) for word in before[1:]] or NAMES)
    return _write(before[0], values, {**members, "identity": identity}, as_json, config)


def _write(target: str, values: dict[str, Any], members: dict[str, Any], as_json: bool, config: str) -> int:
    server, tool = server_and_tool(target)
    with person("writing a label") as terminal, current(config) as daemon:
        done = daemon.call("label", server=server, tool=tool, values=values, **members)
        if as_json:
            print_json(done)
        else:
            _draw(terminal, target, done)
    return 0


def _draw(out: Terminal, target: str, done: dict[str, Any]) -> None:
    said = ", ".join(f"{name}={str(one).lower()}" for name, one in done["labels"].items())
    out.line(f"{target} is labelled {said or 'with nothing'} (receipt {done['receipt']}).", "good")
    profile = done["tool"]["profile"]
    out.line("It counts now as: " + "; ".join(f"{TITLES[name]}: {value(profile[name])}" for name in NAMES))
    if said:
        out.line(f"The label holds for the definition {done['pin']}", "dim")


def _setting(word: str) -> tuple[str, bool]:
    name, _, said = word.partition("=")
    if said not in ("true", "false"):
        raise EarnestError("E1018", f"{word!r} is not of the form NAME=true or NAME=false", f"{_name(name)}=true")
    return _name(name), said == "true"


def _name(word: str) -> str:
    name = word.replace("-", "_")
    if name not in NAMES:
        raise EarnestError("E1607", f"{word!r} is no label", nearest(name, NAMES))
    return name

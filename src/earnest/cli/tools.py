"""`earnest tools`: what earnest makes of every tool."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from earnest.cli.daemon import current, output
from earnest.cli.options import Config, Json
from earnest.cli.profiles import TITLES, claims, value
from earnest.cli.style import Terminal
from earnest.cli.target import Identity, only, print_json, words
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES

_Server = Annotated[list[str] | None, typer.Argument(metavar="[NAME [-- COMMAND…]]", help="One server; all without.")]
_View = Annotated[str, typer.Option(help="As this view of the configuration shows them.")]
_All = Annotated[bool, typer.Option("--all", help="Hidden tools too, with the reason.")]


def tools(
    ctx: typer.Context,
    server: _Server = None,
    view: _View = "",
    everything: _All = False,
    identity: Identity = "",
    as_json: Json = False,
    config: Config = "",
) -> int:
    """List tools: what each server claims, what holds, and on what basis; starts what does not run.

    \b
    earnest tools                        every configured server
    earnest tools files                  one of them
    earnest tools --view reading --all   what a view shows and hides
    earnest tools gh -- npx -y some-mcp  a server that only a client's configuration names

    A basis is default (nobody said anything that counts), claimed, pack, observed, enforced or operator; `earnest explain
    SERVER/TOOL` says who supplied it. Exit code 3 if a server that was named fails, 1 if one of all does.
    """
    before, members = words(server, ctx.obj)
    name = only(before, "server") if before else None
    with current(config) as daemon:
        found = daemon.call("tools", server=name, view=view, identity=identity, refresh=True, **members)
    for one in found:
        counts = Counter(tool["hidden"] for tool in one["tools"] if tool["hidden"])
        one["hidden"] = {"count": counts.total(), "reasons": dict(counts)}
        if not everything:
            one["tools"] = [tool for tool in one["tools"] if not tool["hidden"]]
    if as_json:
        print_json(_told(found, name))
    else:
        _draw(output(), found)
    return 1 if name is None and any("error" in one for one in found) else 0


def _told(found: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
    """For one server the shape of `probe`; for all, every server and every tool with the name of its server."""
    for one in found:
        one["server"] = {**one["server"], "hidden": one["hidden"]}
        if "error" in one:
            one["server"]["error"] = one["error"]
        one["tools"] = [{"server": one["server"]["name"], **tool} for tool in one["tools"]]
    if name is not None:
        return {"server": found[0]["server"], "tools": found[0]["tools"]}
    return {"servers": [one["server"] for one in found], "tools": [tool for one in found for tool in one["tools"]]}


def _draw(out: Terminal, found: list[dict[str, Any]]) -> None:
    if not found:
        out.line("No server is configured. `earnest init` finds those of your MCP clients; for the demo servers, set")
        out.line("EARNEST_CONFIG as `earnest run` says.")
        return
    for number, one in enumerate(found):
        if number:
            out.line()
        server = one["server"]
        if "error" in one:
            out.line(server["name"], "strong")
            error = one["error"]
            out.error(EarnestError(error["code"], error["message"], error["remedy"]))
            continue
        inside = f"   {server['contained']}" if server.get("contained") else ""
        out.line(f"{server['name']}   {server['trust']} ({server['trust_source']}){inside}   {server['display']}", "strong")
        if one["tools"]:
            headers = ["tool", "claims", *(TITLES[name] for name in NAMES), "definition"]
            out.table(headers, [_row(tool) for tool in one["tools"]])
        else:
            out.line("  no tools")
        for tool in one["tools"]:
            if tool["malformed"]:
                out.line(f"{tool['name']}: {', '.join(tool['malformed'])} is neither true nor false: absent", "warn")
            if tool["hidden"]:
                out.line(f"{tool['name']} is hidden: {tool['hidden']}", "warn")
        for reason, count in one["hidden"]["reasons"].items():
            out.line(f"{count} hidden: {reason} (--all shows them)", "dim")
        if any(tool["pin_state"] in ("loosened", "unseen", "refused") for tool in one["tools"]):
            out.line(f"Some definitions wait for you: earnest pins diff {server['name']}", "warn")


def _row(tool: dict[str, Any]) -> list[str]:
    return [tool["name"], claims(tool["raw"]), *(value(tool["profile"][name]) for name in NAMES), tool["pin_state"]]

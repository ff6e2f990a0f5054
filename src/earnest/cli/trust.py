"""`earnest trust`: how far a server is believed, after a person has seen what that means."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from earnest.cli.daemon import current, output, person
from earnest.cli.options import Config, Json
from earnest.cli.profiles import claims
from earnest.cli.style import Terminal
from earnest.cli.target import Identity, only, print_json, words
from earnest.core.errors import EarnestError

_Target = Annotated[list[str], typer.Argument(metavar="NAME [-- COMMAND…]", help="The server.")]
_Trusted = Annotated[bool, typer.Option("--trusted", help="Believe what it says of its tools.")]
_Verified = Annotated[bool, typer.Option("--verified", help="Believe packs and evidence about it, not its own word.")]
_Untrusted = Annotated[bool, typer.Option("--untrusted", help="Believe nothing that makes it look safer.")]

_MEANS: Final = {
    "trusted": "What it says of its tools is believed, for the definitions shown above; so are packs and evidence.",
    "verified": "Packs and evidence about it may make its tools look safer; its own word may not.",
    "untrusted": "Nothing makes its tools look safer but your own labels and containment.",
}
_WARNING: Final = (
    "This command runs on this machine with your rights: whatever its tools claim, it can read, change and send what you can."
)
_REMOTE: Final = "Whatever its tools are called with goes to this address."


def trust(
    ctx: typer.Context,
    target: _Target,
    trusted: _Trusted = False,
    verified: _Verified = False,
    untrusted: _Untrusted = False,
    identity: Identity = "",
    as_json: Json = False,
    config: Config = "",
) -> int:
    """Say how far a server is trusted, at a terminal; without a level, show how far it is and who said so.

    \b
    earnest trust files                       what holds now
    earnest trust files --verified            packs about it count
    earnest trust files --trusted             its own claims count too
    earnest trust gh --trusted -- npx gh-mcp  a server that only a client's configuration names

    First everything that would be trusted is shown: the exact command, package, version and artefact, every tool with what it
    claims, and which decisions would change. Trust is bound to that server and to those definitions; what changes later asks.
    """
    levels = [name for name, chosen in zip(_MEANS, (trusted, verified, untrusted), strict=True) if chosen]
    if len(levels) > 1:
        raise EarnestError("E1018", f"{' and '.join('--' + one for one in levels)} cannot both hold", "Choose one.")
    before, members = words(target, ctx.obj)
    members |= {"server": only(before, "server"), "identity": identity}
    if not levels:
        with current(config) as daemon:
            shown = daemon.call("trust-preview", **members)
        if as_json:
            print_json(shown)
        else:
            _draw_server(output(), shown["server"])
        return 0
    with person("changing trust") as terminal, current(config) as daemon:
        shown = daemon.call("trust-preview", trust=levels[0], **members)
        _draw(terminal, shown, levels[0])
        if terminal.ask(f"Make {shown['server']['name']} {levels[0]}?", {"y": "yes", "n": "no"}, "n") != "y":
            raise EarnestError("E1611", "nothing was changed", exit_code=1)
        members["identity"] = shown["server"]["identity"]
        done = daemon.call("trust", trust=levels[0], pins=shown["pins"], **members)
        if as_json:
            print_json(done)
        else:
            server = done["server"]
            terminal.line(f"{server['name']} is {server['trust']} now (receipt {done['receipt']}).", "good")
            if server["trust"] != levels[0]:
                terminal.line(f"The stricter of file and store counts: {server['trust_source']}.", "warn")
    return 0


def _draw_server(out: Terminal, server: dict[str, Any]) -> None:
    out.line(server["name"], "strong")
    stdio = server.get("kind", "stdio") == "stdio"
    out.line(f"  {'command' if stdio else 'address'}:   {server['display']}")
    if server["cwd"]:
        out.line(f"  folder:    {server['cwd']}")
    for word in ("package", "version", "artefact"):
        if server.get(word):
            out.line(f"  {(word + ':').ljust(11)}{server[word]}")
    if server["environment"]:
        out.line(f"  is given:  {', '.join(server['environment'])} (values not shown)")
    if server["headers"]:
        out.line(f"  is sent:   {', '.join(server['headers'])} (values not shown)")
    out.line(f"  identity:  {server['identity']}", "dim")
    out.line(f"  trust:     {server['trust']}, from: {server['trust_source']}")


def _draw(out: Terminal, shown: dict[str, Any], level: str) -> None:
    _draw_server(out, shown["server"])
    out.line()
    out.line(_WARNING if shown["server"].get("kind", "stdio") == "stdio" else _REMOTE, "warn")
    if shown["instructions"]:
        out.line()
        out.line("It tells the model:")
        for line in shown["instructions"].splitlines():
            out.line(f"  {line}")
    out.line()
    out.line(f"Its {len(shown['tools'])} tools", "strong")
    for tool in shown["tools"]:
        _draw_tool(out, tool)
    changed = [tool for tool in shown["tools"] if tool["before"] != tool["after"]]
    out.line()
    out.line(f"As {level}", "strong")
    out.line(f"  {_MEANS[level]}")
    for tool in changed:
        out.line(f"  {tool['name']}: {tool['before']} becomes {tool['after']}", "warn" if tool["after"] == "allow" else None)
    if not changed:
        out.line("  No decision on a plain call changes.")
    out.line("  (calls without arguments, in a conversation that has read nothing yet)", "dim")


def _draw_tool(out: Terminal, tool: dict[str, Any]) -> None:
    title = f" ({tool['title']})" if tool["title"] else ""
    out.line(f"  {tool['name']}{title}: claims {claims(tool['claimed'])}")
    out.line(f"    {tool['offered_pin'] or 'no pin: its definition can be read in two ways, and is not accepted'}", "dim")
    for line in tool["description"].splitlines():
        out.line(f"    {line}")
    if tool["malformed"]:
        out.line(f"    {', '.join(tool['malformed'])} is neither true nor false and counts as absent", "warn")
    since = {"unseen": "    new: no person has seen it yet", "loosened": "    changed since a person saw it:"}
    if tool["pin_state"] in since:
        out.line(since[tool["pin_state"]], "warn")
    for change in tool["changes"]:
        out.line(f"      {change}", "warn")

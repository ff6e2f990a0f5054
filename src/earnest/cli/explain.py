"""`earnest explain`: what would be decided of a call, and on whose word."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from earnest.cli.daemon import current, output
from earnest.cli.options import Config, Json
from earnest.cli.profiles import TITLES, claims, row, supplier, with_rows
from earnest.cli.style import Terminal, Tone
from earnest.cli.target import Identity, only, print_json, server_and_tool, words
from earnest.core.arguments import load
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES

_Target = Annotated[list[str], typer.Argument(metavar="SERVER/TOOL [-- COMMAND…]", help="What is called.")]
_Args = Annotated[str, typer.Option(help="The arguments, a JSON object.")]
_Client = Annotated[str, typer.Option(help="The client that calls, by its name in the configuration.")]
_Conversation = Annotated[str, typer.Option(help="The conversation it is part of; `earnest conversation list` shows them.")]
_Method = Annotated[str, typer.Option(help="Another MCP method than tools/call; then SERVER/URI or SERVER/PROMPT.")]
_TONES: dict[str, Tone] = {"allow": "good", "ask": "warn", "deny": "bad"}


def explain(
    ctx: typer.Context,
    target: _Target,
    args: _Args = "{}",
    client: _Client = "",
    conversation: _Conversation = "",
    method: _Method = "tools/call",
    identity: Identity = "",
    as_json: Json = False,
    config: Config = "",
) -> int:
    """Say what would be decided of a call, why, what would change it, and who supplied each value. Nothing runs.

    \b
    earnest explain files/write_file
    earnest explain files/write_file --args '{"path": "/tmp/x", "content": "hi"}'
    earnest explain gh/create_issue --client cursor --conversation user:1000/process:4711.88
    earnest explain files/file:///etc/passwd --method resources/read

    Without --conversation it is judged in one that has read nothing yet. Exit code 0 if it would be allowed, 1 if not.
    """
    before, members = words(target, ctx.obj)
    server, tool = server_and_tool(only(before, "SERVER/TOOL"))
    if not isinstance(load(args.encode()), dict):
        raise EarnestError("E1018", "--args is no JSON object", """Write it like this: --args '{"path": "/tmp"}'""")
    with current(config) as daemon:
        said = daemon.call(
            "explain",
            server=server,
            tool=tool,
            arguments=args,
            client=client,
            conversation=conversation,
            method=method,
            identity=identity,
            **members,
        )
    if as_json:
        print_json({**said, "profile": with_rows(said["profile"])})
    else:
        _draw(output(), said, f"{server}/{tool}")
    return 0 if said["decision"] == "allow" else 1


def _draw(out: Terminal, said: dict[str, Any], target: str) -> None:
    observing = "  (the policy only observes: nothing but its floor is enforced)" if said["mode"] == "observe" else ""
    called = target if said["method"] == "tools/call" else f"{said['method']} {target}"
    out.line(f"{called}: {said['decision']}{observing}", _TONES[said["decision"]])
    out.line()
    out.line("Why", "strong")
    for reason in said["reasons"]:
        out.line(f"  {reason['verdict']:5}  {reason['rule']}")
        out.prose(f"         {reason['text']}", "dim", under="         ")
    if not said["reasons"]:
        out.line("  nothing speaks against it")
    if said["remedies"]:
        out.line()
        out.line("What would change it", "strong")
        for remedy in said["remedies"]:
            out.line(f"  {remedy['text']}" + (":" if remedy["command"] else ""))
            if remedy["command"]:
                out.line(f"    {remedy['command']}", "good")
    out.line()
    out.line("What it is known to do", "strong")
    out.table(["", "", "row", "who says so"], [_line(said, name) for name in NAMES])
    if said["judged_as"]:
        out.line(f"  judged as: {said['judged_as']}")
    out.line()
    _draw_grounds(out, said)


def _line(said: dict[str, Any], name: str) -> list[str]:
    one, base = said["profile"][name], said["resolved"][name]
    number, what = row(name, one)
    who = supplier(name, one)
    if one != base:
        who += f"; of the tool alone: {'yes' if base['value'] else 'no'}, {supplier(name, base)}"
    return [f"  {TITLES[name]}", "yes" if one["value"] else "no", f"{number} {what}", who]


def _draw_grounds(out: Terminal, said: dict[str, Any]) -> None:
    server = said["server"]
    for one in said["evidence"]:
        held = "" if one["holds"] else " (of another version, definition or start: it does not count)"
        when = time.strftime("%Y-%m-%d", time.localtime(one["seen_at"]))
        word = "broke" if one["verdict"] == "violated" else "kept"
        calls = f"tier {one['tier']}, {one['calls']} calls"
        where = (
            f"In its {one['lane']} lane on {when} (tier {one['tier']})" if one.get("lane") else f"An assay of {when} ({calls})"
        )
        out.prose(
            f"{where}: it {word} its word on {TITLES[one['hint']]}{held}",
            "warn" if word == "broke" else None, under="  ",
        )  # fmt: skip
        out.prose(f"  {one['reason']}", "dim", under="  ")
    if said["contained"]:
        out.line(f"It is {said['contained']}; this call goes to the {said['lane'] or 'list'} lane.")
    if said["previewed"]:
        out.line("If it is asked about, it is run over a copy first: the ask shows what it changes, which can be undone.")
    out.line(f"The server claims: {claims(said['claims'])}")
    for hint in said["malformed"]:
        out.line(f"  {hint} is neither true nor false and counts as absent", "warn")
    out.line(f"Trust: {server['trust']}, from: {server['trust_source']}")
    out.line(f"  {server['display']}", "dim")
    if said["pin"] or said["pin_state"] != "holds":
        out.line(f"Definition: {said['pin_state']}  {said['pin']}")
        for change in said["pin_changes"]:
            out.line(f"  {change}", "warn")
    if not said["conversation"]:
        out.line("Conversation: a fresh one (--conversation names another)")
        return
    out.line(f"Conversation: {said['conversation']}, which has touched: {', '.join(said['labels']) or 'nothing'}")
    for label, causes in said["causes"].items():
        for cause in causes["first"]:
            basis = f"{cause['basis']}: {cause['source']}" if cause["source"] else cause["basis"]
            out.line(f"  {label} by {cause['server']}/{cause['subject']}, receipt {cause['receipt']} ({basis})")
        if causes["more"]:
            out.line(f"  {label} by {causes['more']} more calls")

"""`earnest conversation`: what conversations have touched; a person's words about them."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from earnest.cli.approvals import age
from earnest.cli.daemon import confirm, connect, output
from earnest.cli.options import Config, Json
from earnest.cli.style import Terminal
from earnest.core.errors import EarnestError

app = typer.Typer(help="What conversations have touched; end or endorse one.", no_args_is_help=True, add_completion=False)

_Name = Annotated[str, typer.Argument(metavar="CONVERSATION", help="As `list` names it.")]


@app.command("list")
def list_(config: Config = "", as_json: Json = False) -> int:
    """Every conversation, the labels it carries, the calls they came from, and what was endorsed in it.

    \b
    Example:
      earnest conversation list --json
    """
    with connect(config) as control:
        rows: list[dict[str, Any]] = control.call("conversations")
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    terminal = output()
    if not rows:
        terminal.line("There are no conversations yet.")
    now = time.time()
    for row in rows:
        touched = f", {age(now - row['touched'])} ago" if row["touched"] else ""
        terminal.line(f"{row['name']}{touched}", "strong")
        terminal.line(f"  carries: {', '.join(row['labels']) or 'nothing'}", "warn" if row["labels"] else None)
        _causes(terminal, row)
        for endorsed in row["endorsements"]:
            what = "endorsed source" if endorsed["kind"] == "source" else "endorsed"
            terminal.line(f"  {what}: {endorsed['tool']} with {endorsed['text']} ({endorsed['receipt']})")
    return 0


def _causes(terminal: Terminal, row: dict[str, Any]) -> None:
    for label, known in row["causes"].items():
        for cause in known["first"]:
            terminal.line(f"    {label}: {cause['server']}/{cause['subject']} ({cause['receipt']}, {cause['basis']})")
        if known["more"]:
            terminal.line(f"    {label}: and {known['more']} more")


@app.command()
def end(conversation: _Name, config: Config = "", as_json: Json = False) -> int:
    """Say that a conversation is over: its labels go, and that is put on record. Takes a person at a terminal.

    Do it when the client has started afresh and the model no longer has what it read; else what it read before can
    still leave.

    \b
    Example:
      earnest conversation end user:1000/process:4242-991
    """
    with connect(config) as control:
        row = next((row for row in control.call("conversations") if row["name"] == conversation), None)
        if row is None:
            raise EarnestError("E1606", f"there is no conversation {conversation!r}", "`earnest conversation list` shows them.")
        labels = ", ".join(row["labels"]) or "no labels"
        confirm(
            "ending a conversation",
            "Is it over, and does no model remember what it read?",
            f"{conversation} carries {labels}.",
            "Conversations below it end with it.",
        )
        done = control.call("conversation-end", conversation=conversation)
    if as_json:
        print(json.dumps(done))
    else:
        output().line(f"Ended: {', '.join(done['ended']) or conversation} ({done['receipt']}).")
    return 0


@app.command()
def endorse(
    conversation: _Name,
    call: Annotated[str, typer.Argument(metavar="SERVER/TOOL")],
    arguments: Annotated[str, typer.Option("--args", metavar="JSON", help="The values that steer the call.")],
    source: Annotated[bool, typer.Option("--source", help="Not the call: what it reads.")] = False,
    config: Config = "",
    as_json: Json = False,
) -> int:
    """A standing yes, in one conversation, for one tool with given destinations. Takes a person at a terminal.

    It covers calls whose steering values are these; free text of the call may differ. It is put on record, and ends with the
    conversation.

    With --source it is what such a call reads that is endorsed: from now on it does not count as strangers' text here. What
    was read before stays, what the server itself labels counts, and no value of it counts as your own word.

    \b
    Example:
      earnest conversation endorse user:1000/process:4242-991 mailbox/send --args '{"to": "ada@home.example"}'
    """
    server, slash, tool = call.partition("/")
    if not slash or not tool:
        raise EarnestError("E1018", f"{call!r} is not SERVER/TOOL", "Write it as in mailbox/send.")
    question = "Let such calls run in this conversation, whatever it has read?"
    confirm(
        "endorsing",
        "Count what such calls read as no text of strangers, in this conversation?" if source else question,
        f"{call} with {arguments}",
        f"in {conversation}",
    )
    with connect(config) as control:
        words = {"server": server, "tool": tool, "arguments": arguments}
        done = control.call("conversation-endorse", conversation=conversation, source=source, **words)
    if as_json:
        print(json.dumps(done))
    else:
        output().line(f"Endorsed: {call} with {done['values']} ({done['receipt']}).")
    return 0

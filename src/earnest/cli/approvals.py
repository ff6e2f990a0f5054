"""`earnest approvals`: the calls that wait for a person, and the person's answers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import Annotated, Any, Final

import typer

from earnest.cli.daemon import connect, output, person
from earnest.cli.options import Config, Json
from earnest.cli.style import Terminal
from earnest.core.errors import EarnestError
from earnest.core.visible import visible

app = typer.Typer(invoke_without_command=True, no_args_is_help=False, add_completion=False)

_Watch = Annotated[bool, typer.Option("--watch", help="Stay, and show each new one as it comes.")]
_Said = Annotated[str, typer.Argument(metavar="once|no|conversation")]
_All = Annotated[bool, typer.Option("--all", help="Also what is answered, expired or withdrawn.")]

ANSWERS: Final = ("once", "no", "conversation")
TREATMENTS: Final[tuple[tuple[str, dict[str, bool]], ...]] = (
    ("it only reads", {"read_only": True}),
    ("it writes, but destroys nothing", {"read_only": False, "destructive": False}),
    ("it destroys", {"read_only": False, "destructive": True}),
    ("it touches a closed world", {"open_world": False}),
    ("it cannot send anything out", {"can_exfiltrate": False}),
    ("what it returns is no stranger's text", {"sees_untrusted": False}),
    ("what it returns is not private", {"reads_private": False}),
)
"""What a person may say of a tool, and the labels that mean it."""


@app.callback()
def approvals(context: typer.Context, watch: _Watch = False, config: Config = "", as_json: Json = False) -> int:
    """Calls that wait for you. At a terminal, each is shown whole and answered in place; elsewhere they are listed.

    \b
    once           this one call; the same call again asks again
    no             the call is declined
    conversation   this tool with these very destinations, for the rest of this conversation
    treat          say what the tool really does; becomes your label, for the tool as it is defined now

    \b
    Examples:
      earnest approvals                     answer what waits
      earnest approvals --watch             stay and answer as they come
      earnest approvals answer a-… once     answer one
    """
    if context.invoked_subcommand is not None:
        return 0
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _watch_lines(config, as_json) if watch else list_(False, config, as_json)
    return _interactive(config, watch)


@app.command("list")
def list_(everything: _All = False, config: Config = "", as_json: Json = False) -> int:
    """List the calls that wait.

    \b
    Example:
      earnest approvals list --all --json
    """
    with connect(config) as control:
        rows: list[dict[str, Any]] = control.call("approvals", all=everything)
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    terminal = output()
    if not rows:
        terminal.line("Nothing waits for you.")
        return 0
    now = time.time()
    table = [(row["id"], row["state"], call(row), row["client"], age(now - row["created"]), why(row)) for row in rows]
    terminal.table(("id", "state", "call", "client", "age", "asked because"), table)
    return 0


@app.command()
def show(id: str, config: Config = "", as_json: Json = False) -> int:
    """One waiting call, whole, as it is asked.

    \b
    Example:
      earnest approvals show a-01JD…
    """
    row = find(config, id)
    if as_json:
        print(json.dumps(row, ensure_ascii=False))
    else:
        draw(output(), row)
    return 0


@app.command()
def answer(id: str, said: _Said, config: Config = "", as_json: Json = False) -> int:
    """Answer one waiting call. Takes a person at a terminal: the call is shown whole, and a yes is asked for once more.

    \b
    Examples:
      earnest approvals answer a-01JD… once
      earnest approvals answer a-01JD… no
    """
    if said not in ANSWERS:
        raise EarnestError("E1018", f"{said!r} is no answer", f"Answers are: {', '.join(ANSWERS)}.")
    with person("answering an ask") as terminal:
        row = find(config, id)
        draw(terminal, row)
        questions = {"once": "Let this one call run?", "conversation": "Let it run, now and later in this conversation?"}
        question = questions.get(said)
        if question is not None and terminal.ask(question, {"y": "yes", "n": "no"}, "n") != "y":
            raise EarnestError("E1611", "nothing was answered; the call still waits", exit_code=1)
    result = _send(config, row["id"], said)
    if as_json:
        print(json.dumps(result))
    else:
        output().line(_told(said))
    return 0


def find(config: str, id: str) -> dict[str, Any]:
    """The ask of that id, or of the only id that starts or ends so. Raises E1608."""
    with connect(config) as control:
        rows: list[dict[str, Any]] = control.call("approvals", all=True)
    fits = [row for row in rows if row["id"] == id]
    if not fits and len(id) >= 4:
        fits = [r for r in rows if r["state"] == "pending" and (r["id"].startswith(id) or r["id"].endswith(id))]
    if len(fits) != 1:
        found = "several asks fit" if fits else "there is no ask"
        raise EarnestError("E1608", f"{found} {id!r}", "`earnest approvals list` shows what waits.")
    return fits[0]


def call(row: dict[str, Any]) -> str:
    """Server and tool, or server, method and what it is about."""
    if row["method"] == "tools/call":
        return f"{row['server']}/{row['tool']}"
    return f"{row['server']} {row['method']} {row['tool']}"


def why(row: dict[str, Any]) -> str:
    """The reasons that made it an ask."""
    return "; ".join(text for _, text, verdict in row["reasons"] if verdict != "allow")


def age(seconds: float) -> str:
    """How long ago, in words of one unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def draw(terminal: Terminal, row: dict[str, Any]) -> None:
    """An ask as a person reads it before answering."""
    state = "" if row["state"] == "pending" else f"  ({row['state']})"
    terminal.line(f"{row['id']}, {age(time.time() - row['created'])} ago{state}", "dim")
    for number, line in enumerate(row["text"].split("\n")):
        terminal.line(line, "strong" if number < 2 else None)
    for text, command in row["remedies"]:
        terminal.line(f"To change this: {text}{f'  ({command})' if command else ''}", "dim")


def _watch_lines(config: str, as_json: bool) -> int:
    terminal = output()
    with connect(config) as control:
        for row in control.stream("approvals-watch"):
            if as_json:
                print(json.dumps(row, ensure_ascii=False), flush=True)
            else:
                terminal.line(f"{row['id']}  {call(row)}  {why(row)}")
    return 0


def _interactive(config: str, watch: bool) -> int:
    with person("answering an ask") as terminal:
        if watch:
            terminal.line("Waiting for calls; Ctrl-C ends.", "dim")
            with connect(config) as control:
                _answer_all(terminal, config, control.stream("approvals-watch"))
            return 0
        seen: set[str] = set()
        while True:
            with connect(config) as control:
                rows: list[dict[str, Any]] = control.call("approvals")
            fresh = [row for row in rows if row["id"] not in seen]
            if not fresh:
                terminal.line("Nothing else waits for you." if seen else "Nothing waits for you.")
                return 0
            seen |= {row["id"] for row in fresh}
            if not _answer_all(terminal, config, fresh):
                return 0


def _answer_all(terminal: Terminal, config: str, rows: Iterable[dict[str, Any]]) -> bool:
    """Ask about each; returns whether to go on."""
    for row in rows:
        terminal.line()
        draw(terminal, row)
        try:
            if not _answer_one(terminal, config, row):
                return False
        except EarnestError as error:
            if error.exit_code != 1 or error.code == "E1604":
                raise
            terminal.error(error)  # it was withdrawn, answered elsewhere or ran out while it was read
    return True


def _answer_one(terminal: Terminal, config: str, row: dict[str, Any]) -> bool:
    choices = {"o": "once", "n": "no", "c": "conversation"}
    if row["method"] == "tools/call":
        choices["t"] = "treat"
    if "[folded: " in row["text"]:
        choices["f"] = "full"
    choices |= {"s": "skip", "q": "quit"}
    while True:
        terminal.line(", ".join(f"{letter} = {word}" for letter, word in choices.items()), "dim")
        letter = terminal.ask("Let it run?", choices, "s")
        if letter in ("s", "q"):
            return letter == "s"
        if letter == "f":
            terminal.lines(row["arguments"])
            for change in (row.get("preview") or {}).get("changes", ()):
                terminal.line(f"{change['change']} {visible(change['path'])}", "strong")
                for line in change["diff"].splitlines():
                    terminal.line(f"  {line}")
                if change.get("cut"):
                    terminal.line(f"  … and {change['cut']} characters more, which are not shown", "warn")
            if more := (row.get("preview") or {}).get("more", 0):
                terminal.line(f"… and {more} paths more, which are not shown", "warn")
        elif letter == "t":
            _treat(terminal, config, row)
        else:
            said = choices[letter]
            _send(config, row["id"], said)
            terminal.line(_told(said), "good" if said != "no" else None)
            return True


def _treat(terminal: Terminal, config: str, row: dict[str, Any]) -> None:
    """Write a label. The call at hand still waits: it is answered by an answer, and the next one is judged anew."""
    terminal.line(f"What do you know of {row['server']}/{row['tool']}?")
    choices = {str(number): text for number, (text, _) in enumerate(TREATMENTS, 1)} | {"b": "back"}
    for letter, text in choices.items():
        terminal.line(f"  {letter}  {text}")
    letter = terminal.ask("Treat it as", choices, "b")
    if letter == "b":
        return
    with connect(config) as control:
        done = control.call("label", server=row["server"], tool=row["tool"], values=TREATMENTS[int(letter) - 1][1])
    said = ", ".join(f"{name} = {'yes' if value else 'no'}" for name, value in done["labels"].items())
    terminal.line(f"Your label for {row['server']}/{row['tool']} is now: {said}.", "good")
    terminal.line("It counts from the next call on, as long as the tool's definition stays. This call still waits.")


def _send(config: str, id: str, said: str) -> Any:
    with connect(config) as control:
        return control.call("approve", id=id, answer=said)


def _told(said: str) -> str:
    return {
        "once": "Yes, once: the call runs, or the same call when it is tried again soon.",
        "no": "No: the call is declined.",
        "conversation": "Yes, for the rest of this conversation and these destinations.",
    }[said]

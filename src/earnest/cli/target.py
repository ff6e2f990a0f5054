"""Which server, and which tool of it, a command line means."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from earnest.core.errors import EarnestError

Identity = Annotated[str, typer.Option(help="Which of several servers of one name: its identity, as the error lists it.")]


def words(given: list[str] | None, behind: tuple[str, ...] | None) -> tuple[list[str], dict[str, Any]]:
    """The words before `--`, and what the daemon is told of the command behind it (a server that a client brings)."""
    every = list(given or ())
    if behind is None:
        return every, {}
    if not behind:
        raise EarnestError("E1018", "there is no command behind the dashes", "… NAME -- COMMAND …")
    before = every[: len(every) - len(behind)]
    if not before:
        raise EarnestError("E1018", "a server's name comes before the dashes", "… NAME -- COMMAND …")
    return before, {"command": list(behind)}


def only(before: list[str], what: str) -> str:
    """The one word expected. Raises E1018."""
    if len(before) != 1:
        extra = f"{' '.join(before[1:])!r} is one word too many" if before else f"{what} is missing"
        raise EarnestError("E1018", extra, f"Give one {what}.")
    return before[0]


def server_and_tool(text: str) -> tuple[str, str]:
    """`SERVER/TOOL`, or `mcp__SERVER__TOOL` as some clients write it. Raises E1018."""
    server, slash, tool = text.partition("/")
    if not slash and text.startswith("mcp__"):
        server, slash, tool = text.removeprefix("mcp__").partition("__")
    if not slash or not server or not tool:
        raise EarnestError("E1018", f"{text!r} is not of the form SERVER/TOOL", f"`earnest tools {server}` lists its tools.")
    return server, tool


def print_json(value: object) -> None:
    """One JSON value on standard output."""
    print(json.dumps(value, ensure_ascii=False))

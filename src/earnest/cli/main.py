"""The command `earnest`: a table of commands, and one place for their errors.

A command's module is imported when that command is called, so that `earnest --help` and each command start fast. A command
is a function that Typer reads, or a Typer app of several; it returns its exit code, or nothing for 0. Exit codes: 0 fine,
1 findings or denied, 2 usage or configuration, 3 the server failed, 130 after Ctrl-C.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from earnest import __version__
from earnest.core.errors import EarnestError
from earnest.core.visible import visible
from earnest.shim.paths import ShimError


class Command(NamedTuple):
    """Where a command is (`module:name`, below earnest.cli), and one line about it."""

    place: str
    help: str


GROUPS: Final[dict[str, dict[str, Command]]] = {
    "Start here": {
        "run": Command("run:run", "Start the gateway and watch it; with nothing configured, demo servers"),
        "init": Command("init:init", "Put earnest before the servers of your MCP clients"),
        "demo": Command("demo:demo", "A scripted conversation: an allow, an ask, a deny, the trifecta stopped"),
        "doctor": Command("doctor:doctor", "Look for what is wrong with this installation"),
    },
    "Servers and tools": {
        "probe": Command("probe:probe", "Ask a server what it is and what its tools claim"),
        "assay": Command("assay:assay", "Watch what a server's tools do in a sandbox, against what they claim"),
        "lint": Command("lint:lint", "Check what a server's tools claim, before a store or a user does"),
        "census": Command("census:app", "Ask many servers what their tools claim; count, compare, show"),
        "tools": Command("tools:tools", "Every tool with its resolved hints, facets and pin"),
        "explain": Command("explain:explain", "What would be decided of a call, and why"),
        "trust": Command("trust:trust", "Say how far a server is trusted"),
        "labels": Command("labels:app", "What you say of tools yourself"),
        "pins": Command("pins:app", "Definitions of tools: list, compare, accept"),
        "policy": Command("policy:app", "Check, test and explain a policy"),
        "config": Command("config:app", "Check the configuration; approve one found in a folder"),
    },
    "Calls and conversations": {
        "approvals": Command("approvals:app", "Answer the calls that wait for you"),
        "conversation": Command("conversation:app", "What conversations have touched; end or endorse one"),
        "receipts": Command("receipts:app", "What was decided and what came of it; verify the record"),
        "undo": Command("undo:undo", "Put back what a call changed"),
    },
    "The daemon": {
        "serve": Command("serve:serve", "Serve HTTP without a terminal, for service managers"),
        "stop": Command("stop:stop", "End the daemon in good order"),
        "hook": Command("hook:app", "Put earnest into an MCP host's hooks, and answer them"),
        "stdio": Command("", "One server on standard input and output; MCP clients start this"),
    },
}

COMMANDS: Final = {name: command for group in GROUPS.values() for name, command in group.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with its code."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        code = run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        code = 141
    if code == 141:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else the interpreter complains when it flushes at its end
    sys.exit(code)


def run(args: Sequence[str]) -> int:
    """Runs one command line; returns the exit code. Errors are printed here, and nowhere else."""
    as_json = "--json" in _before_dashes(args)
    try:
        return _run(list(args))
    except (EarnestError, ShimError) as error:
        return fail(error, as_json)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            return 141
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return fail(EarnestError("E1019", f"{named}{error.strerror or error}"), as_json)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group called without a subcommand: its message is its help
            print(str(error), end="\n")
            return 2
        if hasattr(error, "format_message"):  # a usage error of click's, which Typer may carry inside itself
            return fail(_usage(error), as_json)
        return fail(_own_mistake(error), as_json)


def _own_mistake(error: Exception) -> EarnestError:
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("earnest"):
        what = f"{error.name}, which earnest needs, is not installed for {sys.executable}"
        return EarnestError("E1500", what, "Install earnest with its dependencies: `make run` in a checkout does.")
    if os.environ.get("EARNEST_DEBUG"):
        traceback.print_exc()
    return EarnestError(
        "E1599",
        f"this is a mistake of earnest itself: {type(error).__name__}: {error}",
        "Run it again with EARNEST_DEBUG=1 and report what it prints.",
        exit_code=3,
    )


def _usage(error: Any) -> EarnestError:
    context = getattr(error, "ctx", None)
    remedy = f"`{context.command_path} --help` shows how it is called." if context is not None else ""
    return EarnestError("E1018", str(error.format_message()).rstrip("."), remedy)


def fail(error: EarnestError | ShimError, as_json: bool) -> int:
    """Prints an error; returns its exit code."""
    message = error.told if isinstance(error, EarnestError) else error.message
    if as_json:
        facts = {"code": error.code, "message": message, "remedy": error.remedy, "exit_code": error.exit_code}
        print(json.dumps({"error": facts}, ensure_ascii=False))
        return error.exit_code
    # Findings of a policy stand in the message with their codes and places.
    first = message.split("\n")[0]
    said = f"earnest: {'' if f' {error.code}: ' in first else f'{error.code}: '}{message}".split("\n")
    remedy = [f"  {line}" for line in error.remedy.split("\n") if line and line not in message]
    sys.stderr.write("".join(f"{visible(line)}\n" for line in [*said, *remedy]))
    sys.stderr.flush()
    return error.exit_code


def _before_dashes(args: Sequence[str]) -> Sequence[str]:
    return args[: args.index("--")] if "--" in args else args


def arranged(args: Sequence[str]) -> list[str]:
    """The arguments with `--config PATH` and `--json` behind everything else, before any `--`.

    So they may stand anywhere: before the command, between it and its subcommand, or at the end.
    """
    here = list(_before_dashes(args))
    rest = list(args[len(here) :])
    kept: list[str] = []
    moved: list[str] = []
    while here:
        word = here.pop(0)
        if word == "--config" and here:
            moved += [word, here.pop(0)]
        elif word.startswith("--config=") or word == "--json":
            moved.append(word)
        else:
            kept.append(word)
    return [*kept, *moved, *rest]


def _run(args: list[str]) -> int:
    if "--no-color" in _before_dashes(args):
        os.environ["NO_COLOR"] = "1"
        args.remove("--no-color")
    args = arranged(args)
    word = args[0] if args else "--help"
    if word == "--version":
        print(f"earnest {__version__}")
        return 0
    if word == "help" and len(args) > 1 and args[1] in COMMANDS:
        return _run([*args[1:], "--help"])
    if word in ("--help", "-h", "help"):
        print(overview(), end="")
        return 0 if args else 2
    if word == "stdio":
        from earnest.shim.handover import main as shim

        return int(shim(args))
    command = COMMANDS.get(word)
    if command is None:
        raise _unknown(word)
    return _call(word, command, args[1:])


def _unknown(word: str) -> EarnestError:
    if word.startswith("-"):
        return EarnestError("E1018", f"there is no option {word} before a command", "`earnest --help` lists commands.")
    near = difflib.get_close_matches(word, COMMANDS, 1)
    hint = f"Did you mean `earnest {near[0]}`? " if near else ""
    return EarnestError("E1018", f"there is no command {word!r}", f"{hint}`earnest --help` lists them.")


def _call(word: str, command: Command, args: list[str]) -> int:
    import typer

    module, _, name = command.place.partition(":")
    found: Callable[..., Any] | typer.Typer = getattr(import_module(f"earnest.cli.{module}"), name)
    if isinstance(found, typer.Typer):
        app = found
        app.rich_markup_mode = None  # plain help: Rich costs more than most commands
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command()(found)
    try:
        # Click drops the `--`; some commands must know what was typed behind it.
        behind = tuple(args[len(_before_dashes(args)) + 1 :]) if "--" in args else None
        code = typer.main.get_command(app)(
            args, prog_name=f"earnest {word}", standalone_mode=False, obj=behind, max_content_width=100
        )
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def overview() -> str:
    """What `earnest --help` prints."""
    width = max(map(len, COMMANDS)) + 2
    lines = ["Usage: earnest COMMAND [OPTIONS]", ""]
    lines += ["Hold MCP tools to their word: a gateway that checks what tools claim.", ""]
    for title, group in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {name.ljust(width)}{command.help}" for name, command in group.items()]
        lines.append("")
    lines += [
        "Anywhere:",
        "  --config PATH   the configuration (else $EARNEST_CONFIG, else ~/.config/earnest/earnest.toml)",
        "  --json          print JSON, errors too",
        "  --no-color      no colours (also NO_COLOR=1)",
        "  --help          what a command does, with examples",
        "  --version       the version of earnest",
        "",
        "Exit codes: 0 fine, 1 findings or denied, 2 usage or configuration, 3 a server or the daemon failed.",
    ]
    return "\n".join(lines) + "\n"

"""`python -m earnest.cli.reference` writes the pages that are made from the code: docs/commands.md and docs/errors.md.

docs/commands.md holds one section for each command, from its `--help`; what stands between the marks
`<!-- example -->` and `<!-- /example -->` below a command is written by hand and kept. docs/errors.md holds
every error code, from `error_codes.toml` beside this file.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from earnest.cli.main import GROUPS, Command

COMMANDS_PAGE: Final = "commands.md"
ERRORS_PAGE: Final = "errors.md"
_MADE: Final = "<!-- Made by `python -m earnest.cli.reference`; only the examples are written by hand. -->"
_OPEN, _CLOSE = "<!-- example -->", "<!-- /example -->"
_INTRO: Final = """\
# Commands

`earnest --help` lists them; `earnest COMMAND --help` says what stands here.

`--no-color` may stand anywhere before `--`, and so may `--config PATH` (the configuration; each has its own daemon
and store) and `--json` (JSON on standard output, errors too) with every command that lists them below.

Exit codes: 0 fine; 1 findings, or a call that does not run; 2 usage or configuration; 3 a server or the daemon
failed; 130 after Ctrl-C. Errors have codes: [errors.md](errors.md).

Commands that change what is trusted or believed (`trust`, `labels set` and `unset`, `pins accept` and `noise`,
`config approve`, `approvals answer`, `conversation end` and `endorse`) ask at a terminal and work nowhere else.

The examples show the demo servers that `earnest run` starts where nothing is configured, from a second terminal in which
`EARNEST_CONFIG` names their configuration, as `run` prints it, in a checkout of this repository. `scripts/docs-examples`
runs them and writes what they show, at a terminal 100 columns wide; paths, ports, ids, times and digests are replaced, and
long outputs are cut in the middle.
"""


def click_command(name: str, command: Command) -> Any:
    """The click command of an entry of `GROUPS`, as the command line builds it."""
    import typer

    module, _, attribute = command.place.partition(":")
    found = getattr(import_module(f"earnest.cli.{module}"), attribute)
    app = found
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command()(found)
    app.rich_markup_mode = None
    return typer.main.get_command(app)


def all_commands() -> Iterator[tuple[str, Any]]:
    """Each command and subcommand by its words (`policy check`), with its click command; None for the shim's."""
    for group in GROUPS.values():
        for name, command in group.items():
            if not command.place:
                yield name, None
                continue
            top = click_command(name, command)
            yield name, top
            for below, one in getattr(top, "commands", {}).items():
                yield f"{name} {below}", one


def options(command: Any) -> set[str]:
    """Every option that a click command takes, as it is written."""
    return {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts) if word[0] == "-"}


def help_text(name: str, command: Any) -> str:
    """What `earnest NAME --help` prints, 100 characters wide."""
    if command is None:
        from earnest.shim.handover import parse

        return str(parse([name, "--help"])).strip()
    import typer

    context = typer.Context(command, info_name=f"earnest {name}", terminal_width=100, max_content_width=100)
    return str(command.get_help(context)).strip()


def commands_page(before: str) -> str:
    """docs/commands.md; `before` is the page as it was, whose examples are kept."""
    kept = {
        found[1]: found[2].strip()
        for found in re.finditer(rf"^#+ earnest ([a-z -]+)$(?:(?!^#).)*?{_OPEN}\n(.*?){_CLOSE}", before, re.S | re.M)
    }
    titles = {next(iter(group)): title for title, group in GROUPS.items()}
    parts = [_MADE, _INTRO.strip()]
    for name, command in all_commands():
        if name in titles:
            parts.append(f"## {titles[name]}")
        level = "###" if " " not in name else "####"
        parts.append(f"{level} earnest {name}\n\n```text\n{help_text(name, command)}\n```")
        if name in kept:
            parts.append(f"{_OPEN}\n{kept[name]}\n{_CLOSE}")
    return "\n\n".join(parts) + "\n"


def error_codes() -> dict[str, tuple[str, str]]:
    """Every error code with what it means and what to do about it."""
    text = files("earnest.cli").joinpath("error_codes.toml").read_text(encoding="utf-8")
    return {code: (one["means"], one["do"]) for code, one in tomllib.loads(text).items() if code.startswith("E")}


_RANGES: Final = {
    "E10": "Configuration and command line",
    "E11": "Policy",
    "E12": "Servers",
    "E13": "Messages",
    "E14": "Store and receipts",
    "E15": "Daemon and shim",
    "E16": "Trust, pins, approvals",
    "E17": "Limits",
    "E18": "Sandbox and assay",
    "E19": "Census",
}


def errors_page() -> str:
    """docs/errors.md."""
    parts = [
        "<!-- Made by `python -m earnest.cli.reference` from src/earnest/cli/error_codes.toml. -->\n# Error codes",
        "Every error says what happened and what to do about it; this page says what stands behind each code. On the\n"
        "command line an error is `earnest: CODE: message` with the remedy below it, on standard error; with `--json` it\n"
        'is `{"error": {"code", "message", "remedy", "exit_code"}}` on standard output. A code keeps its meaning from\n'
        "version to version.",
    ]
    codes = error_codes()
    for start, title in _RANGES.items():
        rows = [f"| {code} | {means} | {do} |" for code, (means, do) in codes.items() if code.startswith(start)]
        parts.append("\n".join([f"## {start}xx {title}\n", "| code | meaning | what to do |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def main(docs: Path) -> None:
    """Write both pages into the folder `docs`."""
    page = docs / COMMANDS_PAGE
    page.write_text(commands_page(page.read_text(encoding="utf-8") if page.exists() else ""), encoding="utf-8")
    (docs / ERRORS_PAGE).write_text(errors_page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))

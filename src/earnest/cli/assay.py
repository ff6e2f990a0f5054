"""`earnest assay`: watch what a server's tools do in a sandbox, and hold it against what they claim."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from earnest.assay import settings as own
from earnest.assay.bench import DATABASES, Ground, Wish, ground, shared_paths
from earnest.assay.both import joined
from earnest.assay.model import Report
from earnest.assay.programs import wanted_settings
from earnest.assay.run import Options, Told, nothing_came, worst
from earnest.assay.run import assay as assayed
from earnest.assay.settings import AssaySettings
from earnest.assay.stubs import answers
from earnest.assay.verdicts import as_json, html, replay, sarif
from earnest.cli.assay_show import Progress, show
from earnest.cli.daemon import output, person
from earnest.cli.options import Config, Json
from earnest.cli.probe import launch_of_target
from earnest.config import identity as identities
from earnest.core.errors import EarnestError
from earnest.sandbox import tiers

_Target = Annotated[
    list[str] | None, typer.Argument(metavar="NAME | doctor | init | -- COMMAND…", help="A configured server, or a command.")
]
_Url = Annotated[
    str, typer.Option("--url", metavar="URL", help="Where the command listens inside the sandbox (Streamable HTTP).")
]
_Tools = Annotated[list[str] | None, typer.Option("--tool", metavar="NAME", help="Only this tool; may be given again.")]
_Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME[=VALUE]", help="A variable the server is given; without a value, yours. No secrets."),
]
_Folder = Annotated[
    list[str] | None, typer.Option("--folder", metavar="PATH", help="A folder laid in as it is; what is written there is lost.")
]
_Keep = Annotated[bool, typer.Option("--keep-arguments", help="Do not put the fixture in place of paths in the command.")]
_Settings = Annotated[
    str, typer.Option("--settings", metavar="FILE", help="Own arguments and stubs; ./assay.toml if it is there.")
]
_Database = Annotated[
    str, typer.Option("--database", metavar="KIND", help="Start one beside the server: postgresql, mysql or redis.")
]
_Tier = Annotated[
    str, typer.Option("--tier", help="A (namespaces), B (confined), C (seatbelt); the best that works if not given.")
]
_Both = Annotated[bool, typer.Option("--both", help="Tiers A and B side by side: shows servers that behave when watched.")]
_Jobs = Annotated[int, typer.Option("--jobs", min=1, max=32, help="Clean sessions at once.")]
_Strict = Annotated[bool, typer.Option("--strict", help="Caches, logs and scratch of a reader contradict it too.")]
_Patience = Annotated[float, typer.Option("--patience", min=0.0, help="Seconds waited for late writes.")]
_Timeout = Annotated[float, typer.Option("--timeout", min=0.5, help="Seconds a call may take.")]
_Opening = Annotated[float, typer.Option("--opening", min=1.0, help="Seconds the server has to start.")]
_Limit = Annotated[
    float, typer.Option("--time-limit", min=0.0, help="Seconds all of it may take; what is not done is left. 0: no limit.")
]
_Format = Annotated[str, typer.Option("--format", help="text, json, sarif or html.")]
_Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; the table is shown as well.")]
_Replays = Annotated[
    str, typer.Option("--replays", metavar="FOLDER", help="Where scripts that show contradictions are written.")
]
_NoStore = Annotated[bool, typer.Option("--no-record", help="Keep nothing of it, not even of a configured server.")]
_Yes = Annotated[bool, typer.Option("--support", help="Also keep what speaks for claims; asks at the terminal.")]
FORMATS = ("text", "json", "sarif", "html")


def assay(
    ctx: typer.Context,
    target: _Target = None,
    url: _Url = "",
    tool: _Tools = None,
    env: _Env = None,
    folder: _Folder = None,
    keep_arguments: _Keep = False,
    settings: _Settings = "",
    database: _Database = "",
    tier: _Tier = "",
    both: _Both = False,
    jobs: _Jobs = 2,
    strict: _Strict = False,
    patience: _Patience = 2.5,
    timeout: _Timeout = 20.0,
    opening: _Opening = 60.0,
    time_limit: _Limit = 0.0,
    format_: _Format = "text",
    out: _Output = "",
    replays: _Replays = "",
    no_record: _NoStore = False,
    support: _Yes = False,
    as_json: Json = False,
    config: Config = "",
) -> int:
    """Run a server in a sandbox, call its tools, and say of each claim whether what they did contradicts it.

    \b
    earnest assay -- node_modules/.bin/some-server /folder    an installed command; nothing needs to be configured
    earnest assay files                                   a server of the configuration; what is found is kept
    earnest assay --url http://127.0.0.1:8000/mcp -- uvicorn app:app
    earnest assay --both --format sarif -o assay.sarif -- ./server
    earnest assay init -- ./server                        writes assay.toml: own arguments, stubs
    earnest assay doctor                                  which sandbox this machine gives

    Your files, keys and network are not there inside: the server sees a made-up home, and an internet that only answers.
    Verdicts:
    CONTRADICTED, SOFT (caches, logs, scratch), SUPPORTED, OVER-DECLARED, NOT-EXERCISED, INCONCLUSIVE (this machine cannot see).

    Exit code 0 if nothing is contradicted, 1 if something is, 2 for a mistake in the call, 3 if the server or the sandbox
    failed.
    """
    words = _before(target, ctx.obj)
    if words == ["doctor"] and ctx.obj is None:
        from earnest.cli.assay_doctor import doctor

        return doctor(as_json)
    shape = "json" if as_json else format_
    if shape not in FORMATS:
        raise EarnestError("E1018", f"--format is {shape!r}", f"It takes {', '.join(FORMATS)}.")
    if not words and not ctx.obj:
        raise EarnestError("E1018", "say what to assay", "earnest assay NAME, or earnest assay -- COMMAND …")
    sketching = words[:1] == ["init"] and ctx.obj is not None
    named = words[0] if words and not sketching else ""
    wish, choices = _wish(
        words if not sketching else [],
        ctx.obj,
        config,
        url,
        env,
        folder,
        keep_arguments,
        settings,
        database,
        timeout,
        opening,
        sketching,
    )
    chosen = tiers.choose(tier)
    if sketching:
        return _sketch(wish, chosen, settings or "assay.toml")
    if support:
        if not named:
            raise EarnestError("E1018", "--support keeps evidence about a configured server", "earnest assay NAME --support")
        with person("keeping evidence that speaks for a server"):
            pass  # better now than after minutes
    progress = Progress(sys.stderr, quiet=not sys.stderr.isatty())
    options = Options(patience, jobs, strict, tuple(tool or ()), seconds=time_limit)
    began = time.monotonic()
    try:
        found = _run(wish, chosen, options, choices, progress.told, replays)
        if both:
            other = tiers.choose("B" if chosen.name == "namespaces" else "A")
            found = joined(found, _run(wish, other, options, choices, progress.told, replays))
    finally:
        progress.end()
    found = msgspec.structs.replace(found, seconds=round(time.monotonic() - began, 2))
    _write(found, shape, out)
    if named and not no_record:
        from earnest.cli.assay_keep import keep

        artefact = identities.of_command(wish.argv, wish.env, wish.cwd).artefact
        keep(named, found, artefact, config, support, output() if shape == "text" else None)
    return 1 if worst(found.tools) else 3 if nothing_came(found) else 0


def _before(target: Sequence[str] | None, behind: tuple[str, ...] | None) -> list[str]:
    every = list(target or ())
    words = every if behind is None else every[: len(every) - len(behind)]
    if len(words) > 1 or (words and words[0] not in ("init",) and behind is not None):
        raise EarnestError(
            "E1018",
            f"{' '.join(words)!r} and a command" if behind else f"{words[1]!r} is one word too many",
            "earnest assay -- COMMAND …",
        )
    return words


def _wish(
    words: list[str],
    behind: tuple[str, ...] | None,
    config: str,
    url: str,
    env: Sequence[str] | None,
    folder: Sequence[str] | None,
    keep: bool,
    path: str,
    database: str,
    timeout: float,
    opening: float,
    sketching: bool,
) -> tuple[Wish, AssaySettings]:
    found = path or ("assay.toml" if os.path.exists("assay.toml") else "")
    choices = own.load(found) if found and not sketching else AssaySettings()
    base = os.path.dirname(os.path.abspath(found)) if found else os.getcwd()
    name, launch, _ = launch_of_target(words, behind, config)
    if launch.url:
        raise EarnestError(
            "E1952",
            f"{name} is at an address, and what a remote server does cannot be seen from here",
            "Give the command that starts it: earnest assay --url http://127.0.0.1:PORT/mcp -- COMMAND …",
        )
    given = {**_harmless(launch.env, launch.secrets, behind is None), **choices.server.env}
    for word in env or ():
        key, equals, value = word.partition("=")
        if not equals and key not in os.environ:
            raise EarnestError("E1018", f"--env {key}: there is no such variable", f"Give it a value: --env {key}=VALUE")
        given[key] = value if equals else os.environ[key]
    kind = database or choices.server.database
    if kind and kind not in DATABASES:
        raise EarnestError("E1018", f"--database is {kind!r}", f"It takes {', '.join(DATABASES)}.")
    stubs = answers(choices.stub, choices.server.cassettes, choices.server.openapi, base)
    shared = shared_paths([*(folder or ()), *choices.server.folders], base)
    return (
        Wish(
            name,
            tuple(launch.argv),
            dict(os.environ),
            launch.cwd or os.getcwd(),
            given,
            shared,
            keep,
            url,
            kind,
            stubs,
            timeout,
            opening,
        ),
        choices,
    )


def _harmless(env: Any, secrets: frozenset[str], configured: bool) -> dict[str, str]:
    """What a configuration gives its server; what is secret in it does not go into a sandbox."""
    if not configured:
        return {}
    added = {name: value for name, value in env.items() if os.environ.get(name) != value}
    return {
        name: "dummy-0123456789abcdef" if any(s and s in value for s in secrets) else value for name, value in added.items()
    }


def _run(wish: Wish, tier: Any, options: Options, choices: AssaySettings, told: Told, replays: str) -> Report:
    """One assay; a server that names settings it lacks is started again with dummies for them."""
    for attempt in range(3):
        with ground(wish, tier, options.jobs) as place:
            every = msgspec.structs.replace(options, arguments=choices.arguments(place.fixture), skipped=choices.skipped)
            try:
                done = asyncio.run(assayed(place.bench, place.fixture, place.literals, every, told, place.started.argv))
            except EarnestError as error:
                wanted = wanted_settings(error.said, {**place.started.env, **wish.given}) if attempt < 2 else {}
                if not wanted or not error.code.startswith("E12"):
                    raise _explained(error, place) from None
                told("start", f"with dummies for {', '.join(wanted)}", 0, 1)
                wish = msgspec.structs.replace(wish, given={**wish.given, **wanted})
                continue
            return replay.write(replays, done.report, place.fixture, place.started.env) if replays else done.report
    raise AssertionError("unreachable")


def _explained(error: EarnestError, place: Ground) -> EarnestError:
    remedy = error.remedy if error.remedy and "daemon" not in error.remedy else ""
    if error.code.startswith("E12"):
        remedy = (
            "Inside there is no home of yours and no network. --env gives it settings, --folder folders; "
            f"`earnest probe -- {shlex.join(place.started.argv[:1])} …` starts it without a sandbox."
        )
        if place.started.notes:
            remedy += f" What was put in place of paths: {'; '.join(place.started.notes)} (--keep-arguments leaves them)."
    return EarnestError(
        error.code,
        f"{error.message} (in the sandbox)" if error.code.startswith("E12") else error.message,
        remedy,
        exit_code=error.exit_code,
        said=error.said,
    )


def _sketch(wish: Wish, tier: Any, path: str) -> int:
    """`earnest assay init`: write a file with the first guesses."""
    from earnest.assay.arguments.harvest import Harvest
    from earnest.assay.arguments.plan import Planner
    from earnest.assay.oracle.control import control

    if os.path.exists(path):
        raise EarnestError("E1018", f"{path} is there already", "Remove it, or name another by --settings FILE.")
    with ground(wish, tier) as place:
        try:
            seen = asyncio.run(control(place.bench, 0.0))
        except EarnestError as error:
            raise _explained(error, place) from None
        planner = Planner(place.fixture, place.literals, {})
        guesses = {tool.name: planner.candidates(tool, Harvest(), 2) for tool in seen.tools}
        text = own.sketched(guesses, place.fixture, shlex.join(wish.argv))
    Path(path).write_text(text, "utf-8")
    output().line(
        f"{path} written: {len(guesses)} tools. Correct it, then: earnest assay --settings {path} -- {shlex.join(wish.argv)}"
    )
    return 0


def _write(report: Report, shape: str, path: str) -> None:
    text = {
        "json": lambda: msgspec.json.encode(as_json.told(report)).decode() + "\n",
        "sarif": lambda: sarif.render(report),
        "html": lambda: html.render(report),
    }.get(shape)
    if text is not None and path:
        Path(path).write_text(text(), "utf-8")
        show(output(), report)
        output().line(f"written to {path}", "dim")
    elif text is not None:
        sys.stdout.write(text())
    else:
        show(output(), report)

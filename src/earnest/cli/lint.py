"""`earnest lint`: what is wrong in what a server's tools claim."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from earnest.cli.daemon import output
from earnest.cli.lint_show import FORMATS, show, verdicts
from earnest.cli.options import Config, Json
from earnest.cli.probe import launch_of_target
from earnest.cli.style import Terminal
from earnest.config import identity as identities
from earnest.core.errors import EarnestError
from earnest.core.scrub import Scrubber, scrubbed
from earnest.gateway.glance import Glance, glance
from earnest.gateway.served import Launch
from earnest.lint import baseline as baselines
from earnest.lint import config as configs
from earnest.lint import fix as fixes
from earnest.lint import submission as submissions
from earnest.lint.audits.unread_source import AUDIT as UNREAD
from earnest.lint.explain import audits, explain
from earnest.lint.model import CONFIDENCES, SEVERITIES, Finding, Server, tool_of
from earnest.lint.propose import Observed, observed, propose, withheld
from earnest.lint.reading import read_bounded, read_bytes, read_path
from earnest.lint.run import Selection, worst
from earnest.lint.run import lint as examine
from earnest.lint.sources import is_source, read_source, required
from earnest.lint.stores import profile as stores
from earnest.lint.stores.registry import find

_PROJECT = ("pyproject.toml", "package.json", "setup.py", ".git")

_Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH | - | NAME | URL | -- COMMAND…", help="A recording, a folder, source, a server. `-` reads standard input."
    ),
]
_Format = Annotated[str, typer.Option("--format", help=f"{', '.join(FORMATS)}.")]
_Severity = Annotated[str, typer.Option("--severity", help="The least that is shown: note, warning, error.")]
_Confidence = Annotated[str, typer.Option("--confidence", help="The least that is shown: low, medium, high.")]
_Persona = Annotated[str, typer.Option("--persona", help="regular, or pedantic for everything.")]
_FailOn = Annotated[str, typer.Option("--fail-on", help="The least severity that makes the exit code 1.")]
_Only = Annotated[list[str] | None, typer.Option("--only", metavar="AUDIT", help="Only this audit; may be repeated.")]
_Without = Annotated[list[str] | None, typer.Option("--without", metavar="AUDIT", help="Not this audit; may be repeated.")]
_Profile = Annotated[
    list[str] | None, typer.Option("--profile", metavar="STORE", help="What a store asks, tool by tool; may be repeated.")
]
_Explain = Annotated[str, typer.Option("--explain", metavar="ID", help="What an audit or a profile is, and stop.")]
_Submission = Annotated[
    str, typer.Option("--submission", metavar="FILE", help="Compare a chatgpt-app-submission.json with the server.")
]
_Baseline = Annotated[str, typer.Option("--baseline", metavar="FILE", help="Findings in this file are old, and not shown.")]
_Write = Annotated[str, typer.Option("--write-baseline", metavar="FILE", help="Write all findings there, and exit 0.")]
_LintConfig = Annotated[str, typer.Option("--lint-config", metavar="FILE", help="Else ./earnest-lint.toml.")]
_Fix = Annotated[bool, typer.Option("--fix", help="Propose annotations: a patch for Python source, JSON for others.")]
_Apply = Annotated[bool, typer.Option("--apply", help="With --fix: write the Python files instead of printing a patch.")]
_Lower = Annotated[bool, typer.Option("--lower", help="With --fix: let the description alone lower risk.")]
_Evidence = Annotated[
    str, typer.Option("--evidence", metavar="FILE", help='With --fix: {"TOOL": {"read_only": true}} that was observed.')
]
_Every = Annotated[bool, typer.Option("--every", help="Text: each finding on a line of its own.")]
_Timeout = Annotated[float, typer.Option(help="Seconds a server has to answer the opening.", min=0.1)]


def lint(
    ctx: typer.Context,
    target: _Targets = None,
    format_: _Format = "text",
    severity: _Severity = "",
    confidence: _Confidence = "",
    persona: _Persona = "",
    fail_on: _FailOn = "",
    only: _Only = None,
    without: _Without = None,
    profile: _Profile = None,
    explain_: _Explain = "",
    audits_: Annotated[bool, typer.Option("--audits", help="Explain all audits, and stop.")] = False,
    submission: _Submission = "",
    baseline: _Baseline = "",
    write_baseline: _Write = "",
    lint_config: _LintConfig = "",
    fix: _Fix = False,
    apply: _Apply = False,
    lower: _Lower = False,
    evidence: _Evidence = "",
    every: _Every = False,
    timeout: _Timeout = 30.0,
    as_json: Json = False,
    config: Config = "",
) -> int:
    """Check what a server says of its own tools: hints, names, schemas, words.

    \b
    earnest lint -- npx -y @scope/some-server             a server, started with your environment
    earnest lint tools.json                               a recorded tools/list; `-` reads standard input
    earnest lint snapshots/                               a folder of recordings; two of one server are compared
    earnest lint src/                                     Python or TypeScript source, without running it
    earnest lint src/ --profile openai-apps               what a store asks, tool by tool
    earnest lint src/ --fix | git apply                   annotations proposed for Python source

    Exit code 0 if nothing at or above `--fail-on` (warning) was found, 1 if something was, 2 for a mistake in the call, 3 if
    the server failed.
    """
    if explain_ or audits_:
        typer.echo(audits() if audits_ else explain(explain_))
        return 0
    settings = configs.load(Path(lint_config) if lint_config else None)
    shape = "json" if as_json else _one_of("--format", format_, FORMATS)
    selection = Selection(
        severity=_one_of("--severity", severity or settings.severity, SEVERITIES),
        confidence=_one_of("--confidence", confidence or settings.confidence, CONFIDENCES),
        persona=_one_of("--persona", persona or settings.persona, ("regular", "pedantic")),
        only=_known(only),
        without=_known(without) | frozenset(settings.disable),
        ignore=settings.ignore,
    )
    failing = _one_of("--fail-on", fail_on or settings.fail_on, SEVERITIES)
    chosen = [find(name) for name in profile or settings.profiles]
    hidden = Scrubber()
    servers = servers_of(target or [], ctx.obj, config, timeout, hidden)
    if fix:
        return _fix(servers, evidence, lower, apply, hidden)
    # A store's verdicts stand alone, but for what could not be looked at.
    alone = msgspec.structs.replace(selection, only=frozenset((UNREAD.id,))) if chosen and not only else selection
    found: list[Finding] = examine(servers, alone)
    passed: list[tuple[str, str, stores.Verdict]] = []
    for one in chosen:
        for server in servers:
            for verdict in stores.check(server, one):
                passed.append((one.id, server.name, verdict))
                found += [f for f in verdict.findings if selection.keeps(f)]
    if submission:
        form = submissions.load(Path(submission))
        for server in servers:
            found += [f for f in submissions.check(server, form, submission) if selection.keeps(f)]
    # A server may repeat in a description what it was given in secret.
    found = [msgspec.structs.replace(one, message=hidden(one.message), fix=hidden(one.fix)) for one in found]
    if write_baseline:
        count = baselines.write(Path(write_baseline), found)
        output().line(f"{count} findings written to {write_baseline}")
        return 0
    old = baseline or settings.baseline
    if old:
        known = baselines.load(Path(old))
        found = [f for f in found if baselines.known(f) not in known]
    if passed and shape == "text":
        verdicts(output(), passed)
    show(output(), shape, found, servers, every)
    highest = worst(found)
    return 1 if highest is not None and SEVERITIES.index(highest) >= SEVERITIES.index(failing) else 0


def servers_of(
    targets: Sequence[str], behind: tuple[str, ...] | None, config: str, timeout: float, hidden: Scrubber
) -> list[Server]:
    """What the words of the call mean: recordings, folders, source, and servers to ask. `hidden` learns the secrets that those
    are given. Raises E1018, E1020, E12xx."""
    if behind is not None:
        return [_asked(list(targets), behind, config, timeout, hidden)]
    if not targets:
        raise EarnestError(
            "E1018", "say what to lint", "earnest lint tools.json, earnest lint src/, or earnest lint -- COMMAND …"
        )
    servers: list[Server] = []
    for word in targets:
        path = Path(word)
        if word == "-":
            servers += read_bytes(read_bounded(sys.stdin.buffer, "standard input"), "-")
        elif path.is_dir():
            servers += _folder(path)
        elif path.exists():  # a pipe too, as the shell makes of <(command)
            servers += [required(path)] if is_source(path) else read_path(path)
        elif word.endswith((".json", ".jsonl", ".snap", ".py", ".ts")) or (os.sep in word and "://" not in word):
            raise EarnestError("E1019", f"{word}: there is no such file")
        else:
            servers.append(_asked([word], None, config, timeout, hidden))
    return servers


def _folder(path: Path) -> list[Server]:
    """The source of a project; of any other folder the recordings, or source where there are none."""
    project = any((path / name).exists() for name in _PROJECT)
    found = read_source(path) if project else None
    if found is not None:
        return [found]
    try:
        return read_path(path)
    except EarnestError as error:
        if error.code != "E1020":
            raise
    found = None if project else read_source(path)
    if found is None:
        raise EarnestError("E1020", f"{path} holds neither recorded lists of tools nor source that defines tools")
    return [found]


def _asked(target: list[str], behind: tuple[str, ...] | None, config: str, timeout: float, hidden: Scrubber) -> Server:
    name, launch, _ = launch_of_target(target, behind, config)
    hidden.add(launch.secrets)
    return _server(name, asyncio.run(glance(name, launch, timeout)), launch)


def _server(name: str, seen: Glance, launch: Launch) -> Server:
    """A server that was asked, with what is known of its package."""
    package = ""
    if not launch.url:
        identity = identities.of_command(launch.argv, launch.env, launch.cwd or os.getcwd())
        package = f"{identity.package}@{identity.version}" if identity.package and identity.version else ""
    tools = tuple(tool_of(msgspec.json.decode(tool.definition)) for tool in seen.tools)
    return Server(
        str(seen.info.get("name") or name),
        tools,
        info=seen.info,
        protocol=seen.hello.version,
        package=package,
        instructions=seen.hello.instructions,
        live=True,
        modern=seen.hello.modern,
    )


def _fix(servers: Sequence[Server], evidence: str, lower: bool, apply: bool, hidden: Scrubber) -> int:
    """Prints a patch, then what no patch holds as JSON. Exit code 1 if anything is proposed."""
    seen = observed(Path(evidence)) if evidence else {}
    rest: list[dict[str, Any]] = []
    proposed = 0
    for server in servers:
        proposals = propose(server, seen, lower=lower)
        proposed += len(proposals)
        changed, left = fixes.changes(server, proposals)
        for change in changed:
            if apply:
                Path(change.path).write_bytes(change.after.encode())
                output().line(f"changed {change.path}")
            else:
                sys.stdout.write(change.patch())
        rest += scrubbed(fixes.as_json(server.name, left), hidden)
        if not lower:
            _tell_withheld(server, seen)
        for one in server.unread:
            told = f"{one.place.path}:{one.place.line} {one.why}; nothing is proposed for it"
            Terminal(sys.stderr, None, os.environ).prose(told)
    if rest:
        # Standard output may be on its way into `git apply`: what is no patch goes beside it.
        stream = sys.stderr if any(t.place and t.place.path.endswith(".py") for s in servers for t in s.tools) else sys.stdout
        stream.write(msgspec.json.format(msgspec.json.encode(rest), indent=1).decode() + "\n")
    return 1 if proposed else 0


def _tell_withheld(server: Server, seen: Observed) -> None:
    """What was left out for want of evidence, beside the patch."""
    left = list(dict.fromkeys(one.tool for one in withheld(server, seen)))
    if left:
        more = f" and {len(left) - 8} more" if len(left) > 8 else ""
        Terminal(sys.stderr, None, os.environ).prose(
            f"left out, because it would lower risk on words alone: {', '.join(left[:8])}{more}; `--lower` proposes it, "
            "`--evidence` proves it"
        )


def _known(names: Sequence[str] | None) -> frozenset[str]:
    from earnest.lint.registry import find as audit

    return frozenset(audit(name).id for name in names or ())


def _one_of(option: str, given: str, known: Sequence[str]) -> Any:
    if given not in known:
        raise EarnestError("E1018", f"{option} is {given!r}", f"It takes {', '.join(known)}.")
    return given

"""`earnest policy check | test | explain | replay`: read a policy, try it, ask it, compare it.

Thin: what is said here is worked out in `config.policy`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from earnest.config.policy import NO_PRESET, PRESETS, Document, Finding, PolicyError, load
from earnest.config.policy.check import check as examine
from earnest.config.policy.reference import reference as make_reference
from earnest.config.policy.replay import replay as decide_again
from earnest.config.policy.situation import answer, situation, told
from earnest.config.policy.testing import run
from earnest.core.arguments import load as load_arguments
from earnest.core.errors import EarnestError
from earnest.core.verdict import Verdict
from earnest.core.visible import visible

app = typer.Typer(help="Check, test and explain a policy.", no_args_is_help=True, add_completion=False)

_File = Annotated[Path | None, typer.Argument(help="The policy file; without one, the preset alone.", show_default=False)]
_Preset = Annotated[str | None, typer.Option(help=f"One of {', '.join(PRESETS)}, {NO_PRESET}; the policy's own wins.")]
_Floor = Annotated[Path | None, typer.Option(help="A floor file of the organisation.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def check(file: _File = None, preset: _Preset = None, floor: _Floor = None, as_json: _Json = False) -> None:
    """Read a policy and look for what it does badly."""
    try:
        document = _load(file, preset, floor)
    except PolicyError as error:
        if any(finding.code == "E1113" for finding in error.findings):
            raise typer.Exit(_fail(error, as_json)) from None
        _print_findings(error.findings, as_json, {})
        raise typer.Exit(1) from None
    checked = examine(document.policy)
    counts = {"states": checked.states, "visited": checked.visited, "sha256": document.policy.sha256}
    _print_findings(checked.findings, as_json, counts)
    raise typer.Exit(1 if any(finding.severity != "note" for finding in checked.findings) else 0)


@app.command()
def test(file: _File = None, preset: _Preset = None, floor: _Floor = None, as_json: _Json = False) -> None:
    """Run the tests that stand in a policy file."""

    def work() -> int:
        results = run(_load(file, preset, floor))
        if as_json:
            _json({"tests": msgspec.to_builtins(results)})
        else:
            for result in results:
                _say(f"{'ok  ' if result.passed else 'FAIL'} {result.name}" + (f": {result.message}" if result.message else ""))
            failed = sum(not result.passed for result in results)
            _say(f"{len(results)} tests, {failed} failed" if results else "no tests; write [[test]] tables into the policy")
        return 0 if all(result.passed for result in results) else 1

    _guarded(work, as_json)


@app.command()
def explain(
    tool: Annotated[str, typer.Argument(metavar="SERVER/TOOL", help="What is called.")],
    policy: Annotated[Path | None, typer.Option(help="The policy file.")] = None,
    preset: _Preset = None,
    floor: _Floor = None,
    trust: Annotated[str, typer.Option(help="untrusted, verified or trusted.")] = "untrusted",
    claim: Annotated[list[str] | None, typer.Option(help="A hint the server claims: read_only=true.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="What the operator says: can_exfiltrate=false.")] = None,
    flow: Annotated[list[str] | None, typer.Option(help="A label set before: private, untrusted, endorsed.")] = None,
    pin: Annotated[str, typer.Option(help="holds, tightened, loosened, refused or unseen.")] = "holds",
    method: Annotated[str, typer.Option(help="The MCP method.")] = "tools/call",
    client: Annotated[str, typer.Option(help="The client's name.")] = "",
    args: Annotated[str, typer.Option(help="The arguments, as JSON.")] = "{}",
    as_json: _Json = False,
) -> None:
    """Say what a policy answers to one call, and why."""

    def work() -> int:
        given: dict[str, Any] = {"tool": tool, "trust": trust, "pin": pin, "method": method, "client": client}
        given |= {"flow": flow or [], "claims": _settings(claim), "args": load_arguments(args.encode()), **_settings(label)}
        one = situation(given)
        decision = answer(_load(policy, preset, floor).policy, one)
        if as_json:
            _json(told(decision, one.subject))
        else:
            observed = f" (observing; it would be {decision.observed.word})" if decision.observed != decision.verdict else ""
            _say(f"{decision.verdict.word}{observed}")
            for reason in decision.reasons:
                _say(f"  {reason.verdict.word:5} {reason.rule}: {reason.text}")
            for remedy in decision.remedies:
                _say(f"  -> {remedy.text}" + (f": {remedy.command}" if remedy.command else ""))
        return 0 if decision.verdict is Verdict.ALLOW else 1

    _guarded(work, as_json)


@app.command()
def replay(
    file: _File = None,
    receipts: Annotated[str, typer.Option(help="What `earnest receipts --json` printed; - is standard input.")] = "-",
    preset: _Preset = None,
    floor: _Floor = None,
    as_json: _Json = False,
) -> None:
    """Decide receipts again under a policy and show what changes."""

    def work() -> int:
        policy = _load(file, preset, floor).policy
        report = decide_again(policy, _lines(receipts))
        if as_json:
            _json(msgspec.to_builtins(report))
        else:
            for change in report.changes:
                _say(f"{change.id} {change.server}/{change.tool}: {change.was} -> {change.now} by {change.rule}: {change.text}")
            for receipt, why in report.skipped:
                _say(f"{receipt}: not decided again: {why}")
            _say(f"{report.replayed} decided again, {len(report.changes)} changed, {len(report.skipped)} could not be")
        return 1 if report.changes else 0

    _guarded(work, as_json)


@app.command(hidden=True)
def reference() -> None:
    """Print the policy reference (docs/policy.md)."""
    sys.stdout.write(make_reference())


def _load(file: Path | None, preset: str | None, floor: Path | None) -> Document:
    return load(file, preset_name=preset, floor=floor)


def _guarded(work: Callable[[], int], as_json: bool) -> None:
    try:
        code = work()
    except EarnestError as error:
        code = _fail(error, as_json)
    raise typer.Exit(code)


def _fail(error: EarnestError, as_json: bool) -> int:
    if as_json:
        _json({"error": {"code": error.code, "message": error.message, "remedy": error.remedy}})
    else:
        _say(str(error), err=True)
    return error.exit_code


def _print_findings(findings: tuple[Finding, ...], as_json: bool, counts: dict[str, Any]) -> None:
    if as_json:
        _json({"findings": msgspec.to_builtins(findings), **counts})
        return
    for finding in findings:
        _say(str(finding))
    if not findings:
        _say(f"fine: {counts['visited']} states visited")


def _settings(pairs: list[str] | None) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for pair in pairs or ():
        name, _, value = pair.partition("=")
        if value not in ("true", "false"):
            raise EarnestError("E1111", f"{pair!r} is no NAME=true or NAME=false", "write read_only=true")
        found[name] = value == "true"
    return found


def _lines(receipts: str) -> list[str]:
    if receipts == "-":
        return sys.stdin.read().split("\n")
    try:
        return Path(receipts).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EarnestError("E1112", f"{receipts} cannot be read: {error}") from None


def _json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _say(text: str, err: bool = False) -> None:
    """Names and texts may come from a server; a terminal must not obey them."""
    typer.echo("\n".join(visible(line) for line in text.split("\n")), err=err)


if __name__ == "__main__":
    app()

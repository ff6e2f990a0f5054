"""How `earnest assay` shows a report, and what is under way."""

from __future__ import annotations

import time
from typing import Final, TextIO

from earnest.assay.model import HintVerdict, Report, ToolReport
from earnest.assay.run import nothing_came
from earnest.cli.profiles import TITLES
from earnest.cli.style import Terminal, Tone, several
from earnest.core.hints import HINTS
from earnest.core.visible import visible
from earnest.sandbox.tiers import LETTERS

_TONES: Final[dict[str, Tone]] = {"CONTRADICTED": "bad", "SOFT": "warn", "SUPPORTED": "good"}
_PHASES: Final = {
    "start": "starting",
    "control": "control session",
    "scout": "trying",
    "soak": "soaking",
    "clean": "clean sessions",
    "late": "looking for who wrote late",
    "order": "looking for what only shows after others",
}


class Progress:
    """One line on standard error that says what is under way; nothing where that is no terminal."""

    def __init__(self, stream: TextIO, quiet: bool) -> None:
        self._stream, self._quiet = stream, quiet
        self._last, self._began = 0.0, time.monotonic()

    def told(self, phase: str, what: str, done: int, most: int) -> None:
        """See `assay.run.Told`."""
        now = time.monotonic()
        if self._quiet or (now - self._last < 0.1 and done < most):
            return
        self._last = now
        count = f" {done}/{most}" if most > 1 else ""
        text = f"{now - self._began:5.0f} s  {_PHASES.get(phase, phase)}{count}: {visible(what)}"
        self._stream.write(f"\r\x1b[2K{text[:100]}")
        self._stream.flush()

    def end(self) -> None:
        """Take the line away."""
        if not self._quiet and self._last:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


def show(out: Terminal, report: Report) -> None:
    """The table, then what is behind each word that is no plain support."""
    calls = sum(tool.calls for tool in report.tools)
    out.line(f"{report.server} {report.version}".strip(), "strong")
    out.line(
        f"  {several(len(report.tools), 'tool')}, {several(calls, 'call')} in {several(report.sessions, 'session')}, "
        f"tier {' and '.join(f'{LETTERS[name]} ({name})' for name in report.tier.split(' and '))}, "
        f"{report.seconds:.0f} s ({report.cpu_seconds:.0f} s of processor time)",
        "dim",
    )
    out.line()
    rows = [
        [tool.name, str(tool.calls), str(tool.effective_calls), *(_cell(tool.hints[hint]) for hint in HINTS)]
        for tool in report.tools
    ]
    out.table(["tool", "calls", "effect", *(TITLES[hint] for hint in HINTS)], rows)
    for tool in report.tools:
        _tool(out, tool)
    for finding in report.server_findings:
        out.line()
        out.prose(f"server: {finding.what}", "warn", under="  ")
    bad = sum(hint.verdict == "CONTRADICTED" for tool in report.tools for hint in tool.hints.values())
    out.line()
    if not bad and nothing_came(report):
        out.line("Nothing is known of any claim: the server ended at its calls, and answered none.", "bad")
    else:
        counted = f"{several(bad, 'claim')} contradicted." if bad else "No claim contradicted."
        out.line(counted, "bad" if bad else "good")
    reached = sum(bool(tool.answered) for tool in report.tools)
    if reached < len(report.tools):
        out.prose(
            f"{len(report.tools) - reached} of {len(report.tools)} tools were never reached by a call that worked: "
            "`earnest assay init` writes a file for arguments of your own.",
        )


def _cell(found: HintVerdict) -> str:
    claimed = "-" if found.claimed is None else str(found.claimed).lower()
    return f"{claimed}: {found.verdict}"


def _tool(out: Terminal, tool: ToolReport) -> None:
    telling = [
        (hint, found) for hint in HINTS if (found := tool.hints[hint]).verdict in ("CONTRADICTED", "SOFT", "INCONCLUSIVE")
    ]
    if not telling and tool.answered:
        return
    out.line()
    out.line(tool.name, "strong")
    if not tool.answered:
        out.prose(f"  {tool.hints['read_only'].reason}", "dim", under="    ")
    for hint, found in telling:
        out.prose(f"  {TITLES[hint]}: {found.verdict}. {found.reason}", _TONES.get(found.verdict), under="    ")
        for one in found.evidence[:4]:
            seen = f", {one.runs} of {one.of} clean sessions" if one.steps else ""
            if found.verdict == "CONTRADICTED" or len(found.evidence) > 1:
                out.prose(f"    {one.what} ({_when(one.when)}{seen})", "dim", under="      ")
            if one.replay:
                out.line(f"    python3 {one.replay}", "good")
    if any(found.verdict == "CONTRADICTED" for _, found in telling) and tool.suggested:
        said = ", ".join(f"{name}: {str(value).lower()}" for name, value in tool.suggested.items())
        out.prose(f"  what was seen speaks for {said}", under="    ")


def _when(word: str) -> str:
    return {"call": "with the call", "later": "after its answer", "exit": "at exit"}.get(word, word)

"""Findings as text for a terminal or a log: by server, the worst first; many alike are told as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias

from earnest.lint.model import CONFIDENCES, SEVERITIES, Finding
from earnest.lint.outputs.github import inert

Tone: TypeAlias = Literal["good", "warn", "bad", "dim", "strong"]
Line: TypeAlias = Callable[[str, Tone | None], None]
_TONES: Final[dict[str, Tone]] = {"error": "bad", "warning": "warn", "note": "dim"}
_MANY: Final = 4


def render(findings: Sequence[Finding], servers: int, tools: int, line: Line, every: bool = False) -> None:
    """Writes with `line(text, tone)`. A server's words never begin a line, so that none is a workflow command.

    `every`: no folding of findings alike."""
    ordered = sorted(findings, key=lambda f: f.server)
    for server, group in groupby(ordered, key=lambda f: f.server):
        rows = sorted(group, key=lambda f: (-SEVERITIES.index(f.severity), -CONFIDENCES.index(f.confidence), f.audit))
        line(inert(server), "strong")
        for (audit, severity, hint), alike in groupby(rows, key=lambda f: (f.audit, f.severity, f.hint)):
            ones = list(alike)
            if len(ones) > _MANY and severity == "note" and not every:
                names = ", ".join(_name(f) for f in ones[:3])
                told = f" {hint.replace('_', '-')}" if hint else ""
                line(f"  {severity}[{audit}]{told}: {len(ones)} tools ({names} …): {inert(ones[0].message)}", _TONES[severity])
                continue
            for f in ones:
                where = f" {inert(f.place.path)}:{f.place.line}" if f.place is not None and f.place.line else ""
                line(f"  {severity}[{audit}] {_name(f)} {inert(f.message)}", _TONES[severity])
                line(f"      confidence {f.confidence}{'; fix: ' + inert(f.fix) if f.fix else ''}{where}", "dim")
        line("", None)
    counts = Counter(f.severity for f in findings)
    told = ", ".join(f"{counts[s]} {s}{'s' * (counts[s] != 1)}" for s in reversed(SEVERITIES)) if findings else "nothing found"
    line(f"{servers} server{'s' * (servers != 1)}, {tools} tool{'s' * (tools != 1)}: {told}", "strong")


def _name(finding: Finding) -> str:
    """What it is about. A tool may have an empty name."""
    return "the server" if finding.tool is None else inert(finding.tool) or "a tool without a name"

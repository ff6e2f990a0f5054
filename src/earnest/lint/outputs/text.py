"""Findings as text for a terminal or a log: by server, the worst first; many alike are told as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias

from earnest.lint.model import CONFIDENCES, SEVERITIES, Finding

Tone: TypeAlias = Literal["good", "warn", "bad", "dim", "strong"]
Line: TypeAlias = Callable[[str, Tone | None], None]
_TONES: Final[dict[str, Tone]] = {"error": "bad", "warning": "warn", "note": "dim"}
_MANY: Final = 4


def render(findings: Sequence[Finding], servers: int, tools: int, line: Line, every: bool = False) -> None:
    """Writes with `line(text, tone)`, which makes foreign text visible. `every`: no folding of findings alike."""
    ordered = sorted(findings, key=lambda f: f.server)
    for server, group in groupby(ordered, key=lambda f: f.server):
        rows = sorted(group, key=lambda f: (-SEVERITIES.index(f.severity), -CONFIDENCES.index(f.confidence), f.audit))
        line(server, "strong")
        for (audit, severity, hint), alike in groupby(rows, key=lambda f: (f.audit, f.severity, f.hint)):
            ones = list(alike)
            if len(ones) > _MANY and severity == "note" and not every:
                names = ", ".join(f.tool or "" for f in ones[:3])
                told = f" {hint.replace('_', '-')}" if hint else ""
                line(f"  {severity}[{audit}]{told}: {len(ones)} tools ({names} …): {ones[0].message}", _TONES[severity])
                continue
            for f in ones:
                where = f" {f.place.path}:{f.place.line}" if f.place is not None and f.place.line else ""
                line(f"  {severity}[{audit}] {f.tool or 'the server'} {f.message}", _TONES[severity])
                line(f"      confidence {f.confidence}{'; fix: ' + f.fix if f.fix else ''}{where}", "dim")
        line("", None)
    counts = Counter(f.severity for f in findings)
    told = ", ".join(f"{counts[s]} {s}{'s' * (counts[s] != 1)}" for s in reversed(SEVERITIES)) if findings else "nothing found"
    line(f"{servers} server{'s' * (servers != 1)}, {tools} tool{'s' * (tools != 1)}: {told}", "strong")

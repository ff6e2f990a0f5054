"""Two tiers side by side. What a server does in one and not in the other tells that it looks where it is before it acts."""

from __future__ import annotations

from typing import Final

import msgspec

from earnest.assay.model import HintVerdict, Report, ServerFinding, ToolReport
from earnest.core.hints import HINTS

_INFORMED: Final = ("CONTRADICTED", "SOFT", "SUPPORTED", "OVER-DECLARED", "INCONCLUSIVE", "NOT-EXERCISED")


def joined(one: Report, other: Report) -> Report:
    """One report of two: for each hint what tells more, and a contradiction in either counts. Where one tier contradicts what
    the other supports, that is a finding of its own."""
    others = {tool.name: tool for tool in other.tools}
    tools: list[ToolReport] = []
    findings = list(one.server_findings)
    findings += [f for f in other.server_findings if (f.kind, f.where) not in {(g.kind, g.where) for g in findings}]
    for tool in one.tools:
        twin = others.get(tool.name)
        if twin is None:
            tools.append(tool)
            continue
        hints = {}
        for hint in HINTS:
            first, second = tool.hints[hint], twin.hints[hint]
            hints[hint] = _better(first, second)
            words = {first.verdict, second.verdict}
            if "CONTRADICTED" in words and words & {"SUPPORTED", "OVER-DECLARED"}:
                where = one.tier if first.verdict == "CONTRADICTED" else other.tier
                what = f"{tool.name} breaks its word only in tier {where}: it looks where it runs before it acts"
                findings.append(ServerFinding("differs", what, tool.name))
        effective = max(tool.effective_calls, twin.effective_calls)
        tools.append(
            msgspec.structs.replace(
                tool,
                hints=hints,
                calls=tool.calls + twin.calls,
                answered=tool.answered + twin.answered,
                effective_calls=effective,
            )
        )
    return msgspec.structs.replace(
        one,
        tier=f"{one.tier} and {other.tier}",
        tools=tuple(tools),
        server_findings=tuple(f for f in findings if f.kind != "blind"),
        seconds=round(one.seconds + other.seconds, 2),
        cpu_seconds=round(one.cpu_seconds + other.cpu_seconds, 2),
        sessions=one.sessions + other.sessions,
    )


def _better(first: HintVerdict, second: HintVerdict) -> HintVerdict:
    return min((first, second), key=lambda found: _INFORMED.index(found.verdict))

"""A report as JSON. The members named in docs/assay.md stay; others may be added."""

from __future__ import annotations

from typing import Any

import msgspec

from earnest.assay.model import Evidence, Report, Step, ToolReport
from earnest.core.hints import HINTS


def told(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    return {
        "server": report.server,
        "version": report.version,
        "command": list(report.command),
        "tier": report.tier,
        "tools": [tool_told(tool) for tool in report.tools],
        "server_findings": [msgspec.to_builtins(finding) for finding in report.server_findings],
        "seconds": report.seconds,
        "cpu_seconds": report.cpu_seconds,
        "sessions": report.sessions,
    }


def tool_told(tool: ToolReport) -> dict[str, Any]:
    """One tool."""
    return {
        "name": tool.name,
        "calls": tool.calls,
        "answered": tool.answered,
        "effective_calls": tool.effective_calls,
        "hints": {
            hint: {
                "claimed": found.claimed,
                "verdict": found.verdict,
                "reason": found.reason,
                "evidence": [_evidence(one) for one in found.evidence],
            }
            for hint in HINTS
            if (found := tool.hints.get(hint)) is not None
        },
        "suggested": dict(tool.suggested),
    }


def _evidence(one: Evidence) -> dict[str, Any]:
    return {
        "what": one.what,
        "where": one.where,
        "nature": one.nature,
        "place": one.place,
        "when": one.when,
        "runs": one.runs,
        "of": one.of,
        "steps": [step_told(step) for step in one.steps],
        "replay": one.replay,
    }


def step_told(step: Step) -> dict[str, Any]:
    """One call."""
    return {"tool": step.tool, "arguments": dict(step.arguments)}

"""Findings as JSON: a list of objects with exactly eight members."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from earnest.lint.model import Finding


class _Row(msgspec.Struct, frozen=True):
    audit: str
    server: str
    tool: str | None
    hint: str | None
    severity: str
    confidence: str
    message: str
    fix: str


def render(findings: Sequence[Finding]) -> str:
    """A JSON list; an empty one for nothing."""
    rows = [_Row(f.audit, f.server, f.tool, f.hint, f.severity, f.confidence, f.message, f.fix) for f in findings]
    return lines(rows)


def lines(value: object) -> str:
    """JSON for people and logs: a runner takes `##[` for a command wherever it stands, so it is written otherwise, meaning the
    same."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode().replace("##[", r"#\u0023[") + "\n"

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
    return msgspec.json.format(msgspec.json.encode(rows), indent=1).decode() + "\n"

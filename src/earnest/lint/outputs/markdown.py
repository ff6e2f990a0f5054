"""Findings as Markdown: a table a server, for a pull request or a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from earnest.core.visible import visible
from earnest.lint.model import Finding


def render(findings: Sequence[Finding]) -> str:
    """One heading and one table for each server."""
    if not findings:
        return "No findings.\n"
    parts: list[str] = []
    for server, group in groupby(sorted(findings, key=lambda f: f.server), key=lambda f: f.server):
        rows = list(group)
        parts.append(f"### {_cell(server)}: {len(rows)} finding{'s' * (len(rows) != 1)}\n")
        parts.append("| severity | audit | tool | what | fix | confidence |\n|---|---|---|---|---|---|")
        for f in rows:
            cells = (f.severity, f.audit, f.tool or "", f.message, f.fix, f.confidence)
            parts.append("| " + " | ".join(map(_cell, cells)) + " |")
        parts.append("")
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """Text from a server as text: no markup, no link, no image, no new row."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~@])", r"\\\1", visible(text))

"""Findings as workflow commands of GitHub Actions: annotations on the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from earnest.core.visible import visible
from earnest.lint.model import Finding

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}


def render(findings: Sequence[Finding]) -> str:
    """One command a finding."""
    return "".join(_line(finding) + "\n" for finding in findings)


def inert(text: str) -> str:
    """Foreign text on one line that a runner reads no command in: it takes `::` at the head of a line, however indented, and
    `##[` anywhere."""
    shown = visible(text).replace("##[", "# #[")
    return f"'{shown}'" if shown.lstrip().startswith("::") else shown


def _line(finding: Finding) -> str:
    facts = {"title": f"earnest lint: {finding.audit}"}
    if finding.place is not None:
        facts["file"] = finding.place.path
        if finding.place.line:
            facts["line"] = str(finding.place.line)
    name = finding.server if finding.tool is None else f"{finding.server}/{finding.tool}"
    text = visible(f"{name} {finding.message}" + (f" (fix: {finding.fix})" if finding.fix else ""))
    given = ",".join(f"{key}={_escaped(value, True)}" for key, value in facts.items())
    return f"::{_COMMANDS[finding.severity]} {given}::{_escaped(text, False)}"


def _escaped(text: str, value: bool) -> str:
    """What would end a command, or a value in it, is percent-encoded: a server's words never start a command."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if value else text

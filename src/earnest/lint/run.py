"""Running the audits over servers, and sorting out what is shown."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from earnest.lint.audit import Audit
from earnest.lint.evidence import gather
from earnest.lint.model import CONFIDENCES, SEVERITIES, Confidence, Finding, Persona, Server, Severity
from earnest.lint.registry import AUDITS


class Ignore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a configuration switches off. `server` and `tool` are globs. `reason` is asked for: in a year nobody knows it
    otherwise."""

    audit: str
    reason: str
    server: str = "*"
    tool: str = "*"

    def covers(self, finding: Finding) -> bool:
        """Whether this finding is meant."""
        return (
            self.audit in ("*", finding.audit)
            and fnmatch.fnmatchcase(finding.server, self.server)
            and fnmatch.fnmatchcase(finding.tool or "", self.tool)
        )


class Selection(msgspec.Struct, frozen=True):
    """Which findings count: the least severity and confidence, the persona, audits by id (empty: all), what is ignored."""

    severity: Severity = "note"
    confidence: Confidence = "low"
    persona: Persona = "regular"
    only: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    ignore: tuple[Ignore, ...] = ()

    def audits(self) -> tuple[Audit, ...]:
        """The audits to run."""
        return tuple(a for a in AUDITS if (not self.only or a.id in self.only) and a.id not in self.without)

    def keeps(self, finding: Finding) -> bool:
        """Whether a finding is shown."""
        return (
            SEVERITIES.index(finding.severity) >= SEVERITIES.index(self.severity)
            and CONFIDENCES.index(finding.confidence) >= CONFIDENCES.index(self.confidence)
            and (self.persona == "pedantic" or finding.persona == "regular")
            and not any(one.covers(finding) for one in self.ignore)
        )


EVERYTHING: Final = Selection()
"""What is shown if nothing is asked for: all audits, the regular persona."""


def lint(servers: Iterable[Server], selection: Selection = EVERYTHING) -> list[Finding]:
    """All findings that the selection keeps, server by server, in the order of the registry."""
    audits = selection.audits()
    found: list[Finding] = []
    for server in servers:
        seen = gather(server)
        for audit in audits:
            found.extend(finding for finding in audit.run(seen) if selection.keeps(finding))
    return found


def worst(findings: Sequence[Finding]) -> Severity | None:
    """The highest severity among findings."""
    return max((f.severity for f in findings), key=SEVERITIES.index, default=None)

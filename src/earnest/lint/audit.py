"""What an audit is: its identity, its documentation, its check."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from earnest.lint.evidence import Seen
from earnest.lint.model import Confidence, Finding, Hint, Persona, Place, Severity, Tool


class Note(msgspec.Struct, frozen=True):
    """What the check of an audit yields; `Audit.run` makes a finding of it. None means: as the audit says."""

    message: str
    tool: Tool | None = None
    hint: Hint | None = None
    fix: str = ""
    severity: Severity | None = None
    confidence: Confidence | None = None
    persona: Persona | None = None
    place: Place | None = None


class Audit(msgspec.Struct, frozen=True):
    """One audit: its identity, its documentation (what, why, how to fix, an example from a real server), and its check."""

    id: str
    severity: Severity
    confidence: Confidence
    what: str
    why: str
    how: str
    example: str
    check: Callable[[Seen], Iterable[Note]]
    persona: Persona = "regular"

    def run(self, seen: Seen) -> Iterable[Finding]:
        """What this audit finds in one server."""
        server = seen.server
        for note in self.check(seen):
            tool = note.tool
            if tool is not None and (self.id in tool.ignored or "*" in tool.ignored):
                continue
            yield Finding(
                audit=self.id,
                server=server.name,
                tool=tool.name if tool is not None else None,
                hint=note.hint,
                severity=note.severity or self.severity,
                confidence=note.confidence or self.confidence,
                message=note.message,
                fix=note.fix,
                persona=note.persona or self.persona,
                place=note.place
                or (tool.place if tool is not None else None)
                or (Place(server.source) if server.source else None),
            )

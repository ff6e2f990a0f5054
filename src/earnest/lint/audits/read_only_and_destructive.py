"""A tool that claims to be read-only and destructive at once."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        if tool.raw.read_only is True and tool.raw.destructive is True:
            reads = evidence.reads in ("high", "medium")
            yield Note(
                "claims to be read-only and destructive at once; one of the two is wrong",
                tool,
                "destructive" if reads else "read_only",
                "destructiveHint: false" if reads else "readOnlyHint: false, if it can destroy",
            )


AUDIT = Audit(
    id="read-only-and-destructive",
    severity="error",
    confidence="high",
    what="`readOnlyHint: true` with an explicit `destructiveHint: true`.",
    why="A reader of the specification takes read-only as it stands and ignores the other; a careful client takes the "
    "worse. The same tool runs unasked in one place and "
    "is refused in another.",
    how="Decide which is true and drop the other.",
    example="`resolveProviderDocID` of the Terraform server (2025-07), the only one among 10,442 tools.",
    check=_check,
)

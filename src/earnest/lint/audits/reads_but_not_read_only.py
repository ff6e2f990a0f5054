"""A tool that only reads, and is not marked so: it counts as a destructive writer."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import Severity, Tool


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        if "readOnlyHint" in tool.raw.malformed:
            continue  # `malformed-hint` says it; in source it may be set by something that is no literal
        if tool.raw.read_only is True or evidence.reads in (None, "low"):
            continue
        first = evidence.text.first[0]
        severity: Severity = "warning" if evidence.reads == "high" else "note"
        yield Note(
            f"only reads ({first.text!r}), but {_claim(tool)}",
            tool,
            "read_only",
            "readOnlyHint: true",
            severity=severity,
            confidence=evidence.reads,
        )
        if tool.raw.destructive is True:
            yield Note(
                f"only reads ({first.text!r}), but claims to be destructive",
                tool,
                "destructive",
                "readOnlyHint: true, which makes destructiveHint moot",
                severity=severity,
                confidence=evidence.reads,
            )


def _claim(tool: Tool) -> str:
    if tool.raw.read_only is False:
        return "claims that it does not"
    if tool.raw.destructive is False:
        return "without readOnlyHint it counts as a write"
    return "without readOnlyHint it counts as a destructive write"


AUDIT = Audit(
    id="reads-but-not-read-only",
    severity="warning",
    confidence="high",
    what="A tool whose first clause reads, and in which nothing else speaks of writing, without `readOnlyHint: true`.",
    why="The specification takes an absent `readOnlyHint` as false and an absent `destructiveHint` as true, so a search "
    "counts as a destructive "
    "writer: it is asked about on every call, and left out by clients that take read-only tools alone.",
    how="Set `readOnlyHint: true`. `destructiveHint` and `idempotentHint` are moot then.",
    example="`brave_web_search` of brave-search: “Performs web searches …”, annotated with openWorldHint only; "
    "`API-post-search` of the Notion server, "
    "marked destructive because the API behind it uses POST.",
    check=_check,
)

"""`idempotentHint: false` on read-only tools: a zero value of an SDK, not a claim."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    tools = seen.server.tools
    reading = [tool for tool in tools if tool.raw.read_only is True]
    zero = [tool.name for tool in reading if tool.raw.idempotent is False]
    if zero:
        yield Note(
            f"idempotentHint is false on {len(zero)} of {len(reading)} read-only tools "
            f"({', '.join(zero[:3])}{' …' if len(zero) > 3 else ''}): "
            "idempotentHint false on read-only tools is an SDK zero value, not a claim",
            hint="idempotent",
            fix="leave idempotentHint out where it was not thought about (in Go: a pointer, or omitempty)",
        )


AUDIT = Audit(
    id="zero-value",
    severity="note",
    confidence="high",
    what="`idempotentHint: false` on read-only tools. One finding for each server.",
    why="Reading twice is as harmless as reading once, so nobody claims this. It is what a struct without optional "
    "fields writes when the field was never set; the other hints of such a server "
    "may be zero values too.",
    how="Write a hint only where it was set.",
    example="github/github-mcp-server: `idempotentHint: false` on its read-only tools, from a Go struct.",
    check=_check,
)

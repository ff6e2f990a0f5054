"""Hints that mean nothing on a read-only tool."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import WIRE, Hint


def _check(seen: Seen) -> Iterator[Note]:
    hints: tuple[Hint, ...] = ("destructive", "idempotent")
    for hint in hints:
        found = [
            tool.name
            for tool in seen.server.tools
            if tool.raw.read_only is True
            and tool.raw.get(hint) is not None
            and not (hint == "destructive" and tool.raw.destructive)
        ]
        if found:
            yield Note(
                f"{WIRE[hint]} is set on {len(found)} read-only tool{'s' * (len(found) > 1)} "
                f"({', '.join(found[:3])}{' …' if len(found) > 3 else ''}), where it means nothing",
                hint=hint,
                fix=f"leave {WIRE[hint]} out of read-only tools, unless a store asks for it",
            )


AUDIT = Audit(
    id="moot-hint",
    severity="note",
    confidence="low",
    persona="pedantic",
    what="`destructiveHint` or `idempotentHint` on read-only tools. One finding for each server and hint.",
    why="The specification gives both a meaning only where `readOnlyHint` is false. Set there, they say nothing and hide "
    "that they were not thought about. "
    "Harmless, and some stores ask for `destructiveHint` on every tool: hence pedantic.",
    how="Leave them out, unless a store asks for them.",
    example="1,402 of 3,871 tools of today's servers set `destructiveHint` on a read-only tool.",
    check=_check,
)

"""A write without `destructiveHint`: destructive by the default of the specification."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import WIRE


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        raw = tool.raw
        if raw.read_only is True or raw.destructive is not None or evidence.reads in ("high", "medium") or raw.malformed:
            continue
        if not any(wire in tool.annotations for wire in WIRE.values()):
            continue  # nothing was claimed at all: `missing-hint`
        first = evidence.text.first
        adds = bool(first) and not evidence.destroys and all(act.kind in ("create", "send") for act in first)
        yield Note(
            f"writes and does not say whether it destroys, so it counts as "
            f"destructive{'; it seems only to add' if adds else ''}",
            tool,
            "destructive",
            f"destructiveHint: {'false' if adds else 'true'}, explicitly",
            confidence="medium" if adds else "low",
        )


AUDIT = Audit(
    id="destructive-by-default",
    severity="warning",
    confidence="low",
    what="A tool with hints that is not read-only and has no `destructiveHint`.",
    why="The default is true. Whether the author meant that cannot be told from silence, so stores ask for the hint in "
    "writing.",
    how="Set `destructiveHint` explicitly, to true or false.",
    example="Most writing tools of chrome-devtools-mcp carry `readOnlyHint: false` alone.",
    check=_check,
)

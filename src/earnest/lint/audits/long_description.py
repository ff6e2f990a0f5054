"""A description that is too long, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_LONG: Final = 1024
_TOO_LONG: Final = 4096


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        size = len(tool.description)
        if not tool.description.strip():
            yield Note("has no description", tool, fix="one sentence that begins with what it does", confidence="high")
        elif size > _TOO_LONG:
            yield Note(
                f"its description has {size} characters",
                tool,
                fix="move examples and guides into a prompt or a resource",
                severity="warning",
            )
        elif size > _LONG:
            yield Note(
                f"its description has {size} characters; some clients cut at {_LONG}",
                tool,
                fix=f"stay below {_LONG}",
                persona="pedantic",
            )


AUDIT = Audit(
    id="long-description",
    severity="note",
    confidence="high",
    what="A description of more than 4,096 characters (pedantic: 1,024), or none at all.",
    why="Descriptions are paid for in every conversation, and nobody reads a long one before saying yes. Without one "
    "neither model nor person knows what a call does.",
    how="Say what it does, takes and returns; move the rest into a prompt or a resource.",
    example="The longest of the recorded ones has 11,070 characters.",
    check=_check,
)

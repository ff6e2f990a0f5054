"""Hints that are neither true nor false, and annotations that are no object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from earnest.core.hints import WIRE_NAMES
from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import UNREADABLE, WIRE


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        given = tool.definition.get("annotations")
        if given is not None and not isinstance(given, Mapping):
            yield Note(f"annotations is {type(given).__name__}, no object: nothing is claimed", tool, fix="annotations: {…}")
        for hint, wire in WIRE.items():
            if wire in tool.raw.malformed and tool.annotations.get(wire) != UNREADABLE:
                yield Note(
                    f"{wire} is {tool.annotations.get(wire)!r}, neither true nor false, and counts as absent",
                    tool,
                    hint,
                    f"{wire}: true or false, without quotes",
                )


AUDIT = Audit(
    id="malformed-hint",
    severity="error",
    confidence="high",
    what=f"A value of {', '.join(WIRE_NAMES)} that is neither `true` nor `false` (`null` is merely absent), or "
    f"annotations that are no object.",
    why='`"false"` is truthy in most languages. One client reads false, another true, a third refuses the whole list.',
    how="Write JSON booleans.",
    example='None of 10,442 recorded tools; seen in bug reports of clients that read `"true"` as true.',
    check=_check,
)

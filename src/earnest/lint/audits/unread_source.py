"""Source that could define tools and cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    for one in seen.server.unread:
        if AUDIT.id not in one.ignored and "*" not in one.ignored:
            where = f"{one.place.path}:{one.place.line}" if one.place.line else one.place.path
            yield Note(
                f"{where} {one.why}; tools it may define were not looked at",
                fix="mend the file, or lint the running server",
                place=one.place,
            )


AUDIT = Audit(
    id="unread-source",
    severity="warning",
    confidence="high",
    what="A source file that speaks of tools and cannot be read: Python that does not parse, or more than 4 MiB of anything.",
    why="What is in it was not looked at, so that nothing found says nothing.",
    how="Mend the file, lint the running server, or switch the audit off for a file that is a template or of another age "
    "(`# earnest: ignore[unread-source]` on the line that does not parse or the one before).",
    example="A module in Python 2 beside the server, or one with the marks of an unfinished merge.",
    check=_check,
)

"""Two titles that differ."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        inner = tool.annotations.get("title")
        if not isinstance(inner, str) or not inner:
            continue
        if tool.title and tool.title != inner:
            raw = tool.title == tool.name
            yield Note(
                f"is titled {tool.title!r} and, in its annotations, {inner!r}; the first is shown"
                + (", which is only its name" if raw else ""),
                tool,
                fix=f"title: {inner!r} on the tool itself" if raw else "give both the same text, or drop annotations.title",
            )


AUDIT = Audit(
    id="title-precedence",
    severity="note",
    confidence="high",
    what="`title` of the tool and `annotations.title` differ.",
    why="Clients show `title` before `annotations.title` before `name`. Where `title` repeats the raw name, people never "
    "see the readable one.",
    how="Put the readable title into `title`, and the same into `annotations.title` for clients before 2025-06-18.",
    example="The eight tools of brave-search: `title` is the raw name, `annotations.title` the readable one.",
    check=_check,
)

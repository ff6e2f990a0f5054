"""Names outside what the specification allows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
_STRICT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        if not _NAME.match(tool.name):
            yield Note(
                f"the name {tool.name!r} is not 1 to 128 of A–Z a–z 0–9 _ - .", tool, fix="rename it; keep the title for people"
            )
        elif not _STRICT.match(tool.name):
            yield Note(
                f"the name {tool.name!r} is too long, or has a dot: some clients take 1 to 64 of A–Z a–z 0–9 _ - only",
                tool,
                fix="shorten it to 64 characters, without dots",
                severity="note",
                confidence="medium",
                persona="pedantic",
            )


AUDIT = Audit(
    id="name-rule",
    severity="warning",
    confidence="high",
    what="A name outside `[A-Za-z0-9_.-]{1,128}` (MCP 2025-11-25, tool names); pedantic: outside `[A-Za-z0-9_-]{1,64}`, "
    "which model APIs demand.",
    why="Clients drop the tool, rename it, or refuse the whole server.",
    how="Rename it; what people read is the title.",
    example="26 of 6,044 tools of the 2025-07 dump, with spaces or non-Latin letters.",
    check=_check,
)

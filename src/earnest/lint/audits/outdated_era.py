"""A server of an old version of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_ANNOTATIONS: Final = "2025-03-26"
_CURRENT: Final = "2025-11-25"


def _check(seen: Seen) -> Iterator[Note]:
    spoken = seen.server.protocol
    if not spoken or not spoken[:4].isdigit() or not seen.server.live:
        return
    if spoken < _ANNOTATIONS:
        hinted = any(tool.raw.get(hint) is not None for tool in seen.server.tools for hint in ("read_only", "destructive"))
        told = "" if hinted else ", and its SDK cannot send them"
        yield Note(f"speaks MCP {spoken}, which has no annotations{told}", fix="update the SDK", severity="warning")
    elif spoken < _CURRENT:
        yield Note(f"speaks MCP {spoken}; {_CURRENT} and 2026-07-28 are current", fix="update the SDK", persona="pedantic")


AUDIT = Audit(
    id="outdated-era",
    severity="note",
    confidence="high",
    what="A running (or live recorded) server that agreed on a version of the protocol before 2025-11-25; a warning "
    "before 2025-03-26, which brought annotations.",
    why="Hints, titles and output schemas came with later versions. A client of the old one need not look at them.",
    how="Update the SDK.",
    example="Five of 64 servers started on 2026-11-30 answered with 2024-11-05.",
    check=_check,
)

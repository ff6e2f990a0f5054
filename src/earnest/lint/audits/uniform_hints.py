"""One value on every tool: no information."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import WIRE, Hint

_LEAST: Final = 5


def _check(seen: Seen) -> Iterator[Note]:
    tools = seen.server.tools
    if len(tools) < _LEAST:
        return
    reads = sum(evidence.reads == "high" for evidence in seen.evidence)
    writes = sum(bool(e.writes) and e.writes[0].sure == "high" for e in seen.evidence)
    hints: tuple[Hint, ...] = ("read_only", "destructive", "open_world")
    for hint in hints:
        values = {tool.raw.get(hint) for tool in tools}
        if len(values) != 1 or None in values:
            continue
        mixed = reads >= 2 and writes >= 2 and hint != "open_world"
        if not mixed and hint == "read_only":
            continue  # a server of readers may well say so on each
        if hint == "destructive" and (not mixed or all(tool.raw.read_only for tool in tools)):
            continue
        value = str(values.pop()).lower()
        told = f", though {reads} of them only read and {writes} write" if mixed else ""
        yield Note(
            f"{WIRE[hint]} is {value} on all {len(tools)} tools{told}: it tells nothing apart",
            hint=hint,
            fix="decide it for each tool",
            severity="warning" if mixed else "note",
            confidence="medium" if mixed else "low",
            persona="regular" if mixed else "pedantic",
        )


AUDIT = Audit(
    id="uniform-hints",
    severity="note",
    confidence="low",
    what="One hint with one value on each of at least five tools; a warning if some of them plainly read and others "
    "plainly write.",
    why="A stamp is no claim. Clients that believe it treat a delete like a list.",
    how="Decide the hint tool by tool.",
    example="wapulse-whatsapp (2025-07) says `openWorldHint: true` of everything; a server of today stamps "
    "`openWorldHint` alike on all its 47 tools.",
    check=_check,
)

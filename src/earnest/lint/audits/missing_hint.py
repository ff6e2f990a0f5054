"""Hints that are absent, one by one."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.core.hints import RISKY
from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import WIRE, Hint, Persona


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        raw, reads = tool.raw, evidence.reads in ("high", "medium")
        bare = not any(raw.get(hint) is not None for hint in WIRE)
        wanted: list[Hint] = []
        if raw.read_only is None and not reads:  # a tool that reads: `reads-but-not-read-only` says it
            wanted.append("read_only")
        if raw.destructive is None and bare and not reads:  # with other hints: `destructive-by-default`
            wanted.append("destructive")
        if raw.idempotent is None and raw.read_only is not True and not reads:
            wanted.append("idempotent")
        if raw.open_world is None:
            wanted.append("open_world")
        titled = bare and isinstance(tool.annotations.get("title"), str)
        for hint in wanted:
            if WIRE[hint] in raw.malformed:
                continue
            persona: Persona = "pedantic" if hint == "idempotent" else "regular"
            why = "; a title alone is no annotation" if titled else ""
            yield Note(
                f"{WIRE[hint]} is absent and counts as {str(RISKY[hint]).lower()}{why}",
                tool,
                hint,
                f"say {WIRE[hint]}, whichever it is",
                persona=persona,
            )


AUDIT = Audit(
    id="missing-hint",
    severity="note",
    confidence="low",
    what="A hint that means something for the tool and is absent, hint by hint. `annotations.title` alone is no annotation.",
    why="Every client then takes the worst: not read-only, destructive, not idempotent, open world. Where that is right "
    "nobody is misled, which is why the confidence is low; "
    "but nobody can tell silence from an oversight, and stores refuse it.",
    how="Say each hint explicitly.",
    example="All eight tools of brave-search carry a title and `openWorldHint` only.",
    check=_check,
)

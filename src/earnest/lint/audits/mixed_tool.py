"""A tool that reads or writes, as a parameter chooses."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.lexicon import WRITES


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        reads = [value for value, kind in evidence.actions if kind in ("read", "compute")]
        writes = [value for value, kind in evidence.actions if kind in WRITES or kind == "run"]
        if reads and writes:
            yield Note(
                f"reads ({', '.join(reads[:3])}) or writes ({', '.join(writes[:3])}), as a parameter chooses: no hint is "
                f"right for both",
                tool,
                fix="split it in two, or let clients resolve the action before they ask",
                confidence="high",
            )
            continue
        first = evidence.text.first
        kinds = {act.kind for act in first}
        if "read" in kinds and kinds & WRITES and not evidence.actions:
            yield Note(f"reads or writes, as its arguments say ({first[0].text!r})", tool, fix="split it in two")


AUDIT = Audit(
    id="mixed-tool",
    severity="note",
    confidence="medium",
    what="One tool that lists and deletes, say, by a parameter such as `action`.",
    why="Its hints must be those of its worst action, so every harmless read of it is asked about; or they are those of "
    "its best, and a delete passes.",
    how="Make the reads a tool of their own. Where that is not wanted, keep the choice in one enumerated parameter, so "
    "that a policy can decide by it.",
    example="`git_tag` of a git server, whose `mode` lists, creates, verifies or deletes; `resources_scale` of the "
    "Kubernetes server, “Get or update the scale”.",
    check=_check,
)

"""A tool that claims to destroy nothing and says that it deletes or overwrites."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        if tool.raw.read_only is True or tool.raw.destructive is not False:
            continue
        act = next((act for act in evidence.destroys if act.sure != "low"), None)
        if act is None:
            act = next((act for act in evidence.text.first if act.kind == "update" and act.sure == "high"), None)
            if act is not None:
                yield Note(
                    f"claims additive updates only, but changes in place ({act.text!r})",
                    tool,
                    "destructive",
                    "destructiveHint: true, unless what was there before is kept",
                    severity="note",
                    confidence="low",
                    persona="pedantic",
                )
            continue
        yield Note(
            f"claims to destroy nothing, but it says {act.text!r} ({act.verb})",
            tool,
            "destructive",
            "destructiveHint: true",
            severity="error" if act.sure == "high" else "warning",
            confidence=act.sure,
        )


AUDIT = Audit(
    id="destructive-denied",
    severity="error",
    confidence="high",
    what="`destructiveHint: false` on a tool that says it deletes, removes, overwrites or replaces what is there.",
    why="`destructiveHint: false` promises additive updates only. Clients let such writes through more easily than others.",
    how="Set `destructiveHint: true`; or, if only one of several actions deletes, make that one a tool of its own.",
    example="`rename-collection` and `update-many` of the MongoDB server (2025-07) are marked as additive; "
    "`add_sparklines` of an Excel server says "
    "“Replaces existing ones there” and is marked additive too.",
    check=_check,
)

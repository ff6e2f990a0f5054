"""A tool that claims to be read-only and says that it writes."""

from __future__ import annotations

from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        if tool.raw.read_only is not True or not evidence.writes:
            continue
        act = evidence.writes[0]
        if act.sure == "low" or act.kind == "manage":
            continue
        if act.where == "schema" and not any(kind == "delete" for _, kind in evidence.actions) and len(evidence.writes) < 2:
            continue  # one word in a list may be a noun
        yield Note(
            f"claims to be read-only, but it says {act.text!r} ({act.verb})",
            tool,
            "read_only",
            "readOnlyHint: false, and say whether it destroys (destructiveHint)",
            severity="error" if act.sure == "high" else "warning",
            confidence=act.sure,
        )


AUDIT = Audit(
    id="read-only-but-writes",
    severity="error",
    confidence="high",
    what="`readOnlyHint: true` on a tool whose description says, in its first clause or in a sentence of its own, that "
    "it sends, creates, "
    "changes, deletes or saves something.",
    why="Clients run read-only tools without asking. A tool that sends mail under that flag sends it unasked, and it "
    "cannot be called back.",
    how="Set `readOnlyHint: false`, and `destructiveHint` by what it does. If it really only reads, begin the "
    "description with what it returns.",
    example="`communication_email_send` of @azure/mcp 2.0.5: “Send emails to one or multiple recipients …”, readOnlyHint true.",
    check=_check,
)

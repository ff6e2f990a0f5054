"""A tool that only adds, and is marked destructive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_ADDS: Final = frozenset(("create", "add", "insert", "append", "schedule", "duplicate", "copy", "book", "register"))

_PLAINLY: Final = frozenset(("create", "add", "insert", "append"))


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        if tool.raw.read_only is True or tool.raw.destructive is not True or evidence.destroys:
            continue
        if evidence.named is not None and evidence.named.kind in ("delete", "overwrite", "update"):
            continue
        first = evidence.text.first
        if (
            not first
            or any(act.kind != "create" or act.verb not in _ADDS for act in first)
            or any(a.kind != "create" for a in evidence.writes)
        ):
            continue
        plain = len(first) == 1 and first[0].sure == "high" and first[0].verb in _PLAINLY and not evidence.lasting
        agrees = evidence.named is not None and evidence.named.kind == "create"
        yield Note(
            f"is marked destructive, but only adds ({first[0].text!r})",
            tool,
            "destructive",
            "destructiveHint: false",
            confidence="high" if plain and agrees else "medium",
        )


AUDIT = Audit(
    id="destructive-overstated",
    severity="note",
    confidence="medium",
    what="An explicit `destructiveHint: true` on a tool that says it creates, adds or appends, and nothing else.",
    why="People who are asked about every harmless addition stop reading what they are asked. The hint then protects nothing.",
    how="Set `destructiveHint: false` if the call can only add.",
    example="`create-calendar` of ms-365 is destructive because the API behind it uses POST; so is "
    "`API-create-a-comment` of the Notion server.",
    check=_check,
)

"""A tool that claims to be idempotent and does something more each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_EACH_TIME: Final = frozenset(
    ("append", "increment", "decrement", "toggle", "duplicate", "enqueue", "email", "tweet", "notify", "broadcast")
)
_USUALLY: Final = frozenset(
    ("create", "add", "insert", "send", "post", "publish", "copy", "clone", "trigger", "invoke", "record")
)


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        if tool.raw.read_only is True or tool.raw.idempotent is not True or evidence.text.again:
            continue
        first = evidence.text.first
        if not first or any(act.kind in ("update", "overwrite", "delete", "read") for act in first):
            continue
        act = first[0]
        if act.verb in _EACH_TIME or (act.kind == "send" and act.sure == "high"):
            sure = True
        elif act.verb in _USUALLY:
            sure = False
        else:
            continue
        yield Note(
            f"claims that a second call changes nothing, but it says {act.text!r} ({act.verb})",
            tool,
            "idempotent",
            "idempotentHint: false, unless the server recognises a repeated call; then say so in the description",
            confidence="high" if sure else "low",
        )


AUDIT = Audit(
    id="idempotent-denied",
    severity="warning",
    confidence="medium",
    what="`idempotentHint: true` on a tool that sends, appends, increments or creates, with no word on what a repeated "
    "call does.",
    why="A client may repeat an idempotent call after a timeout. Repeated, this one sends or adds twice.",
    how="Set `idempotentHint: false`; or recognise repeated calls, and say so.",
    example="`vm_create` of kubernetes-mcp-server (KubeVirt) claims it; a second call fails or makes a second machine.",
    check=_check,
)

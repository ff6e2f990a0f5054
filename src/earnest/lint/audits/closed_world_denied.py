"""A tool that claims a closed world and reaches strangers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_MAIL: Final = frozenset(("email", "emails", "mail", "mails", "sms", "tweet", "tweets"))


def _check(seen: Seen) -> Iterator[Note]:
    for tool, evidence in seen.tools:
        if tool.raw.open_world is not False:
            continue
        text = evidence.text
        sent = next(
            (a for a in text.first if a.kind == "send" and (a.verb in _MAIL or _MAIL.intersection(a.object.split()))), None
        )
        if sent is not None:
            what, sure = sent.text, True
        elif text.open and text.first:
            what, sure = text.open, any(text.open in act.text.lower() for act in text.first)
        else:
            continue
        yield Note(
            f"claims a closed world, but it says {what!r}",
            tool,
            "open_world",
            "openWorldHint: true",
            confidence="high" if sure else "medium",
        )


AUDIT = Audit(
    id="closed-world-denied",
    severity="warning",
    confidence="high",
    what="`openWorldHint: false` on a tool that says it searches the web, fetches addresses, crawls pages, sends mail, or "
    "notifies people.",
    why="What comes from strangers may carry instructions, and what goes to strangers is gone. Clients look for both by "
    "this hint.",
    how="Set `openWorldHint: true`.",
    example="`create_incident` of grafana claims a closed world and says “Creating an incident may notify or page many "
    "people”.",
    check=_check,
)

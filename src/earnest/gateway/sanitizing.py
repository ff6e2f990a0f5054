"""Cutting a tool's results down to the fields that the operator named (`core.sanitize`).

What the client gets is made here: the fields as structured content and once more as text, and nothing of the server's words. A
result that is an error, or not yet one (a task, a question), goes on as it came and is labelled like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.sanitize import extract
from earnest.protocol.calls import string
from earnest.protocol.outcomes import Outcome

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay


def sanitized(relay: Relay, outcome: Outcome) -> bytes:
    """The result of a call as its tool's sanitizer leaves it, put on record; empty where there is none, or it does not apply.
    Raises E14xx where that cannot be recorded."""
    tool, judgement = relay.tool, relay.judgement
    sanitizer = tool.words.sanitizer if tool is not None and relay.method.name == "tools/call" else None
    if sanitizer is None or judgement is None or outcome.malformed or outcome.is_error or outcome.result_type != "complete":
        return b""
    found = extract(sanitizer, _content(outcome))
    judgement.sanitized = sanitizer.name
    kept = ", ".join(path for path in found) or "nothing"
    relay.gateway.records.note(
        "sanitized",
        f"sanitizer {sanitizer.name} left {kept} of the result",
        conversation=judgement.question.key,
        server=judgement.question.server.name,
        tool=judgement.question.subject,
        decision=judgement.id,
    )
    return made(found, modern=relay.session.modern)


def made(found: dict[str, Any], *, modern: bool) -> bytes:
    """A tool's result of these fields."""
    structured = msgspec.json.encode(found)
    head = b'{"resultType":"complete",' if modern else b"{"
    return head + b'"content":[{"type":"text","text":%b}],"structuredContent":%b}' % (string(structured.decode()), structured)


def _content(outcome: Outcome) -> Any:
    """What a result says as data: its structured content, or its one text if that is JSON."""
    try:
        if outcome.structured:
            return msgspec.json.decode(outcome.structured)
        blocks = msgspec.json.decode(outcome.members.get("content", b"[]"), type=list[dict[str, Any]])
        texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
        return msgspec.json.decode(texts[0]) if len(texts) == 1 else None
    except (msgspec.MsgspecError, EarnestError, RecursionError):
        return None

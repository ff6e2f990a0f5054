"""Claude Code's hooks on the wire: which events there are, what is read of them, what it takes for an answer.

An event is one JSON object on standard input with `session_id`, `cwd`, `hook_event_name` and what belongs to it:
`tool_name`, `tool_input` and `tool_use_id`, later `tool_response` or `error`; `prompt`; `source` of a start. An answer
is one JSON object on standard output with exit code 0, where `hookSpecificOutput.permissionDecision` is `allow`, `ask` or
`deny`; nothing at all means no opinion. The reason of an ask is shown to the person, that of a denial to the model.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.verdict import Verdict

BEFORE: Final = "PreToolUse"
EVENTS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    BEFORE,
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStop",
    "SessionEnd",
)
"""Events that earnest installs itself for, in the order of a conversation."""
OF_TOOLS: Final = frozenset((BEFORE, "PostToolUse", "PostToolUseFailure"))
"""Those that take a matcher of tools."""
_WORDS: Final = {Verdict.ALLOW: "allow", Verdict.ASK: "ask", Verdict.DENY: "deny"}
_SESSION: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_REASON: Final = 4000


class Told(msgspec.Struct, frozen=True):
    """One event as read. `input` and `response` are raw JSON."""

    event: str
    session: str
    cwd: str = ""
    tool: str = ""
    input: bytes = b"{}"
    use: str = ""
    response: bytes = b""
    prompt: str = ""
    source: str = ""
    last: str = ""


def read(event: str, body: bytes) -> Told:
    """Read an event that was announced as `event`. Raises `EarnestError` E1520 for what is none, E13xx for what two parsers
    could read in two ways."""
    members = canonical.members(body)
    name = _text(members, "hook_event_name")
    session = _text(members, "session_id")
    if name != event or not _SESSION.fullmatch(session):
        raise EarnestError("E1520", f"standard input holds no {event} event of a session")
    if event in OF_TOOLS and (not _text(members, "tool_name") or members.get("tool_input", b"")[:1] != b"{"):
        raise EarnestError("E1520", f"a {event} event names a tool and its input")
    if event == "UserPromptSubmit" and members.get("prompt", b"")[:1] != b'"':
        raise EarnestError("E1520", "a UserPromptSubmit event has a prompt")
    return Told(
        event,
        session,
        _text(members, "cwd"),
        _text(members, "tool_name"),
        members.get("tool_input", b"{}"),
        _text(members, "tool_use_id"),
        members.get("tool_response") or members.get("error", b""),
        _text(members, "prompt"),
        _text(members, "source"),
        _text(members, "last_assistant_message"),
    )


def _text(members: dict[str, bytes], name: str) -> str:
    raw = members.get(name, b"")
    if raw[:1] != b'"':
        return ""
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.MsgspecError:
        raise EarnestError("E1520", f"{name} of the event cannot be read") from None


def answer(verdict: Verdict, reason: str) -> bytes:
    """The document that decides on a call."""
    said = {
        "hookEventName": BEFORE,
        "permissionDecision": _WORDS[verdict],
        "permissionDecisionReason": reason if len(reason) <= _REASON else reason[:_REASON] + "…",
    }
    return msgspec.json.encode({"hookSpecificOutput": said}) + b"\n"

"""Claude Code's hooks on the wire: which events there are, what is read of them, what it takes for an answer.

An event is one JSON object on standard input with `session_id`, `cwd`, `hook_event_name` and what belongs to it:
`tool_name`, `tool_input` and `tool_use_id`, later `tool_response` or `error`; `prompt`; `source` of a start. An answer
is one JSON object on standard output with exit code 0, where `hookSpecificOutput.permissionDecision` is `allow`, `ask` or
`deny`; nothing at all means no opinion. The reason of an ask is shown to the person, that of a denial to the model.

Where the session runs without prompts (`permission_mode`), an `ask` lets the call run (anthropics/claude-code#77212, #89561);
so there a person is asked elsewhere.
"""

from __future__ import annotations

from typing import Final

from earnest.core.verdict import Verdict
from earnest.hook import wire
from earnest.hook.wire import Kind, Told, Wire
from earnest.pdp.hooked import Answer

NAME: Final = "claude-code"
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
KINDS: Final[dict[str, Kind]] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    BEFORE: "before",
    "PostToolUse": "after",
    "PostToolUseFailure": "failed",
    "SubagentStop": "subagent",
}
_PROMPTS: Final = frozenset(("", "default", "acceptEdits", "plan"))
_WORDS: Final = {Verdict.ALLOW: "allow", Verdict.ASK: "ask", Verdict.DENY: "deny"}


def read(event: str, body: bytes) -> Told:
    """See `Wire.read`."""
    found = wire.members(event, body)
    session = wire.session(found, "session_id")
    server, name, given = "", "", b"{}"
    if event in OF_TOOLS:
        name, given = wire.tool(event, found)
        server, name = wire.mcp(name)
    return Told(
        event,
        KINDS.get(event, "other"),
        session,
        wire.text(found, "cwd"),
        name,
        server,
        given,
        wire.text(found, "tool_use_id"),
        found.get("tool_response") or found.get("error", b""),
        wire.prompt(event, found) if event == "UserPromptSubmit" else "",
        fresh=wire.text(found, "source") in ("startup", "clear"),
        last=wire.text(found, "last_assistant_message"),
        asks=wire.text(found, "permission_mode") in _PROMPTS,
    )


def decided(event: str, verdict: Verdict, reason: str) -> Answer:
    """See `Wire.decided`."""
    said = {
        "hookEventName": event,
        "permissionDecision": _WORDS[verdict],
        "permissionDecisionReason": wire.short(reason),
    }
    return wire.document({"hookSpecificOutput": said})


def silent(event: str) -> Answer:
    """See `Wire.silent`."""
    return Answer()


WIRE: Final = Wire(NAME, EVENTS, frozenset((BEFORE,)), read, decided, silent, "host")

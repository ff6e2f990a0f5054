"""Codex's hooks on the wire. They are spelt like Claude Code's, with differences that matter.

Before a tool is used only a denial counts. An `allow` without a changed input, and any `ask`, make the whole answer invalid,
and then the tool runs; so a call that is allowed is answered with nothing, and a person is asked elsewhere. A member that
Codex does not know makes an answer invalid as well. What `apply_patch` changes stands inside one text; the paths are read out
of it, so that they can be judged as places and the rest as content.

Source: Codex's reference of hooks and `codex-rs/hooks` (`output_parser.rs`, `pre_tool_use.rs`).
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from earnest.core.verdict import Verdict
from earnest.hook import claude_code, wire
from earnest.hook.wire import Kind, Told, Wire
from earnest.pdp.hooked import Answer

NAME: Final = "codex"
BEFORE: Final = "PreToolUse"
EVENTS: Final = ("SessionStart", "UserPromptSubmit", BEFORE, "PostToolUse", "SubagentStop", "SessionEnd")
_OF_TOOLS: Final = frozenset((BEFORE, "PostToolUse"))
_KINDS: Final[dict[str, Kind]] = {event: claude_code.KINDS.get(event, "other") for event in EVENTS}
_PATHS: Final = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)
_MOST: Final = 1000


class _Patch(msgspec.Struct):
    command: str


def read(event: str, body: bytes) -> Told:
    """See `Wire.read`."""
    found = wire.members(event, body)
    session = wire.session(found, "session_id")
    server, name, given = "", "", b"{}"
    if event in _OF_TOOLS:
        name, given = wire.tool(event, found)
        server, name = wire.mcp(name)
        if not server and name == "apply_patch":
            given = _taken_apart(given)
    return Told(
        event,
        _KINDS[event],
        session,
        wire.text(found, "cwd"),
        name,
        server,
        given,
        wire.text(found, "tool_use_id"),
        found.get("tool_response", b""),
        wire.prompt(event, found) if event == "UserPromptSubmit" else "",
        fresh=wire.text(found, "source") in ("startup", "clear"),
        last=wire.text(found, "last_assistant_message"),
    )


def _taken_apart(given: bytes) -> bytes:
    """A patch as the paths that it touches and itself; as it came where it touches none that can be read."""
    try:
        patch = msgspec.json.decode(given, type=_Patch).command
    except msgspec.MsgspecError:
        return given
    paths = list(dict.fromkeys(_PATHS.findall(patch)))
    if not paths or len(paths) > _MOST:
        return given
    return msgspec.json.encode({"paths": paths, "patch": patch})


def decided(event: str, verdict: Verdict, reason: str) -> Answer:
    """See `Wire.decided`."""
    return Answer() if verdict is Verdict.ALLOW else claude_code.decided(event, Verdict.DENY, reason)


WIRE: Final = Wire(NAME, EVENTS, frozenset((BEFORE,)), read, decided, claude_code.silent, "queue")

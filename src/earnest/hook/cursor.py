"""Cursor's hooks on the wire.

Four events hold a call: `beforeShellExecution`, `beforeMCPExecution` and `beforeReadFile` those that they name, `preToolUse`
every tool. For what has an event of its own, that one decides, and `preToolUse` says no more than a denial. An answer is one
JSON object on standard output with exit code 0, where `permission` is `allow`, `deny` or, for shell lines and MCP tools alone,
`ask`; an empty output is logged as a failure, so something is always said. A denial's `user_message` is what the person and, by
way of the failed call, the model read.

An `ask` for a shell line is reported to run the line at once where Cursor runs commands by itself; so a person is asked
elsewhere, unless the operator says that this host may (`[clients.cursor] ask = "host"`).

A conversation is `conversation_id`, and `session_id` where it starts. Arguments of an MCP tool are JSON in a string. Calls have
no id, but for `preToolUse`. The content of a file comes with the question whether it may be read.

Source: Cursor's reference of hooks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.verdict import Verdict
from earnest.hook import wire
from earnest.hook.wire import Kind, Told, Wire
from earnest.pdp.hooked import Answer

NAME: Final = "cursor"
DECIDING: Final = frozenset(("preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"))
EVENTS: Final = (
    "sessionStart",
    "beforeSubmitPrompt",
    "preToolUse",
    "beforeShellExecution",
    "beforeMCPExecution",
    "beforeReadFile",
    "postToolUse",
    "postToolUseFailure",
    "afterShellExecution",
    "afterMCPExecution",
    "subagentStop",
    "sessionEnd",
)
_KINDS: Final[dict[str, Kind]] = {
    "sessionStart": "start",
    "beforeSubmitPrompt": "prompt",
    **dict.fromkeys(DECIDING, "before"),
    "postToolUse": "after",
    "postToolUseFailure": "failed",
    "afterShellExecution": "after",
    "afterMCPExecution": "after",
    "subagentStop": "subagent",
}
_OWN_EVENT: Final = frozenset(("Shell", "Read"))
_ASKS: Final = frozenset(("beforeShellExecution", "beforeMCPExecution"))
_WORDS: Final = {Verdict.ALLOW: "allow", Verdict.ASK: "ask", Verdict.DENY: "deny"}
_LOCAL: Final = re.compile(r"(?:^|[/\\\s'\"])earnest['\"]?\s+stdio\s+([\w.-]+)")
_REMOTE: Final = re.compile(r"https?://[^/\s]+/(?:s/([\w-]+)/|v/([\w-]+)/)?mcp/?$")


class _Attachment(msgspec.Struct):
    type: str = ""


def read(event: str, body: bytes) -> Told:
    """See `Wire.read`."""
    found = wire.members(event, body)
    session = wire.session(found, "conversation_id", "session_id")
    told = Told(
        event,
        _KINDS.get(event, "other"),
        session,
        wire.text(found, "cwd") or _folder(found),
        use=wire.text(found, "tool_use_id"),
        fresh=event == "sessionStart",
        last=wire.text(found, "summary") or wire.text(found, "result"),
        asks=event in _ASKS,
    )
    if event == "beforeSubmitPrompt":
        return msgspec.structs.replace(told, prompt=wire.prompt(event, found), attached=_attached(found))
    if event in ("preToolUse", "postToolUse", "postToolUseFailure"):
        return _tool(told, found)
    if event in ("beforeShellExecution", "afterShellExecution"):
        line = found.get("command", b"")
        if line[:1] != b'"':
            raise EarnestError("E1520", f"a {event} event has a command")
        given = canonical.build({"command": line})
        return msgspec.structs.replace(told, tool="Shell", input=given, response=found.get("output", b""))
    if event in ("beforeMCPExecution", "afterMCPExecution"):
        name, given = wire.text(found, "tool_name"), _arguments(found)
        if not name:
            raise EarnestError("E1520", f"a {event} event names a tool")
        result = wire.text(found, "result_json").encode()
        return msgspec.structs.replace(told, tool=_bare(name), server=_server(name, found), input=given, response=result)
    if event == "beforeReadFile":
        path = found.get("file_path", b"")
        if path[:1] != b'"':
            raise EarnestError("E1520", "a beforeReadFile event names a file")
        given = canonical.build({"file_path": path})
        return msgspec.structs.replace(told, tool="Read", input=given, response=found.get("content", b""), read=True)
    return told


def _tool(told: Told, found: Mapping[str, bytes]) -> Told:
    name, given = wire.tool(told.event, found)
    own = name in _OWN_EVENT
    # A call of an MCP server is told of by its own events alone: which server it is for is not said here.
    before = told.event == "preToolUse"
    kind: Kind = "other" if name.startswith("MCP:") or (own and not before) else told.kind
    response = found.get("tool_output") or found.get("error_message", b"")
    return msgspec.structs.replace(told, kind=kind, tool=name, input=given, response=response, glance=own and before)


def _folder(found: Mapping[str, bytes]) -> str:
    try:
        roots = msgspec.json.decode(found.get("workspace_roots", b"[]"), type=list[str])
    except msgspec.MsgspecError:
        return ""
    return roots[0] if roots else ""


def _attached(found: Mapping[str, bytes]) -> bool:
    """Whether anything but rules was attached; what cannot be read was."""
    try:
        attachments = msgspec.json.decode(found.get("attachments") or b"[]", type=list[_Attachment] | None)
    except msgspec.MsgspecError:
        return True
    return any(one.type != "rule" for one in attachments or ())


def _arguments(found: Mapping[str, bytes]) -> bytes:
    """Arguments of an MCP tool: an object, mostly as JSON in a string. Raises E1520."""
    raw = found.get("tool_input", b"{}")
    given = wire.text(found, "tool_input").encode() or b"{}" if raw[:1] == b'"' else raw
    if given.lstrip()[:1] != b"{":
        raise EarnestError("E1520", "the arguments of an MCP tool are no object")
    return given.strip()


def _bare(name: str) -> str:
    """A tool without what Cursor may put before it (`MCP:SERVER:TOOL`, `MCP:TOOL`)."""
    return name.rpartition(":")[2] if name.startswith("MCP:") else name


def _server(name: str, found: Mapping[str, bytes]) -> str:
    """Whose tool it is: where Cursor starts or reaches the server through earnest, as earnest calls it. A name alone proves
    nothing, here as elsewhere."""
    local = _LOCAL.search(wire.text(found, "command"))
    if local is not None:
        return local[1]
    remote = _REMOTE.match(wire.text(found, "mcp_server_url") or wire.text(found, "url"))
    if remote is not None:
        return remote[1] or remote[2] or "earnest"
    parts = name.split(":")
    spelt = parts[1] if parts[0] == "MCP" and len(parts) > 2 else "mcp"
    return wire.text(found, "mcp_server_name") or spelt


def decided(event: str, verdict: Verdict, reason: str) -> Answer:
    """See `Wire.decided`."""
    if verdict is Verdict.ALLOW:
        return wire.document({"permission": "allow"})
    if verdict is Verdict.ASK and event not in _ASKS:
        verdict = Verdict.DENY
    said = wire.short(reason)
    return wire.document({"permission": _WORDS[verdict], "user_message": said, "agent_message": said})


def silent(event: str) -> Answer:
    """See `Wire.silent`."""
    return wire.document({"continue": True} if event == "beforeSubmitPrompt" else {})


WIRE: Final = Wire(NAME, EVENTS, DECIDING, read, decided, silent, "operator")

"""Gemini CLI's hooks on the wire.

An answer is one JSON object on standard output with exit code 0, where `decision` is `allow` or `deny`; the reason of a denial
goes to the model. An `allow` does not spare the person what Gemini CLI asks by itself. A decision `ask` is in its source
(google-gemini/gemini-cli#21146, March 2026) and not in its reference; a version that does not know it takes it for no
decision, and the tool runs as far as the host's own policy lets it. So a person is asked elsewhere, unless the operator says
that this host may (`[clients.gemini-cli] ask = "host"`).

A tool of an MCP server comes with `mcp_context`, which says by the configuration's names whose it is. Calls have no id.

Source: `docs/hooks/reference.md` and `packages/core/src/hooks` of google-gemini/gemini-cli.
"""

from __future__ import annotations

from typing import Final

from earnest.core import canonical
from earnest.core.verdict import Verdict
from earnest.hook import wire
from earnest.hook.wire import Kind, Told, Wire
from earnest.pdp.hooked import Answer

NAME: Final = "gemini-cli"
BEFORE: Final = "BeforeTool"
EVENTS: Final = ("SessionStart", "BeforeAgent", BEFORE, "AfterTool", "SessionEnd")
_OF_TOOLS: Final = frozenset((BEFORE, "AfterTool"))
_KINDS: Final[dict[str, Kind]] = {"SessionStart": "start", "BeforeAgent": "prompt", BEFORE: "before", "AfterTool": "after"}


def read(event: str, body: bytes) -> Told:
    """See `Wire.read`."""
    found = wire.members(event, body)
    session = wire.session(found, "session_id")
    server, name, given = "", "", b"{}"
    if event in _OF_TOOLS:
        name, given = wire.tool(event, found)
        context = found.get("mcp_context", b"null")
        if context[:1] == b"{":
            inner = canonical.members(context)
            server, name = wire.text(inner, "server_name") or "mcp", wire.text(inner, "tool_name") or name
        else:
            server, name = wire.mcp(name)
    return Told(
        event,
        _KINDS.get(event, "other"),
        session,
        wire.text(found, "cwd"),
        name,
        server,
        given,
        response=found.get("tool_response", b""),
        prompt=wire.prompt(event, found) if event == "BeforeAgent" else "",
        fresh=wire.text(found, "source") in ("startup", "clear"),
        asks=True,
    )


def decided(event: str, verdict: Verdict, reason: str) -> Answer:
    """See `Wire.decided`."""
    if verdict is Verdict.ALLOW:
        return wire.document({"decision": "allow"})
    if verdict is Verdict.ASK:
        return wire.document({"decision": "ask", "reason": wire.short(reason), "systemMessage": wire.short(reason)})
    return wire.document({"decision": "deny", "reason": wire.short(reason)})


def silent(event: str) -> Answer:
    """See `Wire.silent`."""
    return Answer()


WIRE: Final = Wire(NAME, EVENTS, frozenset((BEFORE,)), read, decided, silent, "operator")

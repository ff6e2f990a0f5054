"""What hosts' hooks have in common: an event as it is read, an answer as it is said, and who reads and says it for each host.

A host's own module (`claude_code.py`, `codex.py`, `gemini_cli.py`, `cursor.py`) has one `Wire`: its events, what of them
decides, how they are read and answered. Nothing beyond these modules knows how a host spells anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.verdict import Verdict
from earnest.pdp.hooked import Answer

Kind = Literal["start", "prompt", "before", "after", "failed", "subagent", "other"]
_SESSION: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_REASON: Final = 4000


class Told(msgspec.Struct, frozen=True):
    """One event as read. `input` and `response` are raw JSON.

    `event` is the host's word for it. `server`: as the host calls the MCP server whose tool it is, empty for a tool of its own.
    `fresh`: a session that starts with nothing before it. `attached`: the prompt came with files that are not in it. `asks`: a
    person can be asked in answer to this event, as far as the host says. `glance`: another event of the same call decides; here
    only a denial is said. `read`: what a call is about to return came with the event.
    """

    event: str
    kind: Kind
    session: str
    cwd: str = ""
    tool: str = ""
    server: str = ""
    input: bytes = b"{}"
    use: str = ""
    response: bytes = b""
    prompt: str = ""
    fresh: bool = False
    attached: bool = False
    last: str = ""
    asks: bool = False
    glance: bool = False
    read: bool = False


class Wire(msgspec.Struct, frozen=True):
    """One host. `events`: those that earnest installs itself for, in the order of a conversation; `deciding`: those that hold a
    call. `read(event, body)` raises E1520 for what is no such event, E13xx for what two parsers could read in two ways.
    `decided(event, verdict, reason)` is the answer to an event that decides, `silent(event)` the one that says nothing.
    `asks`: whether an ask is put to the person by the host itself (`host`), only where the operator says so (`operator`), or
    never (`queue`)."""

    name: str
    events: tuple[str, ...]
    deciding: frozenset[str]
    read: Callable[[str, bytes], Told]
    decided: Callable[[str, Verdict, str], Answer]
    silent: Callable[[str], Answer]
    asks: Literal["host", "operator", "queue"]


def members(event: str, body: bytes) -> dict[str, bytes]:
    """The members of an event that was announced as `event`. Raises E1520, E13xx."""
    found = canonical.members(body)
    if text(found, "hook_event_name") != event:
        raise EarnestError("E1520", f"standard input holds no {event} event")
    return found


def session(found: Mapping[str, bytes], *names: str) -> str:
    """The id of the session, under the first of these names that is there. Raises E1520."""
    id = next((value for name in names if (value := text(found, name))), "")
    if not _SESSION.fullmatch(id):
        raise EarnestError("E1520", "the event names no session")
    return id


def text(found: Mapping[str, bytes], name: str) -> str:
    """A string, empty where there is none. Raises E1520 for one that cannot be read."""
    raw = found.get(name, b"")
    if raw[:1] != b'"':
        return ""
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.MsgspecError:
        raise EarnestError("E1520", f"{name} of the event cannot be read") from None


def tool(event: str, found: Mapping[str, bytes]) -> tuple[str, bytes]:
    """The name of a tool and its input, an object. Raises E1520."""
    name, given = text(found, "tool_name"), found.get("tool_input", b"")
    if not name or given[:1] != b"{":
        raise EarnestError("E1520", f"a {event} event names a tool and its input")
    return name, given


def prompt(event: str, found: Mapping[str, bytes]) -> str:
    """The prompt. Raises E1520 where there is none."""
    if found.get("prompt", b"")[:1] != b'"':
        raise EarnestError("E1520", f"a {event} event has a prompt")
    return text(found, "prompt")


def mcp(name: str) -> tuple[str, str]:
    """Server and tool of a name as Claude Code and Codex write them (`mcp__SERVER__TOOL`); the server empty for another."""
    if not name.startswith("mcp__"):
        return "", name
    server, _, bare = name[5:].partition("__")
    return server or "mcp", bare or name


def document(value: object) -> Answer:
    """One JSON document on standard output."""
    return Answer(msgspec.json.encode(value) + b"\n")


def short(reason: str) -> str:
    """A reason that no host cuts where it hurts."""
    return reason if len(reason) <= _REASON else reason[:_REASON] + "…"

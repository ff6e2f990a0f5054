"""The wire of `io.modelcontextprotocol/tool-resolution` (draft of 2026-08-20): who speaks it, which tools, and its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.protocol.methods import TOOL_RESOLUTION

_NAME: Final = TOOL_RESOLUTION.encode()


def declared(capabilities: bytes) -> bool:
    """Whether capabilities, a client's or a server's, hold the extension with the empty settings that it wants."""
    if _NAME not in capabilities:
        return False
    try:
        extensions = canonical.members(canonical.members(capabilities).get("extensions", b"{}"))
        return TOOL_RESOLUTION in extensions and not canonical.members(extensions[TOOL_RESOLUTION])
    except EarnestError:
        return False


def with_extension(capabilities: bytes) -> bytes:
    """Capabilities with the extension among them."""
    seen = canonical.members(capabilities or b"{}")
    old = seen.get("extensions", b"")
    extensions = canonical.members(old) if old[:1] == b"{" else {}
    seen["extensions"] = canonical.build({**extensions, TOOL_RESOLUTION: b"{}"})
    return canonical.build(seen)


def advertised(client: bytes, capabilities: bytes) -> bytes:
    """A server's capabilities as told to a client; to one that declared the extension, with it where there are tools."""
    return with_extension(capabilities) if declared(client) and b'"tools"' in capabilities else capabilities


def is_marked(meta: bytes) -> bool:
    """Whether a tool's `_meta` says that its server resolves hints for each call."""
    if _NAME not in meta:
        return False
    try:
        found: Any = msgspec.json.decode(meta)
    except msgspec.MsgspecError:
        return False
    mark = found.get(TOOL_RESOLUTION) if isinstance(found, dict) else None
    return isinstance(mark, dict) and mark.get("resolvable") is True


def marked(definition: bytes, resolves: bool) -> bytes:
    """A tool as a client that declared the extension sees it: the mark is earnest's, not the server's."""
    members = canonical.members(definition)
    old = members.get("_meta", b"")
    meta = canonical.members(old) if old[:1] == b"{" else {}
    meta.pop(TOOL_RESOLUTION, None)
    if resolves:
        meta[TOOL_RESOLUTION] = b'{"resolvable":true}'
    members["_meta"] = canonical.build(meta)
    return canonical.build(members)


def within(static: Mapping[str, bool], found: Mapping[str, bool]) -> bool:
    """Whether a call's hints keep to what the list promises of all calls."""
    if static["read_only"] and not found["read_only"]:
        return False
    if not found["read_only"]:
        if not static["destructive"] and found["destructive"]:
            return False
        if static["idempotent"] and not found["idempotent"]:
            return False
    return static["open_world"] or not found["open_world"]

"""Two eras of MCP: their versions, error codes and `_meta` keys, and what makes a request modern.

Theory. A modern request (2026-07-28) carries its own version and capabilities in `_meta`; a legacy one
(2025-11-25 and older) belongs to a session that `initialize` opened. As a server we take both: `initialize`
begins a legacy session, anything with the modern `_meta` stands alone. How the era of a server is found out
is `upstream/opening.py`.

Source: MCP 2026-07-28, "Versioning"; 2025-11-25, "Lifecycle".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from earnest.core.canonical import members
from earnest.core.errors import EarnestError
from earnest.protocol import envelope
from earnest.protocol.calls import Meta
from earnest.protocol.envelope import INVALID_PARAMS, METHOD_NOT_FOUND, WireError

MODERN: Final = "2026-07-28"
MODERN_VERSIONS: Final = (MODERN,)
LEGACY: Final = "2025-11-25"
LEGACY_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first."""

HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
MODERN_ERRORS: Final = frozenset((HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION))
"""Codes that no legacy server has."""

PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = PREFIX + "protocolVersion"
CLIENT_CAPABILITIES: Final = PREFIX + "clientCapabilities"
CLIENT_INFO: Final = PREFIX + "clientInfo"
LOG_LEVEL: Final = PREFIX + "logLevel"
SUBSCRIPTION_ID: Final = PREFIX + "subscriptionId"
SERVER_INFO: Final = PREFIX + "serverInfo"

_STATUS: Final = {
    envelope.PARSE_ERROR: 400,
    envelope.INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


def http_status(code: int) -> int:
    """The status of a modern HTTP answer that carries a JSON-RPC error; 200 for codes that have none of their
    own."""
    return _STATUS.get(code, 200)


class ModernMeta(msgspec.Struct, frozen=True):
    """What a modern request says of its client, raw. `info` and `log_level` may be `b""`."""

    version: str
    capabilities: bytes
    info: bytes = b""
    log_level: bytes = b""


def is_modern(params: Mapping[str, bytes]) -> bool:
    """Whether the params of a request (as members) speak the modern era: any of its own `_meta` keys is
    there.

    One key alone makes it modern, so that a request that lacks the other is told so instead of being taken
    for legacy.
    """
    meta = params.get("_meta", b"")
    if PREFIX.encode() not in meta and b"\\" not in meta:
        return False
    try:
        seen = members(meta)
    except EarnestError:
        return False
    return PROTOCOL_VERSION in seen or CLIENT_CAPABILITIES in seen


def modern_facts(meta: Meta, params: Mapping[str, bytes], id: bytes = b"") -> ModernMeta:
    """As `modern_meta`, of a `_meta` that was read before; the same bytes are looked at once."""
    if meta.facts is None:
        meta.facts = modern_meta(params, id)
    found: ModernMeta = meta.facts
    return found


def modern_meta(params: Mapping[str, bytes], id: bytes = b"") -> ModernMeta:
    """Read the `_meta` of a modern request.

    Raises `WireError` -32602 where a required key is missing or of the wrong type, -32022 for a version we do
    not speak.
    """
    try:
        seen = members(params.get("_meta", b"{}"))
    except EarnestError as reason:
        raise WireError(INVALID_PARAMS, f"_meta: {reason.message}", id, code=reason.code) from None
    for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES):
        if key not in seen:
            raise WireError(INVALID_PARAMS, f"_meta lacks {key}", id)
    try:
        version = msgspec.json.decode(seen[PROTOCOL_VERSION], type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise WireError(INVALID_PARAMS, f"{PROTOCOL_VERSION} must be a string", id) from None
    capabilities = seen[CLIENT_CAPABILITIES]
    if capabilities[:1] != b"{":
        raise WireError(INVALID_PARAMS, f"{CLIENT_CAPABILITIES} must be an object", id)
    if version not in MODERN_VERSIONS:
        raise unsupported(version, id)
    return ModernMeta(version, capabilities, _present(seen, CLIENT_INFO), _present(seen, LOG_LEVEL))


def _present(seen: Mapping[str, bytes], key: str) -> bytes:
    value = seen.get(key, b"null")
    return b"" if value == b"null" else value


def unsupported(requested: str, id: bytes = b"") -> WireError:
    """The refusal of a version that is not spoken, naming those that are."""
    data = msgspec.json.encode({"supported": [*MODERN_VERSIONS, *LEGACY_VERSIONS], "requested": requested})
    return WireError(UNSUPPORTED_VERSION, "unsupported protocol version", id, data=data, code="E1340")


def agree(requested: str) -> str:
    """The version to answer an `initialize` with: the requested one if we speak it, else our newest legacy
    one.

    `initialize` never leads into the modern era, whatever it asks for.
    """
    return requested if requested in LEGACY_VERSIONS else LEGACY

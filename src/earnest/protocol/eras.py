"""Two eras of MCP: what makes a request modern, how a server's era is found out, how a version is agreed.

Theory. A modern request (2026-07-28) carries its own version and capabilities in `_meta`; a legacy one
(2025-11-25 and older) belongs to a session that `initialize` opened. As a server we take both: `initialize`
begins a legacy session, anything with the modern `_meta` stands alone. As a client we ask `server/discover`
first and judge the answer by its shape, never by one error code: a discover result is modern, an error that
only the modern era knows is modern, everything else, silence too, means `initialize`. `Probe` is that
decision as a machine without clock or socket.

Source: MCP 2026-07-28, "Versioning"; 2025-11-25, "Lifecycle".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from earnest.core.canonical import members
from earnest.core.errors import EarnestError
from earnest.protocol import envelope
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


def missing_capability(required: bytes, id: bytes = b"") -> WireError:
    """The refusal of a request that needs capabilities its client did not declare; `required` is raw JSON of
    them."""
    data = b'{"requiredCapabilities":%b}' % required
    return WireError(MISSING_CAPABILITY, "a required client capability was not declared", id, data=data, code="E1341")


def agree(requested: str) -> str:
    """The version to answer an `initialize` with: the requested one if we speak it, else our newest legacy
    one.

    `initialize` never leads into the modern era, whatever it asks for.
    """
    return requested if requested in LEGACY_VERSIONS else LEGACY


Action = Literal["discover", "initialize", "modern", "legacy", "failed"]


class Step(msgspec.Struct, frozen=True):
    """What to do next. `discover` and `initialize`: send that request with `version`. `modern` and `legacy`:
    settled, `result` is the raw hello (`b""` where the server only proved its era by an error). `failed`:
    `why` says it."""

    action: Action
    version: str = ""
    result: bytes = b""
    why: str = ""


class _Discover(msgspec.Struct):
    supportedVersions: list[str]


class _Initialize(msgspec.Struct):
    protocolVersion: str


class _Supported(msgspec.Struct):
    supported: list[str]


class Probe:
    """Finds out the era of one server. `start` gives the first step; `answered` takes each answer and gives
    the next.

    `prefer_modern=False` asks `initialize` first, so that a legacy client meets a dual-era server in its own
    era. Each word is sent at most twice; after `modern`, `legacy` or `failed` nothing more is asked.
    """

    def __init__(self, prefer_modern: bool = True, legacy_version: str = LEGACY) -> None:
        self._legacy_version = legacy_version
        self._prefer_modern = prefer_modern
        self._sent: list[Action] = []

    def start(self) -> Step:
        """The first word."""
        return self._send("discover" if self._prefer_modern else "initialize", MODERN)

    def _send(self, action: Action, version: str) -> Step:
        self._sent.append(action)
        return Step(action, version if action == "discover" else self._legacy_version)

    def answered(self, message: envelope.Message | None) -> Step:
        """The next step after the answer to the last word; `None` is a timeout or an answer that could not be
        read."""
        if self._sent[-1] == "discover":
            return self._discovered(message)
        return self._initialized(message)

    def _discovered(self, message: envelope.Message | None) -> Step:
        if message is not None and message.kind == "response":
            versions = _versions(message.result)
            if versions is not None and any(one in versions for one in MODERN_VERSIONS):
                return Step("modern", MODERN, message.result)
            if versions is not None and not any(one in versions for one in LEGACY_VERSIONS):
                return Step("failed", why=f"the server speaks only {_shown(versions)}")
        if message is not None and message.kind == "error":
            failure = envelope.failure(message.error)
            if failure.code == UNSUPPORTED_VERSION:
                step = self._unsupported(failure)
                if step is not None:
                    return step
            elif failure.code in MODERN_ERRORS:
                return Step("modern", MODERN)
        if "initialize" in self._sent:
            return Step("failed", why="the server understands neither initialize nor server/discover")
        return self._send("initialize", "")

    def _unsupported(self, failure: envelope.Failure) -> Step | None:
        """After -32022: again with a version both know, the end where there is none, or `None`: not a modern
        list."""
        try:
            supported = msgspec.json.decode(failure.data, type=_Supported).supported
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        mutual = [one for one in MODERN_VERSIONS if one in supported]
        if mutual and self._sent.count("discover") < 2:
            return self._send("discover", mutual[0])
        if mutual or not any(one in supported for one in LEGACY_VERSIONS):
            return Step("failed", why=f"the server speaks only {_shown(supported)}")
        return None

    def _initialized(self, message: envelope.Message | None) -> Step:
        if message is not None and message.kind == "response":
            try:
                version = msgspec.json.decode(message.result, type=_Initialize).protocolVersion
            except (msgspec.MsgspecError, UnicodeDecodeError):
                version = ""
            if version in LEGACY_VERSIONS:
                return Step("legacy", version, message.result)
            if version:
                return Step("failed", why=f"the server answers with protocol version {_shown([version])}")
        if message is not None and message.kind == "error":
            failure = envelope.failure(message.error)
            if failure.code == UNSUPPORTED_VERSION:
                step = self._unsupported(failure)
                if step is not None:
                    return step
        if "discover" in self._sent:
            return Step("failed", why="the server understands neither server/discover nor initialize")
        return self._send("discover", MODERN)


def _versions(result: bytes) -> list[str] | None:
    try:
        return msgspec.json.decode(result, type=_Discover).supportedVersions
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _shown(versions: list[str]) -> str:
    return ", ".join(ascii(one[:20]) for one in versions[:8]) or "nothing"


Evidence = Literal["modern", "legacy", "sse"]


def http_evidence(status: int, body: bytes, *, tried: Literal["modern", "initialize"]) -> Evidence | None:
    """What a refused HTTP request tells of a server's era, and so what to try next; `None` tells nothing (an
    outage).

    After a modern request: `modern` if the body is an error of the modern era (correct the request, do not
    initialize), else `legacy` (try `initialize`). After `initialize`: `modern` likewise, `sse` for 400, 404
    and 405 without one (try the transport of 2024-11-05). 401, 403, 429 and 5xx are no evidence.
    """
    if status in (401, 403, 407, 408, 429) or status >= 500 or status < 400:
        return None
    try:
        message = envelope.parse(body.strip())
    except WireError:
        message = None
    if message is not None and message.kind == "error" and envelope.failure(message.error).code in MODERN_ERRORS:
        return "modern"
    if tried == "modern":
        return "legacy"
    return "sse" if status in (400, 404, 405) else None

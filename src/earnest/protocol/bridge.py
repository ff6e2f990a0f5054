"""Between the eras: requests, results, errors, notifications and capabilities of one, said in the other.

Theory. Every function takes the era of the side it writes for (`modern`) and raw JSON, and changes only what
that era requires or cannot hold; everything else, unknown members too, keeps its bytes. What has no
equivalent is never approximated: it is not advertised, and where a peer does it all the same the caller gets
`None` or an error that says so. What a later step carries across (asking through the bridge, logging,
resource subscriptions, tasks) is switched in `Carries`, so that nothing is advertised before it works.

Sources: MCP schema 2025-11-25 and 2026-07-28; the tables stand in docs/bridge.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from earnest.core.canonical import build, members
from earnest.core.errors import EarnestError
from earnest.protocol import envelope, eras
from earnest.protocol.calls import string
from earnest.protocol.envelope import INTERNAL_ERROR, INVALID_PARAMS, WireError
from earnest.protocol.methods import TASKS, Method, lookup

RESOURCE_NOT_FOUND: Final = -32002
"""Code of 2025-11-25; 2026-07-28 says -32602 and forbids this one."""

CACHE: Final = {"ttlMs": b"0", "cacheScope": b'"private"'}
"""What is said of caching: nobody but the client itself, and no longer than it asks (lists may tighten at any time)."""
SUPPORTED: Final = msgspec.json.encode([*eras.MODERN_VERSIONS, *eras.LEGACY_VERSIONS])
"""`supportedVersions` of our own hello."""

_REQUEST_KEYS: Final = (
    eras.PROTOCOL_VERSION,
    eras.CLIENT_CAPABILITIES,
    eras.CLIENT_INFO,
    eras.LOG_LEVEL,
    eras.SUBSCRIPTION_ID,
)


class Carries(msgspec.Struct, frozen=True):
    """What the bridge carries besides tools, resources, prompts, completion, progress, cancellation and list
    changes.

    `asking`: sampling, elicitation, roots. `logging`: log messages. `resources`: subscriptions to single
    resources.
    """

    asking: bool = False
    logging: bool = False
    resources: bool = False


NOTHING_MORE: Final = Carries()


class ClientFacts(msgspec.Struct, frozen=True):
    """What a modern request has to say of the client behind it. `info` may be `b""`, `log_level` `""`."""

    capabilities: bytes = b"{}"
    info: bytes = b""
    log_level: str = ""
    version: str = eras.MODERN


Crossing = Literal["pass", "here", "no"]


def crossing(method: Method) -> Crossing:
    """How a client's message fares with a server of the other era.

    `pass`: it is said in the other era. `here`: the gateway answers or absorbs it itself. `no`: it cannot
    cross, and is refused with -32601.
    """
    if method.kind in ("list", "tool", "resource", "prompt", "completion"):
        return "pass"
    if method.kind in ("lifecycle", "logging", "subscription", "notification", "resolve"):
        return "here"
    return "no"


def params_to(modern: bool, method: Method, params: Mapping[str, bytes], client: ClientFacts) -> bytes:
    """The params of a client's request (as members) for a server of the given era. Raises `WireError`
    -32602."""
    seen = dict(params)
    meta = _object(seen.pop("_meta", b"null"), "_meta")
    for key in _REQUEST_KEYS:
        meta.pop(key, None)
    if modern:
        seen.pop("task", None)  # asks for a task of 2025-11-25; modern servers decide themselves
        meta[eras.PROTOCOL_VERSION] = string(client.version)
        meta[eras.CLIENT_CAPABILITIES] = client.capabilities
        if client.info:
            meta[eras.CLIENT_INFO] = client.info
        if client.log_level:
            meta[eras.LOG_LEVEL] = string(client.log_level)
    else:
        seen.pop("inputResponses", None)
        seen.pop("requestState", None)
    if meta:
        seen["_meta"] = build(meta)
    return build(seen)


def result_to(modern: bool, method: Method, result: bytes) -> bytes:
    """The result of a server of the other era for a client of the given era.

    Raises `WireError` -32603 for a result that has no form there (a modern `input_required` or unknown
    `resultType` of a resource or prompt) or that is no object; for a tool call that becomes an error result
    instead.
    """
    try:
        seen = members(result)
    except EarnestError:
        raise WireError(INTERNAL_ERROR, "the server's result cannot be read", code="E1311", http_status=502) from None
    return build(_to_modern(method, seen) if modern else _to_legacy(method, seen))


def _to_modern(method: Method, seen: dict[str, bytes]) -> dict[str, bytes]:
    # These mean nothing in the legacy era; passed on, they would be a request of the server to the modern
    # client.
    for name in ("inputRequests", "requestState"):
        seen.pop(name, None)
    seen["resultType"] = b'"complete"'
    if _cacheable(method):
        # A legacy server says nothing of caching, so nothing may be kept.
        seen.update(CACHE)
    return seen


def _cacheable(method: Method) -> bool:
    row = lookup(method.name, "modern")
    return row is not None and row.cacheable


def _to_legacy(method: Method, seen: dict[str, bytes]) -> dict[str, bytes]:
    kind = seen.pop("resultType", b'"complete"')
    if kind not in (b'"complete"', b"null"):
        if method.kind != "tool":
            raise WireError(INTERNAL_ERROR, "the server asks for what this client cannot give", code="E1350", http_status=502)
        return members(
            b'{"content":[{"type":"text","text":"This call was not finished: the server asked for something that this '
            b'client cannot give."}],"isError":true}'
        )
    for name in CACHE:
        if name in seen and _cacheable(method):
            del seen[name]
    if method.kind == "tool":
        return _structured_to_legacy(seen)
    if method.name == "tools/list" and seen.get("tools", b"")[:1] == b"[":
        tools = msgspec.json.decode(seen["tools"], type=list[msgspec.Raw])
        seen["tools"] = b"[%b]" % b",".join(_tool_to_legacy(bytes(tool)) for tool in tools)
    return seen


def _structured_to_legacy(seen: dict[str, bytes]) -> dict[str, bytes]:
    """Structured content is an object in the legacy era; any other value goes on as text, if no content tells
    it."""
    value = seen.get("structuredContent", b"")
    if value[:1] in (b"", b"{"):
        return seen
    del seen["structuredContent"]
    if value != b"null" and seen.get("content", b"[]").translate(None, b" \t\r\n") in (b"[]", b"null"):
        seen["content"] = b'[{"type":"text","text":%b}]' % string(value.decode())
    return seen


def _tool_to_legacy(tool: bytes) -> bytes:
    """A tool whose output schema is not rooted in an object loses it: legacy clients reject the whole
    list."""
    if tool[:1] != b"{":
        return tool
    seen = members(tool)
    schema = seen.get("outputSchema", b"")
    if schema in (b"", b"null"):
        return tool
    if schema[:1] == b"{" and members(schema).get("type") == b'"object"':
        return tool
    del seen["outputSchema"]
    return build(seen)


def error_to(modern: bool, error: bytes, method: Method | None = None) -> bytes:
    """The raw `error` of a server of the other era for a client of the given era; message and data keep their
    bytes."""
    code = envelope.failure(error).code
    wanted = code
    if modern:
        if code == RESOURCE_NOT_FOUND:
            wanted = INVALID_PARAMS
        elif -32099 <= code <= -32020:
            wanted = INTERNAL_ERROR  # reserved there: a legacy server's code would be read as a modern one
    elif code in eras.MODERN_ERRORS:
        wanted = INTERNAL_ERROR  # says something of the gateway's request, nothing of the client's
    elif code == INVALID_PARAMS and method is not None and method.name == "resources/read" and _names_uri(error):
        wanted = RESOURCE_NOT_FOUND
    try:
        seen = members(error)
    except EarnestError:
        return envelope.error_object(INTERNAL_ERROR, "malformed error of the server")
    if seen.get("message", b"")[:1] != b'"':
        seen["message"] = string("error of the server")
    seen["code"] = b"%d" % wanted
    return build(seen)


def _names_uri(error: bytes) -> bool:
    data = envelope.failure(error).data
    try:
        return data[:1] == b"{" and "uri" in members(data)
    except EarnestError:
        return False


_STREAMED: Final = frozenset(
    (
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    )
)
"""Notifications that belong to no request; in the modern era they need a subscription."""


def notification_to(modern: bool, method: str, params: bytes, subscription: bytes = b"") -> bytes | None:
    """A server's notification for a client of the given era, as a whole message; `None` where it must not be
    sent.

    `subscription` is the raw id of the client's own `subscriptions/listen` that carries it. Cancellations are
    never passed on here: their ids belong to one side.
    """
    if method in ("notifications/cancelled", "notifications/subscriptions/acknowledged"):
        return None
    if lookup(method, "modern" if modern else "legacy", "server") is None:
        return None
    if modern and method in _STREAMED and not subscription:
        return None
    try:
        seen = members(params) if params else {}
        meta = _object(seen.pop("_meta", b"null"), "_meta")
    except EarnestError:
        return None
    old = meta.pop(eras.SUBSCRIPTION_ID, None)
    if modern and method in _STREAMED:
        meta[eras.SUBSCRIPTION_ID] = subscription
    elif old is None:
        return envelope.notification(method, params)
    if meta:
        seen["_meta"] = build(meta)
    return envelope.notification(method, build(seen) if seen or params else b"")


def server_capabilities_to(modern: bool, capabilities: bytes, carries: Carries = NOTHING_MORE) -> bytes:
    """A server's capabilities as told to a client of the other era: nothing that the bridge cannot carry."""
    seen = _object(capabilities, "capabilities")
    seen.pop("tasks", None)
    if not carries.logging:
        seen.pop("logging", None)
    if not carries.resources and seen.get("resources", b"")[:1] == b"{":
        resources = members(seen["resources"])
        if resources.pop("subscribe", None) is not None:
            seen["resources"] = build(resources)
    return build(_without_tasks(seen))


def client_capabilities_to(modern: bool, capabilities: bytes, carries: Carries = NOTHING_MORE) -> bytes:
    """A client's capabilities as told to a server of the other era."""
    seen = _object(capabilities, "capabilities")
    seen.pop("tasks", None)
    if not carries.asking:
        for name in ("sampling", "elicitation", "roots"):
            seen.pop(name, None)
    elif modern and seen.get("roots", b"")[:1] == b"{":
        seen["roots"] = b"{}"  # roots no longer tell of changes
    return build(_without_tasks(seen))


def without_client_tasks(capabilities: bytes) -> bytes:
    """A legacy client's capabilities without tasks of its own: what a server asks of those belongs to no call in flight, so it
    would be declined."""
    if b'"tasks"' not in capabilities:
        return capabilities
    seen = _object(capabilities, "capabilities")
    return capabilities if seen.pop("tasks", None) is None else build(seen)


def _without_tasks(seen: dict[str, bytes]) -> dict[str, bytes]:
    """Tasks of the two eras differ in who owns them and how they end; neither is said in the other."""
    if seen.get("extensions", b"")[:1] == b"{":
        extensions = members(seen["extensions"])
        if extensions.pop(TASKS, None) is not None:
            seen["extensions"] = build(extensions)
    return seen


def discover_result(capabilities: bytes, server_info: bytes, instructions: str) -> bytes:
    """A `DiscoverResult` of our own. `capabilities` and `server_info` are raw; what is empty is left out."""
    parts = {"resultType": b'"complete"', "supportedVersions": SUPPORTED, "capabilities": capabilities or b"{}", **CACHE}
    if instructions:
        parts["instructions"] = string(instructions)
    if server_info:
        parts["_meta"] = build({eras.SERVER_INFO: server_info})
    return build(parts)


def initialize_result(version: str, capabilities: bytes, server_info: bytes, instructions: str) -> bytes:
    """An `InitializeResult` of our own; a server that never told its name is called by what it is."""
    parts = {
        "protocolVersion": string(version),
        "capabilities": capabilities or b"{}",
        "serverInfo": server_info or b'{"name":"unknown","version":"0"}',
    }
    if instructions:
        parts["instructions"] = string(instructions)
    return build(parts)


def _object(raw: bytes, what: str) -> dict[str, bytes]:
    """The members of an object that may be absent or null. Raises `WireError` -32602."""
    if raw in (b"", b"null"):
        return {}
    try:
        return members(raw)
    except EarnestError as reason:
        raise WireError(INVALID_PARAMS, f"{what}: {reason.message}", code=reason.code) from None

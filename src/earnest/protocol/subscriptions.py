"""`subscriptions/listen` of the modern era: what a client wants to hear, and the messages around it.

The first message on a subscription is its acknowledgement with what is honoured of it; every further one
carries the id of the listen request; types that were not asked for are never sent (MCP 2026-07-28,
"Subscriptions"). Toward a legacy peer list changes need no subscription, so the gateway keeps the
subscription and forwards.
"""

from __future__ import annotations

from typing import Final

import msgspec

from earnest.core.canonical import build
from earnest.core.errors import EarnestError
from earnest.protocol import envelope, eras
from earnest.protocol.calls import read_params
from earnest.protocol.envelope import INVALID_PARAMS, WireError

MAX_RESOURCES: Final = 1000
"""Most resources that one subscription may name."""


UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

LIST_CHANGES: Final = (
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
)
"""The notifications that say a list changed."""


class Wanted(msgspec.Struct, frozen=True):
    """What a subscription is for. `resources` are URIs."""

    tools: bool = False
    prompts: bool = False
    resource_list: bool = False
    resources: tuple[str, ...] = ()

    def hears(self, method: str, uri: str = "") -> bool:
        """Whether a notification belongs on this subscription; `uri` is that of
        `notifications/resources/updated`."""
        if method == UPDATED:
            return uri in self.resources
        return dict(zip(LIST_CHANGES, (self.tools, self.prompts, self.resource_list), strict=True)).get(method, False)

    def only(self, other: Wanted) -> Wanted:
        """What both want."""
        return Wanted(
            self.tools and other.tools,
            self.prompts and other.prompts,
            self.resource_list and other.resource_list,
            tuple(uri for uri in self.resources if uri in other.resources),
        )


class _Filter(msgspec.Struct):
    toolsListChanged: bool | None = None
    promptsListChanged: bool | None = None
    resourcesListChanged: bool | None = None
    resourceSubscriptions: list[str] | None = None


def wanted(params: bytes) -> Wanted:
    """Read the params of `subscriptions/listen`. Raises `WireError` -32602."""
    raw = read_params(params).get("notifications", b"")
    try:
        seen = msgspec.json.decode(raw, type=_Filter)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise WireError(INVALID_PARAMS, "params need an object 'notifications'") from None
    uris = tuple(dict.fromkeys(seen.resourceSubscriptions or ()))
    if len(uris) > MAX_RESOURCES:
        raise WireError(INVALID_PARAMS, f"a subscription may name {MAX_RESOURCES} resources at most", code="E1707")
    return Wanted(seen.toolsListChanged is True, seen.promptsListChanged is True, seen.resourcesListChanged is True, uris)


def honoured(params: bytes) -> Wanted:
    """What an acknowledgement says is honoured; nothing where it cannot be read."""
    try:
        return wanted(params)
    except (WireError, EarnestError):
        return Wanted()


class _Updated(msgspec.Struct):
    uri: str = ""


def updated_uri(params: bytes) -> str:
    """The URI that an update is about; empty where it names none."""
    try:
        return msgspec.json.decode(params, type=_Updated).uri
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def asking_for(what: Wanted) -> bytes:
    """The raw `notifications` member that asks for this, or honours it."""
    parts: dict[str, bytes] = {}
    if what.tools:
        parts["toolsListChanged"] = b"true"
    if what.prompts:
        parts["promptsListChanged"] = b"true"
    if what.resource_list:
        parts["resourcesListChanged"] = b"true"
    if what.resources:
        parts["resourceSubscriptions"] = msgspec.json.encode(what.resources)
    return build(parts)


def acknowledged(id: bytes, what: Wanted) -> bytes:
    """The message that opens a subscription: `what` is honoured. `id` is the raw id of the listen request."""
    meta = build({eras.SUBSCRIPTION_ID: id})
    return envelope.notification(ACKNOWLEDGED, build({"_meta": meta, "notifications": asking_for(what)}))


def ended(id: bytes) -> bytes:
    """The response that ends a subscription in good order."""
    return envelope.result(id, build({"_meta": build({eras.SUBSCRIPTION_ID: id}), "resultType": b'"complete"'}))

"""What a call says to its server: the params of the client, with what earnest has a reason to change and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.gateway import lists, tasks
from earnest.protocol import asking, bridge, calls, envelope
from earnest.protocol.envelope import WireError

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay
    from earnest.upstream.base import Link

CONVERSATION_META: Final = "dev.earnest/conversation"


def params(relay: Relay, link: Link, id: int) -> bytes:
    """The params as the server gets them: what nobody has a reason to change goes on byte for byte."""
    crossing = link.hello.modern != relay.session.modern
    if not (relay.progress_token or relay.answered_form or crossing or CONVERSATION_META in relay.meta):
        return relay.params if relay.members is relay.given else canonical.build(relay.members)
    members = dict(relay.members)
    meta = dict(relay.meta)
    if relay.progress_token:
        meta["progressToken"] = b"%d" % id
    meta.pop(CONVERSATION_META, None)
    changed = relay.members is not relay.given
    if meta != relay.meta:
        members["_meta"] = canonical.build(meta)
        changed = True
    if relay.answered_form:
        changed = _without_own_asking(relay, members) or changed
    if crossing:
        if not link.hello.modern and tasks.required(relay.tool):
            members["task"] = b"{}"
        return bridge.params_to(link.hello.modern, relay.method, members, relay.session.client_facts())
    return canonical.build(members) if changed else relay.params


def check_headers(relay: Relay) -> None:
    """`Mcp-*` of the request against its body, with the headers that the tool's schema declares (MCP 2026-07-28); ends the call
    where they differ."""
    assert relay.tool is not None and relay.headers is not None
    try:
        declared = lists.declared(relay.tool)
        relay.forward = relay.headers.check(relay.method, relay.given, relay.session.version, declared, relay.request_id)
    except WireError as error:
        raw = envelope.error(relay.request_id, error.rpc_code, error.message, error.data)
        relay.finish(raw, "refused", error.message, status=error.http_status)
    except EarnestError as error:
        relay.unavailable(error, "refused")


def own_name(relay: Relay) -> dict[str, bytes]:
    """The members with the server's own name in place of the one it has on a route of several servers."""
    member = relay.method.names
    if member == "":
        return relay.members
    own = calls.string(relay.subject)
    if member == "ref":
        ref = calls.read_object(relay.members["ref"], "ref")
        key = "name" if calls.text(ref, "type") == "ref/prompt" else "uri"
        if calls.text(ref, key) != relay.subject:
            return {**relay.members, "ref": calls.with_member(relay.members["ref"], key, own)}
    elif calls.text(relay.members, member) != relay.subject:
        return {**relay.members, member: own}
    return relay.members


def _without_own_asking(relay: Relay, members: dict[str, bytes]) -> bool:
    """Take out what answered earnest's own ask; put back the state that belongs to the server."""
    members.pop("requestState", None)
    if relay.upstream_state:
        members["requestState"] = relay.upstream_state
    members.pop("inputResponses", None)
    answers = server_answers(relay)
    if answers:
        members["inputResponses"] = answers
    return True


def server_answers(relay: Relay) -> bytes:
    """The client's answers to the server's own questions, of this request and of the one before it; empty for none."""
    known = canonical.members(relay.upstream_answers) if relay.upstream_answers else {}
    given = relay.members.get("inputResponses", b"")
    if given[:1] == b"{":
        known |= {name: raw for name, raw in canonical.members(given).items() if name != asking.INPUT_KEY}
    return canonical.build(known) if known else b""

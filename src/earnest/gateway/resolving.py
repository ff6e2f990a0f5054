"""`tools/resolve`: the hints of one call before it is made (extension `io.modelcontextprotocol/tool-resolution`, draft of
2026-08-20).

earnest answers it itself, out of what the call would be judged by, so list, answer and decision are one catalog (law 4). It
asks nobody, keeps nothing and sets no label. A trusted server's own answer to it is asked for, with a short wait, before a
call is judged and before earnest answers: it may make the call riskier, and less risky only as the extension's bounds allow
and where nobody but the server spoke. Where it fails, all stays as listed.

Arguments are held against the tool's whole input schema (`protocol/input_schema.py`): hints of a call that no server would
take are no answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from earnest.core import arguments as reading
from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.hints import HINTS, RISKY, WIRE_NAMES
from earnest.core.profile import NOTHING, Labels, Profile
from earnest.gateway import lists
from earnest.gateway.outlet import Outlet
from earnest.gateway.served import Served
from earnest.pdp.catalog import Tool
from earnest.pdp.facts import Question
from earnest.protocol import bridge, calls, envelope, eras, resolution
from earnest.protocol.calls import string
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.methods import TOOL_RESOLUTION, Method, lookup
from earnest.upstream.base import Link
from earnest.upstream.waiter import Waiter

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay
    from earnest.gateway.session import Session

WAIT_S: Final = 2.0
"""Seconds that a server has for its own answer."""


async def answer(session: Session, message: Message, method: Method, outlet: Outlet) -> None:
    """Answer one `tools/resolve`. Raises `WireError`, E12xx."""
    if not resolution.declared(session.capabilities):
        if not session.modern:
            raise WireError(envelope.METHOD_NOT_FOUND, "the client did not declare io.modelcontextprotocol/tool-resolution")
        needs = b'{"requiredCapabilities":{"extensions":{%b:{}}}}' % string(TOOL_RESOLUTION)
        raise WireError(eras.MISSING_CAPABILITY, "tools/resolve needs its extension declared", data=needs, http_status=400)
    params = calls.read_params(message.params)
    subject = calls.subject(method, params)
    if params.get("arguments", b"")[:1] != b"{":
        raise WireError(envelope.INVALID_PARAMS, "tools/resolve needs the call's arguments, {} for none")
    arguments = calls.arguments(params)
    if session.route.kind != "server":
        await lists.find(session, method, subject)
    served, name = session.resolve(method, params)
    link = await session.gateway.prepare(session, served)
    shown = subject.name if subject is not None else name
    tool = served.server.tools.get(name)
    if tool is None or session.hidden(served, tool):
        raise WireError(envelope.INVALID_PARAMS, f"unknown tool {shown[:200]!r}", http_status=400)
    if not tool.resolvable:
        raise WireError(envelope.INVALID_PARAMS, f"{shown[:200]!r} has no hints of its own for each call", http_status=400)
    _check(arguments, tool)
    own = await of_server(session, tool, link, arguments)
    judged, profile = session.gateway.engine.resolved(_question(session, served, tool, arguments, own))
    if judged is not tool and session.hidden(served, judged):
        raise WireError(envelope.INVALID_PARAMS, f"what {shown[:200]!r} would run is not here", http_status=400)
    if not resolution.within(_hints(tool.profile), _hints(profile)):
        raise WireError(envelope.INTERNAL_ERROR, "this call is riskier than its tool is listed to be")
    members = {
        "name": string(shown),
        "annotations": msgspec.json.encode({wire: profile.get(hint).value for wire, hint in WIRE_NAMES.items()}),
        "_meta": msgspec.json.encode({lists.PROFILE_META: lists.told(profile)}),
    }
    if session.modern:
        members = {"resultType": b'"complete"', **members}
    outlet.finish(envelope.result(message.id, canonical.build(members)))


def begin(call: Relay, link: Link) -> bool:
    """Ask a call's trusted server for its own hints, if it has some; the call is judged again when they are there."""
    tool = call.tool
    if tool is None or not tool.asks_server:
        return False
    call.own = NOTHING
    if not resolution.declared(link.hello.capabilities):
        return False
    call.gateway.spawn(_begin_later(call, tool, link))
    return True


async def _begin_later(call: Relay, tool: Tool, link: Link) -> None:
    call.own = await of_server(call.session, tool, link, call.arguments) or NOTHING
    if not call.done:
        call.judge(link)


async def of_server(session: Session, tool: Tool, link: Link, arguments: bytes) -> Labels | None:
    """What a trusted server says of one call; `None` where it is not asked, and nothing where it fails. Never raises."""
    if not tool.asks_server or not resolution.declared(link.hello.capabilities):
        return None
    waiter = Waiter(asyncio.get_running_loop())
    try:
        exchange = link.call("tools/resolve", _params(session, link, tool.name, arguments), waiter)
        late = EarnestError("E1206", f"tools/resolve of {tool.name!r} was not answered within {WAIT_S:g} s")
        return read(tool, (await waiter.within(exchange, WAIT_S, late)).result)
    except (EarnestError, WireError):
        return NOTHING


def read(tool: Tool, result: bytes) -> Labels:
    """A server's answer as a statement about one call. One that breaks the extension's bounds lowers nothing; what it raises
    counts all the same."""
    try:
        seen = canonical.members(result)
        said = msgspec.json.decode(seen.get("annotations", b"null"))
        named = calls.text(seen, "name")
    except (EarnestError, WireError, msgspec.MsgspecError):
        return NOTHING
    whole = isinstance(said, dict) and named == tool.name and all(isinstance(said.get(wire), bool) for wire in WIRE_NAMES)
    if not whole or seen.get("resultType", b'"complete"') != b'"complete"':
        return NOTHING
    hints = {name: bool(said[wire]) for wire, name in WIRE_NAMES.items()}
    keeps = resolution.within(_claimed(tool), hints)
    stated = {name: value if keeps or value == RISKY[name] else None for name, value in hints.items()}
    return Labels(**stated, source="the server's tools/resolve")


def _hints(profile: Profile) -> dict[str, bool]:
    return {name: profile.get(name).value for name in HINTS}


def _claimed(tool: Tool) -> dict[str, bool]:
    """The server's own static hints, after the specification's defaults."""
    return {name: RISKY[name] if (said := tool.claims.get(name)) is None else said for name in HINTS}


def _params(session: Session, link: Link, name: str, arguments: bytes) -> bytes:
    """The request in the server's era; to a modern one earnest declares the extension for this request."""
    method = lookup("tools/resolve", "modern")
    assert method is not None
    facts = session.client_facts()
    facts = bridge.ClientFacts(resolution.with_extension(facts.capabilities), facts.info)
    return bridge.params_to(link.hello.modern, method, {"name": string(name), "arguments": arguments}, facts)


def _check(arguments: bytes, tool: Tool) -> None:
    """Raises `WireError` -32602 for arguments that cannot be those of a call."""
    from earnest.protocol.input_schema import complaint  # the validator is loaded by the few who ask

    try:
        given = reading.load(arguments)
        schema: Any = msgspec.json.decode(canonical.members(tool.definition).get("inputSchema", b"{}"))
    except (EarnestError, msgspec.MsgspecError):
        raise WireError(envelope.INVALID_PARAMS, "the arguments cannot be read") from None
    wrong = complaint(schema, given, len(arguments))
    if wrong:
        raise WireError(envelope.INVALID_PARAMS, f"the arguments do not fit the tool's schema: {wrong}")


def _question(session: Session, served: Served, tool: Tool, arguments: bytes, own: Labels | None) -> Question:
    client = session.client
    return Question(
        server=served.server,
        tool=tool,
        method="tools/call",
        subject=tool.name,
        arguments=arguments,
        client=client.name,
        client_asks=client.asks_person,
        ask_host=client.ask_host,
        principal=client.principal,
        key=client.key,
        cwd=served.cwd,
        overlay=client.overlay,
        own=own,
    )

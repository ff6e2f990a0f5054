"""Opening words: `initialize`, `server/discover`, `ping`, the log level.

On the route of one server its own hello goes on, with what earnest has a reason to change: the version that was agreed, the
instructions that are pinned. On routes of many servers earnest speaks for itself, at once: no server is waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.gateway.levels import LEVELS
from earnest.gateway.outlet import Outlet
from earnest.protocol import bridge, calls, envelope, eras, resolution
from earnest.protocol.calls import string
from earnest.protocol.envelope import Message, WireError
from earnest.upstream.base import Link
from earnest.upstream.opening import OWN_INFO

if TYPE_CHECKING:
    from earnest.gateway.served import Served
    from earnest.gateway.session import Session

UNAVAILABLE: Final = -31003
_MANY: Final = (
    b'{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{}}'
)
_MANY_INSTRUCTIONS: Final = "Tools of several servers, each under its server's name."


def answer(session: Session, message: Message, outlet: Outlet) -> None:
    """Answer a lifecycle request. Raises `WireError` for params that are none."""
    if message.method == "ping":
        outlet.finish(envelope.result(message.id, b"{}"))
    elif message.method == "initialize":
        _read_initialize(session, message)
        session.gateway.spawn(_answer_hello(session, message, outlet))
    elif message.method == "server/discover":
        session.gateway.spawn(_answer_hello(session, message, outlet))
    else:
        raise WireError(envelope.METHOD_NOT_FOUND, f"unknown method {message.method!r}", http_status=404)


def set_level(session: Session, message: Message, outlet: Outlet) -> None:
    """`logging/setLevel`: passed to legacy servers of the route that are open, said to modern ones with each call, and answered
    here. Raises `WireError` for what is no level."""
    level = calls.text(calls.read_params(message.params), "level")
    if level not in LEVELS:
        raise WireError(envelope.INVALID_PARAMS, f"unknown log level {level[:20]!r}")
    session.log_level = level
    for link in session.gateway.links_of(session):
        if not link.hello.modern and b'"logging"' in link.hello.capabilities:
            session.gateway.spawn(_pass_level(link, message.params))
    outlet.finish(envelope.result(message.id, b"{}"))


async def _pass_level(link: Link, params: bytes) -> None:
    try:
        await link.ask("logging/setLevel", params)
    except EarnestError:
        pass  # a level is a wish; a server that ignores it is no reason to fail anything


def _read_initialize(session: Session, message: Message) -> None:
    params = calls.read_params(message.params)
    wanted = calls.text(params, "protocolVersion")
    capabilities = params.get("capabilities", b"{}")
    if capabilities[:1] != b"{":
        raise WireError(envelope.INVALID_PARAMS, "capabilities must be an object")
    session.version = eras.agree(wanted)
    session.capabilities = capabilities
    info = params.get("clientInfo", b"")
    session.info = info if info[:1] == b"{" else OWN_INFO


async def _answer_hello(session: Session, message: Message, outlet: Outlet) -> None:
    if session.route.kind != "server":
        for served in session.servers():
            session.gateway.spawn(session.gateway.wake(session, served))
        outlet.finish(envelope.result(message.id, _many(session)))
        return
    servers = session.servers()
    try:
        if not servers:
            raise EarnestError("E1211", f"there is no server {session.route.name!r}", "See `earnest doctor`.")
        link = await session.gateway.prepare(session, servers[0])
    except EarnestError as error:
        text = session.gateway.scrub(f"{error.message}. {error.remedy}".strip())
        outlet.finish(envelope.error(message.id, UNAVAILABLE, text))
        return
    result = _modern_hello(link, servers[0]) if session.modern else _legacy_hello(session, link, servers[0])
    result = _advertised(session, result)
    instructions = servers[0].server.instructions
    if instructions:
        session.gateway.engine.flows.shown(session.client.key, servers[0].name, "instructions", string(instructions))
    outlet.finish(envelope.result(message.id, result))


def _many(session: Session) -> bytes:
    capabilities = resolution.advertised(session.capabilities, _MANY)
    if session.modern:
        return bridge.discover_result(capabilities, OWN_INFO, _MANY_INSTRUCTIONS)
    return bridge.initialize_result(session.version, capabilities, OWN_INFO, _MANY_INSTRUCTIONS)


def _advertised(session: Session, result: bytes) -> bytes:
    """A hello with what earnest itself answers to this client."""
    if not resolution.declared(session.capabilities):
        return result
    members = canonical.members(result)
    members["capabilities"] = resolution.advertised(session.capabilities, members.get("capabilities", b"{}"))
    return canonical.build(members)


def _instructed(members: dict[str, bytes], served: Served) -> None:
    """The pinned instructions in place of what the server says now, where they differ."""
    pinned = served.server.instructions
    if not pinned:
        members.pop("instructions", None)
    elif members.get("instructions") is None or calls.text(members, "instructions") != pinned:
        members["instructions"] = string(pinned)


def _modern_hello(link: Link, served: Served) -> bytes:
    hello = link.hello
    if hello.modern:
        members = {**canonical.members(hello.raw), "supportedVersions": bridge.SUPPORTED, **bridge.CACHE}
    else:
        capabilities = bridge.server_capabilities_to(True, hello.capabilities, bridge.Carries(logging=True, resources=True))
        members = canonical.members(bridge.discover_result(capabilities, hello.server_info or OWN_INFO, hello.instructions))
    _instructed(members, served)
    return canonical.build(members)


def _legacy_hello(session: Session, link: Link, served: Served) -> bytes:
    hello = link.hello
    if hello.modern:
        capabilities = bridge.server_capabilities_to(False, hello.capabilities, bridge.Carries(logging=True, resources=True))
        info = hello.server_info or b'{"name":%b,"version":"0"}' % string(served.name)
        members = canonical.members(bridge.initialize_result(session.version, capabilities, info, hello.instructions))
    else:
        members = canonical.members(hello.raw)
        session.version = hello.version
    _instructed(members, served)
    return canonical.build(members)

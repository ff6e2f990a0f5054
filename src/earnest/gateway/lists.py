"""Lists as a client sees them, the way back from a name to its server, and news of changes.

A list is a rendering of the catalog (law 4): the same entries that calls are judged by, with resolved hints in `annotations` so
that any client that honours hints honours checked ones. What a view hides is counted in `_meta`, with reasons and without
names, so that an empty list never passes for a server without tools.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from earnest.core import canonical
from earnest.core.decide import PinState
from earnest.core.errors import EarnestError
from earnest.core.hints import WIRE_NAMES
from earnest.core.profile import NAMES, Profile
from earnest.gateway.outlet import Outlet
from earnest.gateway.served import Served
from earnest.pdp.catalog import Tool
from earnest.protocol import bridge, calls, envelope, eras, headers, resolution, subscriptions
from earnest.protocol.calls import string
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.methods import Method
from earnest.protocol.subscriptions import LIST_CHANGES, Wanted
from earnest.upstream.opening import LISTS, pages

if TYPE_CHECKING:
    from earnest.gateway.session import Session
    from earnest.gateway.watches import Heard

PROFILE_META: Final = "dev.earnest/profile"
HIDDEN_META: Final = "dev.earnest/hidden"
PATIENCE_S: Final = 10.0
"""Seconds that a list of several servers waits for a slow one."""
_ALIAS_START: Final = 16
"""So many first characters of an alias are those of its server and name, hash or not."""
_HONOURED: Final = Wanted(tools=True, prompts=True, resource_list=True)
_NEEDS: Final = {
    "tools/list": b'"tools"',
    "prompts/list": b'"prompts"',
    "resources/list": b'"resources"',
    "resources/templates/list": b'"resources"',
}


def render(tool: Tool, alias: str) -> bytes:
    """A tool as it is served: its own bytes, the resolved hints, the basis and the original annotations in `_meta`."""
    members = canonical.members(tool.definition)
    if alias != tool.name:
        members["name"] = string(alias)
    old = members.get("annotations", b"null")
    annotations = canonical.members(old) if old[:1] == b"{" else {}
    for wire, name in WIRE_NAMES.items():
        annotations[wire] = b"true" if tool.profile.get(name).value else b"false"
    members["annotations"] = canonical.build(annotations)
    said = told(tool.profile)
    said["pin"] = tool.pin
    if tool.words.lane is not None:
        said["lane"] = tool.words.lane.value
    if tool.state is not PinState.HOLDS:
        said["pinState"] = tool.state.value
    if old != b"null":
        said["claimed"] = msgspec.Raw(old)
    meta = members.get("_meta", b"null")
    inner = canonical.members(meta) if meta[:1] == b"{" else {}
    inner[PROFILE_META] = msgspec.json.encode(said)
    members["_meta"] = canonical.build(inner)
    return canonical.build(members)


def told(profile: Profile) -> dict[str, object]:
    """A profile as clients are told it."""
    return {name: {"value": profile.get(name).value, "basis": profile.get(name).basis.value} for name in NAMES}


async def answer(session: Session, message: Message, method: Method, outlet: Outlet) -> None:
    """Answer a list request with all pages of all servers of the route in one. Raises `WireError`, E12xx."""
    params = calls.read_params(message.params)
    if params.get("cursor", b"null") != b"null":
        raise WireError(envelope.INVALID_PARAMS, "unknown cursor: lists come whole", http_status=eras.http_status(-32602))
    members = await (_tools(session) if message.method == "tools/list" else _others(session, message.method))
    if session.modern:
        members = {"resultType": b'"complete"', **members, **bridge.CACHE}
    outlet.finish(envelope.result(message.id, canonical.build(members)))


async def _tools(session: Session) -> dict[str, bytes]:
    single = session.route.kind == "server"
    hidden: Counter[str] = Counter()
    items: list[bytes] = []
    served_tools = await _ready(session, session.servers(), refresh=True, hidden=hidden)
    marks = resolution.declared(session.capabilities)
    aliases = None if single else session.gateway.names.tools(session)
    for served in served_tools:
        for tool in served.server.tools.values():
            if not tool.definition or (tool.state is PinState.UNSEEN and not tool.offered):
                hidden["not served: its definition cannot be read in one way"] += 1
                continue
            reason = session.hidden(served, tool)
            if reason:
                hidden[reason] += 1
                continue
            session.gateway.engine.flows.shown(session.client.key, served.name, tool.name, tool.definition)
            alias = tool.name if aliases is None else aliases.of[served.name, tool.name]
            raw = session.gateway.rendered(tool, alias)
            items.append(resolution.marked(raw, tool.resolvable) if marks else raw)
    members = {"tools": b"[%b]" % b",".join(items)}
    if hidden:
        members["_meta"] = canonical.build({HIDDEN_META: msgspec.json.encode(_counts(hidden))})
    return members


def _counts(hidden: Counter[str]) -> dict[str, object]:
    return {"count": sum(hidden.values()), "reasons": dict(hidden)}


async def _others(session: Session, method: str) -> dict[str, bytes]:
    """Prompts, resources and templates: the servers' own objects, names made unique where there are several servers."""
    single = session.route.kind == "server"
    hidden: Counter[str] = Counter()
    items: list[bytes] = []
    pending: list[tuple[Served, list[bytes]]] = []
    ready = await _ready(session, session.servers(), refresh=False, hidden=hidden)
    answers = await asyncio.gather(*(_pages(session, served, method) for served in ready), return_exceptions=True)
    for served, found in zip(ready, answers, strict=True):
        if isinstance(found, EarnestError) and not single:
            hidden[f"server {served.name} failed"] += 1
            session.missed.add(served.name)
        elif isinstance(found, BaseException):
            raise found
        elif single:
            items.extend(found)
        else:
            session.gateway.names.learn(session, served, method, found)
            pending.append((served, found))
    session.gateway.names.walked(session, method)
    for served, found in pending:
        items.extend(session.gateway.names.relabelled(session, served, method, item) for item in found)
    members = {LISTS[method]: b"[%b]" % b",".join(items)}
    if hidden:
        members["_meta"] = canonical.build({HIDDEN_META: msgspec.json.encode(_counts(hidden))})
    return members


async def _pages(session: Session, served: Served, method: str) -> list[bytes]:
    # Not `ready`: a server whose tools just changed has its resources and prompts as before.
    link = session.gateway.links.ready(session.gateway.owner_of(session, served))
    if link is None:
        raise EarnestError("E1204", f"{served.name} ended before it could be asked for {method}", "Ask again.", exit_code=3)
    if _NEEDS[method] not in link.hello.capabilities:
        return []
    patience = served.timeout if session.route.kind == "server" else min(PATIENCE_S, served.timeout)
    found = [item async for item in pages(link, method, timeout=patience)]
    served.server.note_listed(method, found)
    session.gateway.engine.flows.shown(session.client.key, served.name, method, b"[%b]" % b",".join(found))
    return found


async def find(session: Session, method: Method, subject: calls.Subject | None) -> None:
    """Have those lists walked that say whose a name is, on a route of several servers. Raises E12xx where the one server that
    could own it is not available; others that fail or hang hold nothing up."""
    if subject is not None and subject.kind == "tool":
        tools = session.gateway.names.tools(session)
        if subject.name not in tools.back:
            # An alias begins with its server's name, so only few can be meant.
            start = subject.name[:_ALIAS_START]
            unknown = [served for served in session.servers() if not served.server.listed]
            servers = [served for served in unknown if f"{served.name}__".startswith(start[: len(served.name) + 2])]
            outcomes = await asyncio.gather(*(session.gateway.prepare(session, s) for s in servers), return_exceptions=True)
            failures = [one for one in outcomes if isinstance(one, BaseException)]
            if failures and len(failures) == len(outcomes):
                raise failures[0]
    for wanted in session.gateway.names.needs(session, method):
        await _others(session, wanted)


async def _ready(session: Session, servers: list[Served], *, refresh: bool, hidden: Counter[str]) -> list[Served]:
    """The servers that can be reached, their tools walked. On a route of several, one that fails takes none of the others
    down, and one that is slow is left out after a while; the client hears when it is there."""
    if session.route.kind == "server":
        if not servers:
            raise EarnestError("E1211", f"there is no server {session.route.name!r}")
        await session.gateway.prepare(session, servers[0], refresh=refresh)
        return servers
    gateway = session.gateway
    tasks = {served: gateway.spawn(_prepared(session, served, refresh)) for served in servers}
    if tasks:
        await asyncio.wait(tasks.values(), timeout=PATIENCE_S)
    ready: list[Served] = []
    for served, task in tasks.items():
        if task.done() and task.result():
            ready.append(served)
            session.missed.discard(served.name)
        else:
            hidden[f"server {served.name} is not available" if task.done() else f"server {served.name} is not ready yet"] += 1
            session.missed.add(served.name)
    for name in gateway.catalogs_of(session.client).broken:
        if session.sees(name):
            hidden[f"server {name} is not available"] += 1
    return ready


async def _prepared(session: Session, served: Served, refresh: bool) -> bool:
    try:
        await session.gateway.prepare(session, served, refresh=refresh)
    except EarnestError as error:
        session.gateway.log(f"[{served.name}] {error}")
        return False
    if served.name in session.missed:
        session.missed.discard(served.name)
        for method in LIST_CHANGES:
            changed(session, method)
    return True


def declared(tool: Tool | None) -> tuple[headers.Declared, ...]:
    """The `Mcp-Param-*` headers that a tool declares. Raises E1330 where it does so wrongly."""
    if tool is None or not headers.may_declare(tool.definition):
        return ()
    return headers.declared(canonical.members(tool.definition).get("inputSchema", b"{}"))


def unfit(session: Session, served: Served, tool: Tool) -> str:
    """Why a tool cannot be served over HTTP, to this client or by its server; empty for nearly all."""
    if not headers.may_declare(tool.definition) or not (session.over_http or served.launch.url):
        return ""
    try:
        declared(tool)
    except EarnestError:
        return "not served over HTTP: its x-mcp-header is not valid"
    return ""


def locate(session: Session, method: Method, subject: calls.Subject | None) -> tuple[Served, str]:
    """The server and its own name for what a client named. Raises `WireError` where nothing is meant by it."""
    servers = session.servers()
    name = subject.name if subject is not None else ""
    if session.route.kind == "server":
        if not servers:
            raise WireError(envelope.INVALID_PARAMS, f"there is no server {session.route.name!r}")
        return servers[0], name
    pair = session.gateway.names.owner(session, method, subject.kind if subject is not None else "", name)
    if pair is not None:
        for served in servers:
            if served.name == pair[0]:
                return served, pair[1]
    raise WireError(envelope.INVALID_PARAMS, f"unknown {method.kind} {name[:200]!r}", http_status=400)


class Listening:
    """One `subscriptions/listen` stream of a modern client; `wanted` is what the client asked for and earnest honours."""

    def __init__(self, session: Session, id: bytes, outlet: Outlet, wanted: Wanted) -> None:
        self._session = session
        self._id = id
        self._outlet = outlet
        self._wanted = wanted
        self._open = False
        self.heard: Heard | None = None
        """What it hears of single resources (see `watches`)."""

    def acknowledge(self, resources: tuple[str, ...] = ()) -> None:
        """Say what is honoured, these resources too; nothing is told before."""
        self._wanted = msgspec.structs.replace(self._wanted, resources=resources)
        self._open = True
        self._outlet.send(subscriptions.acknowledged(self._id, self._wanted))

    def tell(self, method: str, params: bytes = b"{}", uri: str = "") -> None:
        """Pass one notification on, under this subscription's id. `uri`: of a resource that changed."""
        if self._open and self._wanted.hears(method, uri):
            self._outlet.send(envelope.notification(method, calls.with_meta(params or b"{}", eras.SUBSCRIPTION_ID, self._id)))

    def gone(self) -> None:
        """The client closed the stream."""
        self._leave()
        self._outlet.abandon()

    def end(self) -> None:
        """The client left, the daemon is about to, or what it hears of is gone."""
        self._leave()
        self._outlet.finish(subscriptions.ended(self._id))

    def _leave(self) -> None:
        heard, self.heard = self.heard, None
        if heard is not None:
            self._session.gateway.watches.close(heard)


def listen(session: Session, message: Message, outlet: Outlet, kept: bytes) -> None:
    """Open a subscription stream: acknowledge what is honoured, then tell. Raises `WireError`."""
    wanted = subscriptions.wanted(message.params)
    for served in session.servers():
        # Changes can only be heard from servers that are open.
        session.gateway.spawn(session.gateway.wake(session, served))
    listening = session.listening[kept] = Listening(session, message.id, outlet, wanted.only(_HONOURED))
    if not wanted.resources:
        listening.acknowledge()
    else:
        meta = calls.read_object(calls.read_params(message.params).get("_meta", b"{}"), "_meta")
        session.spawn(_listen_to(session, listening, kept, wanted.resources, meta), message, outlet)


async def _listen_to(
    session: Session, listening: Listening, kept: bytes, uris: tuple[str, ...], meta: Mapping[str, bytes]
) -> None:
    heard = await session.gateway.watches.open(session, listening, kept, uris, meta)
    if session.listening.get(kept) is not listening:
        session.gateway.watches.close(heard)  # the client went away meanwhile
        return
    listening.heard = heard
    listening.acknowledge(tuple(place.shown for place in heard.places))


def changed(session: Session, method: str) -> None:
    """Tell a session that a list changed, in the way of its era."""
    if session.modern:
        for listening in session.listening.values():
            listening.tell(method)
    elif session.ready:
        session.transport.notify(envelope.notification(method))

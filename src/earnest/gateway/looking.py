"""What the command line looks at: servers, their tools as resolved, what would be decided of a call, what trust would change.

Looking starts servers that do not run yet and decides nothing that lasts: no receipt, no label, no trust.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from earnest.config import overlay as overlays
from earnest.config.document import nearest
from earnest.core import pin
from earnest.core.decide import PinState
from earnest.core.errors import EarnestError
from earnest.core.flow import Causes, Key, names
from earnest.core.hints import HINTS, effective, raw_from_wire
from earnest.core.profile import NAMES, Labels, Profile, Trust
from earnest.core.scrub import scrubbed
from earnest.gateway import resolving
from earnest.gateway.client import Client, Route
from earnest.gateway.lanes import previewed, told
from earnest.gateway.served import Served
from earnest.gateway.session import Session
from earnest.pdp.catalog import Server, Tool
from earnest.pdp.facts import Judgement, Question
from earnest.protocol import methods
from earnest.protocol.methods import Method

if TYPE_CHECKING:
    from earnest.gateway.app import App
    from earnest.gateway.process.control import ControlPeer

INSTRUCTIONS_NAME = "(instructions)"
"""How a server's instructions are called where pins are listed."""


class _NoTransport:
    """The transport of a session that only looks."""

    def notify(self, message: bytes) -> None:
        pass

    def begin(self, id: bytes) -> None:
        pass


class Looking:
    """The operations that only look, and what the others need to find a server."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def op_tools(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """The tools of one server or of all, resolved; starts what is not running. `view`: which of them that view hides, and
        why. A server that fails is an entry with an `error`, unless it was named: then that is raised."""
        view = str(request.get("view") or "")
        if view and view not in self._app.gateway.views:
            known = sorted(self._app.world.settings.views)
            raise EarnestError("E1212", f"there is no view {view!r}", nearest(view, known) or "None is configured.")
        found: list[dict[str, Any]] = []
        for served, error in await self._open(request, peer):
            if error is not None and request.get("server"):
                raise error
            line = {**self._server_line(served.server), "contained": told(served.launch).strip()}
            if error is not None:
                found.append({"server": line, "tools": [], "error": _told_error(error, self._app.ctx.scrub, peer)})
                continue
            assayed = self._app.world.catalogs.assayed
            tools = [
                {
                    **self._tool(tool),
                    "hidden": self._hidden(served, tool, view),
                    "assayed": {one["hint"]: one["verdict"] for one in assayed(served.server, tool) if one["holds"]},
                }
                for tool in served.server.tools.values()
            ]
            found.append({"server": line, "tools": tools})
        if not request.get("server"):
            for name, broken in self._app.world.catalogs.broken.items():
                found.append({"server": {"name": name}, "tools": [], "error": _told_error(broken, self._app.ctx.scrub, peer)})
        return found

    def _hidden(self, served: Served, tool: Tool, view: str) -> str:
        if tool.state is PinState.REFUSED and not tool.definition:
            return "its definition can be read in two ways"
        return self._app.gateway.views.hidden(Route("view", view) if view else Route("all"), served.server, tool)

    def _server_line(self, server: Server) -> dict[str, Any]:
        return {
            "name": server.name,
            "identity": server.identity,
            "display": server.display,
            "trust": server.trust.value,
            "trust_source": server.trust_source,
            "tools": len(server.tools),
            "listed": server.listed,
        }

    def _tool(self, tool: Tool) -> dict[str, Any]:
        means = effective(tool.claims)
        return {
            "name": tool.name,
            "title": self._app.ctx.scrub(tool.title) if tool.title else tool.title,
            "raw": {name: tool.claims.get(name) for name in HINTS},
            "effective": {name: getattr(means, name) for name in HINTS},
            "malformed": list(tool.claims.malformed),
            "profile": told_profile(tool.profile),
            "lane": tool.words.lane.value if tool.words.lane is not None else "",
            "pin": tool.pin,
            "pin_state": tool.state.value,
            "description": self._app.ctx.scrub(_description(tool.definition)),
        }

    # finding servers

    async def _look(self, request: dict[str, Any], peer: ControlPeer) -> list[Served]:
        """Servers named (or all), opened and walked. One that fails raises if it was named, and is left out if not."""
        found: list[Served] = []
        for served, error in await self._open(request, peer):
            if error is None:
                found.append(served)
            elif request.get("server"):
                raise error
        return found

    async def _one(self, request: dict[str, Any], peer: ControlPeer, *, must_run: bool = True) -> Served:
        """The one server meant; one that fails raises, unless it need not run. Raises E1612 where several go by that name:
        nothing is changed by guessing."""
        ready = await self._look(request, peer) if must_run else [served for served, _ in await self._open(request, peer)]
        found = {served.server.identity: served for served in reversed(ready)}
        if len(found) > 1:
            lines = "\n".join(f"--identity {key}   {served.server.display}" for key, served in found.items())
            raise EarnestError("E1612", f"{len(found)} servers go by the name {request['server']!r}", f"Say which:\n{lines}")
        return next(iter(found.values()))

    async def _open(self, request: dict[str, Any], peer: ControlPeer) -> list[tuple[Served, EarnestError | None]]:
        session = self._session(peer)
        try:
            servers = self._meant(request, session, peer)
            outcomes = await asyncio.gather(
                *(self._opened(session, served, bool(request.get("refresh"))) for served in servers), return_exceptions=True
            )
        finally:
            self._app.gateway.forget(session)
        found: list[tuple[Served, EarnestError | None]] = []
        for served, outcome in zip(servers, outcomes, strict=True):
            if outcome is not None and not isinstance(outcome, EarnestError):
                raise outcome
            found.append((served, outcome))
        return found

    async def _opened(self, session: Session, served: Served, refresh: bool) -> None:
        if not served.server.listed or refresh:
            await self._app.gateway.prepare(session, served, refresh=True)

    def _meant(self, request: dict[str, Any], session: Session, peer: ControlPeer) -> list[Served]:
        """The servers a request means. `command`: a server that is only known by its command, as `earnest stdio` would start
        it, in `env` and `cwd` where those are not the caller's own; `identity`: which of several of one name."""
        name = request.get("server")
        servers = session.servers()
        if not name:
            return servers
        catalogs = self._app.gateway.catalogs_of(session.client)
        if request.get("command"):
            env: dict[str, str] | None = request.get("env")
            words = [str(word) for word in request["command"]]
            return [catalogs.own(str(name), words, peer.env if env is None else env, str(request.get("cwd") or peer.cwd))]
        servers = [s for s in servers if s.name == name] or catalogs.by_name(name)
        if request.get("identity"):
            servers = [s for s in servers if s.server.identity == request["identity"]]
        if servers:
            return servers
        broken = catalogs.broken.get(name)
        if broken is not None:
            raise broken
        raise self._no_server(str(name), peer)

    def _no_server(self, name: str, peer: ControlPeer) -> EarnestError:
        app = self._app
        found = overlays.overlay(os.path.join(peer.cwd or "/", overlays.FILE_NAME), app.env)
        if found is not None and any(pending.name == name for pending in found.pending):
            return overlays.pending_error(found, name)
        stored = [row for row in app.store.servers() if row.name == name]
        if stored:
            return EarnestError(
                "E1213",
                f"{name!r} is a server that a client brings, and it does not run now",
                f"Start that client, or give the command it starts: … {name} -- COMMAND …\n"
                f"It was last seen as: {msgspec.json.decode(stored[-1].launch)}",
            )
        known = sorted({*app.world.settings.servers, *(row.name for row in app.store.servers())})
        return EarnestError(
            "E1211",
            f"there is no server {name!r} in {app.ctx.config}",
            nearest(name, known) or "None is configured; `earnest init` finds those of your clients.",
        )

    def _session(self, peer: ControlPeer) -> Session:
        user = f"user:{peer.uid}"
        client = Client("earnest", user, (user, f"terminal:{peer.pid}"), overlay=self._overlay(peer))
        return Session(self._app.gateway, client, Route("all"), _NoTransport(), id=self._app.new_id("s"), modern=True)

    def _overlay(self, peer: ControlPeer) -> str:
        """What tightens here: a folder's file counts for what is looked at in that folder."""
        return self._app.world_at(peer.cwd)[1] if peer.cwd else ""

    def _named_tool(self, server: Server, name: str) -> Tool:
        """A tool the server lists, or a method that was judged like one. Raises E1607 with the nearest name."""
        tool = server.tools.get(name) or server.methods.get(name)
        if tool is None:
            hint = nearest(name, sorted(server.tools)) or "It lists no tools."
            raise EarnestError("E1607", f"{server.name} has no tool {name!r}", hint)
        return tool

    # explaining

    async def op_explain(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """What would be decided of a call, and why; nothing is recorded and nothing runs. Without a conversation: in a fresh
        one of this user."""
        app = self._app
        method = _method(str(request.get("method") or "tools/call"))
        served = await self._one(request, peer)
        server = served.server
        subject = str(request["tool"])
        tool = self._named_tool(server, subject) if method.kind == "tool" else server.method(method.name, method.claims)
        settings = app.world.settings.client(str(request.get("client") or ""))
        arguments = str(request.get("arguments") or "{}").encode()
        own = await self._own_hints(served, tool, arguments, peer)
        with self._conversation(request.get("conversation"), peer) as key:
            judged = app.engine.judge(
                Question(
                    server=server,
                    tool=tool,
                    method=method.name,
                    subject=subject,
                    arguments=arguments,
                    client=settings.name,
                    client_asks=settings.asks_person,
                    ask_host=settings.ask_host,
                    principal=f"user:{peer.uid}",
                    key=key,
                    cwd=served.cwd,
                    overlay=self._overlay(peer),
                    own=own,
                )
            )
            causes = app.conversations.causes(key)
        said = {
            **_told_judgement(judged),
            "mode": app.engine.policy.policy.mode.value,
            "profile": told_profile(judged.profile),
            "resolved": told_profile(tool.profile),
            "claims": {name: tool.claims.get(name) for name in HINTS},
            "malformed": list(tool.claims.malformed),
            "server": self._server_line(server),
            "lane": judged.lane.value if judged.lane is not None else "",
            "contained": told(served.launch).strip(),
            "previewed": previewed(served.launch.grants, judged.lane),
            "tool": tool.name,
            "method": method.name,
            "pin": tool.pin,
            "pin_state": tool.state.value,
            "pin_changes": pin.render(tool.difference) if tool.difference is not None else [],
            "evidence": app.world.catalogs.assayed(server, tool),
            "conversation": str(request.get("conversation") or ""),
            "labels": list(names(judged.labels_before)),
            "causes": told_causes({bit: known for bit, known in causes.items() if bit & judged.labels_before}),
        }
        return scrubbed(said, app.ctx.scrub)

    async def _own_hints(self, served: Served, tool: Tool, arguments: bytes, peer: ControlPeer) -> Labels | None:
        """What a trusted server itself says of one call, as it would be asked before that call."""
        if not tool.asks_server:
            return None
        gateway = self._app.gateway
        session = self._session(peer)
        try:
            return await resolving.of_server(session, tool, await gateway.prepare(session, served), arguments)
        finally:
            gateway.forget(session)

    @contextmanager
    def _conversation(self, text: Any, peer: ControlPeer) -> Iterator[Key]:
        """The key of a conversation named, or of a fresh one that is forgotten again."""
        if text:
            yield self._key(text, peer)
            return
        key = (f"user:{peer.uid}", self._app.new_id("look"))
        self._app.conversations.open(key, minted=True)
        try:
            yield key
        finally:
            self._app.conversations.end(key)

    def _key(self, text: Any, peer: ControlPeer) -> Key:
        key = tuple(str(text).split("/"))
        if key not in self._app.conversations:
            raise EarnestError("E1606", f"there is no conversation {text!r}", "`earnest conversation list` shows them.")
        return key

    # what trust would mean

    async def op_trust_preview(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """All that is trusted where a server is: its exact command, package, version, artefact, every tool with claims and
        offered pin, and, for `trust` given, what would be decided of a call with no arguments before and after; `decided`: the
        same for every trust there is."""
        # Believing a server less must work also when it does not.
        less = request.get("trust") == Trust.UNTRUSTED.value
        served = await self._one({**request, "refresh": True}, peer, must_run=not less)
        server = served.server
        catalogs = self._app.gateway.overlays.get(self._overlay(peer), self._app.gateway.catalogs)
        identity = catalogs.identity(server)
        settings = self._app.world.settings.servers.get(server.name)
        wanted = request.get("trust")
        before = self._decided(served, server, peer)
        after = before
        scrub = self._app.ctx.scrub
        if wanted:
            trust = Trust(wanted)
            after = self._decided(served, server.supposing(trust, accepted=trust is not Trust.UNTRUSTED), peer)
        tools = [
            {
                **self._tool(tool),
                "claimed": {hint: raw_from_wire(_annotations(tool.offered)).get(hint) for hint in HINTS},
                "offered_pin": _offered_pin(tool),
                "changes": scrubbed(pin.render(tool.difference), scrub) if tool.difference is not None else [],
                "before": before[tool.name],
                "after": after[tool.name],
            }
            for tool in server.tools.values()
        ]
        return {
            "server": {
                **self._server_line(server),
                **(msgspec.to_builtins(identity) if identity is not None else {}),
                "display": server.display,
                "cwd": served.cwd if not served.launch.url else None,
                "environment": sorted(settings.env) if settings is not None else [],
                "headers": sorted(settings.headers) if settings is not None else [],
            },
            "instructions": scrub(server.instructions_pending or server.instructions),
            "decided": {
                trust.value: self._decided(served, server.supposing(trust, accepted=trust is not Trust.UNTRUSTED), peer)
                for trust in Trust
            },
            "tools": tools,
            "pins": offered_pins(server),
        }

    def _decided(self, served: Served, server: Server, peer: ControlPeer) -> dict[str, str]:
        """For each tool, what would be decided of a call with no arguments by an unnamed client in a fresh conversation."""
        found: dict[str, str] = {}
        settings = self._app.world.settings.client("")
        with self._conversation(None, peer) as key:
            for tool in server.tools.values():
                question = Question(
                    server=server,
                    tool=tool,
                    method="tools/call",
                    subject=tool.name,
                    arguments=b"{}",
                    client="",
                    client_asks=settings.asks_person,
                    ask_host=settings.ask_host,
                    principal=f"user:{peer.uid}",
                    key=key,
                    cwd=served.cwd,
                    overlay=self._overlay(peer),
                )
                found[tool.name] = self._app.engine.judge(question).verdict.word
        return found


def offered_pins(server: Server) -> dict[str, str]:
    """The pins of what a server offers now, by tool, and of its instructions: what a person is shown and answers to."""
    found = {tool.name: _offered_pin(tool) for tool in server.tools.values()}
    found[INSTRUCTIONS_NAME] = pin.text_pin(server.instructions_pending or server.instructions)
    return found


def check_shown(server: Server, shown: Any, only: Sequence[str] | None = None) -> None:
    """Raises E1605 if what a person was shown (`offered_pins`) is no longer what the server offers."""
    if shown is None:
        return
    now = offered_pins(server)
    if any(now.get(name) != shown.get(name) for name in only or {*now, *shown}):
        message = "the server's tools changed while they were being shown"
        raise EarnestError("E1605", message, "Run the command again.", exit_code=1)


def told_profile(profile: Profile) -> dict[str, dict[str, Any]]:
    """The seven values, each with basis and source."""
    return {
        name: {"value": value.value, "basis": value.basis.value, "source": value.source}
        for name in NAMES
        for value in (profile.get(name),)
    }


def told_causes(causes: Mapping[int, Causes]) -> dict[str, Any]:
    """What set each label of a conversation: the first calls that did, and how many more."""
    return {
        names(bit)[0]: {"first": [msgspec.structs.asdict(cause) for cause in known.first], "more": known.more}
        for bit, known in causes.items()
    }


def _told_judgement(judged: Judgement) -> dict[str, Any]:
    return {
        "decision": judged.verdict.word,
        "reasons": [{"rule": r.rule, "text": r.text, "verdict": r.verdict.word} for r in judged.reasons],
        "remedies": [{"text": r.text, "command": r.command} for r in judged.remedies],
        "judged_as": judged.judged_as,
        "policy_sha256": judged.policy_sha256,
    }


def _method(name: str) -> Method:
    found = methods.lookup(name, "modern") or methods.lookup(name, "legacy")
    if found is None or not found.request:
        known = sorted({row.name for row in methods.METHODS if row.request and row.sender == "client"})
        raise EarnestError("E1031", f"{name!r} is no method a client calls", nearest(name, known))
    return found


def _offered_pin(tool: Tool) -> str:
    return "" if tool.state is PinState.REFUSED else pin.pin(tool.offered)


def _annotations(definition: bytes) -> object:
    try:
        return msgspec.json.decode(definition, type=dict[str, Any]).get("annotations")
    except msgspec.MsgspecError:
        return None


def _description(definition: bytes) -> str:
    try:
        value = msgspec.json.decode(definition, type=dict[str, Any]).get("description", "")
    except msgspec.MsgspecError:
        return ""
    return value if isinstance(value, str) else ""


def _told_error(error: EarnestError, scrub: Callable[[str], str], peer: ControlPeer) -> dict[str, str]:
    """What a server said goes to persons alone."""
    message = error.message if peer.by_model else error.told
    return {"code": error.code, "message": scrub(message), "remedy": scrub(error.remedy)}

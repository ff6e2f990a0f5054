"""What the command line asks of the daemon.

Reading operations answer anyone of the same user. Those that raise trust, write a label, accept a pin, answer an ask or endorse
(law 9) are a person's: the command line runs them only at a terminal, and the daemon refuses them to anything that descends
from a connected client or from a server of its own, because then a model may have typed it.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from earnest.config.document import nearest
from earnest.core import canonical, pin
from earnest.core.decide import PinState
from earnest.core.errors import EarnestError
from earnest.core.flow import Key, names
from earnest.core.profile import NAMES, NOTHING, Labels, Trust
from earnest.gateway.looking import INSTRUCTIONS_NAME, Looking, check_shown, offered_pins
from earnest.pdp.catalog import INSTRUCTIONS, SavedPin, Server
from earnest.pdp.engine import steering_digest
from earnest.pdp.persist import CallValues, KeptPins, key_text
from earnest.store.base import Approval, OperatorLabel
from earnest.store.base import Endorsement as EndorsementRow

if TYPE_CHECKING:
    from earnest.gateway.app import App
    from earnest.gateway.process.application import Op
    from earnest.gateway.process.control import ControlPeer


def operations(app: App) -> Mapping[str, Op]:
    """All operations, by name."""
    ops = Operations(app)

    def lent(operation: Op) -> Op:
        async def run(request: dict[str, Any], peer: ControlPeer) -> Any:
            app.offer_env(peer.env, person=not peer.by_model)
            return await operation(request, peer)

        return run

    return {name[3:].replace("_", "-"): lent(getattr(ops, name)) for name in dir(ops) if name.startswith("op_")}


def _person(peer: ControlPeer, what: str) -> None:
    if peer.by_model:
        raise EarnestError(
            "E1604",
            f"{what} takes a person at a terminal of their own; this command was started from inside an MCP client or server",
            "Run it in a terminal that no MCP client has started.",
            exit_code=1,
        )


class Operations(Looking):
    """One method for each operation: `op_NAME(request, peer)`."""

    # looking

    async def op_status(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """What runs."""
        app = self._app
        return {
            "config": app.ctx.config,
            "config_sha256": app.world.settings.sha256,
            "instance": app.ctx.instance,
            "preset": app.world.settings.preset,
            "policy_sha256": app.engine.policy.sha256,
            "address": f"http://{app.listener.address[0]}:{app.listener.address[1]}" if app.listener is not None else "",
            "clients": sorted({s.client.name for s in app.gateway.sessions}),
            "sessions": len(app.gateway.sessions),
            "calls": len(app.gateway.relays),
            "waiting": len(app.approvals.listed()),
            "servers": [self._server_line(s.server) for s in app.world.catalogs.served()],
            "broken": {name: str(error) for name, error in app.world.catalogs.broken.items()},
            "views": sorted(app.world.settings.views),
            "receipts": {"writer": app.receipts.writer, "records": app.receipts.seq, "head": app.receipts.head},
            "receipts_problem": str(app.receipts.problem) if app.receipts.problem is not None else "",
        }

    # trust

    async def op_trust(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Set a server's trust; what its tools show now becomes what was shown."""
        _person(peer, "changing trust")
        app = self._app
        trust = Trust(request["trust"])
        server = (await self._one(request, peer, must_run=trust is not Trust.UNTRUSTED)).server
        before = server.trust
        check_shown(server, request.get("pins"))
        if trust is not Trust.UNTRUSTED:
            self._accept(server, list(server.tools))
        app.world.catalogs.set_trust(server.identity, trust)
        for other in app.gateway.overlays.values():
            other.set_trust(server.identity, trust)
        receipt = app.records.event(
            "trust",
            f"{server.name} went from {before.value} to {trust.value}",
            principal=f"user:{peer.uid}",
            server=server.name,
            identity=server.identity,
        )
        app.gateway.resolved_again()
        return {"server": self._server_line(server), "receipt": receipt}

    def _accept(self, server: Server, tools: list[str], *, instructions: bool = True) -> list[str]:
        """Take the definitions offered now as seen; the names of those that are."""
        app = self._app
        book = KeptPins(app.store)
        now = app.wall()
        taken: list[SavedPin] = []
        for name in tools:
            tool = server.tools.get(name)
            if tool is None or tool.state is PinState.REFUSED:
                continue
            taken.append(SavedPin(name, pin.pin(tool.offered), tool.offered, b"", now))
        if instructions and server.instructions_pending:
            text = server.instructions_pending
            taken.append(SavedPin(INSTRUCTIONS, pin.text_pin(text), text.encode(), b"", now))
        book.save_pins(server.identity, taken)
        self._compare(server.identity)
        return [INSTRUCTIONS_NAME if saved.tool == INSTRUCTIONS else saved.tool for saved in taken]

    def _compare(self, identity: str) -> None:
        app = self._app
        for catalogs in (app.world.catalogs, *app.gateway.overlays.values()):
            catalogs.compare_again(identity)

    # labels

    async def op_labels(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """All operator labels, of the store and of the file."""
        app = self._app
        rows = app.store.operator_labels()
        book = KeptPins(app.store)
        pins = {identity: {p.tool: p.pin for p in book.pins(identity)} for identity in {row.identity for row in rows}}
        by_identity = {row.identity: row.name for row in app.store.servers()}
        return [
            {
                "server": by_identity.get(row.identity, row.identity),
                "tool": row.tool,
                "labels": _said(msgspec.json.decode(row.labels, type=Labels)),
                "pin": row.pin,
                "holds": row.pin in ("", pins[row.identity].get(row.tool)),
                "source": "store",
            }
            for row in rows
        ] + [
            {
                "server": found.server,
                "tool": found.tool,
                "labels": _said(found.labels),
                "pin": found.pin,
                "source": found.source,
            }
            for found in app.world.settings.labels
        ]

    async def op_label(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Say something of a tool as the operator, for its present pin; values that are null take a statement back."""
        _person(peer, "writing a label")
        app = self._app
        server = (await self._one(request, peer)).server
        name = str(request["tool"])
        tool = self._named_tool(server, name)
        row = app.store.operator_label(server.identity, name)
        old = msgspec.json.decode(row.labels, type=Labels) if row is not None and row.pin == tool.pin else NOTHING
        said = {n: v for n in NAMES if (v := old.get(n)) is not None}
        for label, value in dict(request["values"]).items():
            if label not in NAMES:
                raise EarnestError("E1607", f"{label!r} is no label", nearest(label, NAMES))
            if value is None:
                said.pop(label, None)
            else:
                said[label] = bool(value)
        labels = Labels(**said, source=f"operator label for {server.name}/{name}")
        if said:
            app.store.put_operator_label(
                OperatorLabel(server.identity, name, tool.pin, msgspec.json.encode(labels).decode(), labels.source, app.wall())
            )
        else:
            app.store.drop_operator_label(server.identity, name)
        receipt = app.records.event(
            "label",
            f"{server.name}/{name} is now labelled {_said(labels) or 'with nothing'}",
            principal=f"user:{peer.uid}",
            server=server.name,
            tool=name,
            pin=tool.pin,
        )
        self._resolve(server.identity)
        return {"labels": _said(labels), "pin": tool.pin, "receipt": receipt, "tool": self._tool(tool)}

    def _resolve(self, identity: str) -> None:
        app = self._app
        for catalogs in (app.world.catalogs, *app.gateway.overlays.values()):
            catalogs.resolve_again(identity)
        app.gateway.resolved_again()

    # pins

    async def op_pins(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Pins of one server or of all, with what waits for a person."""
        found = []
        for served in await self._look(request, peer):
            server = served.server
            offered = offered_pins(server)
            for tool in server.tools.values():
                found.append(
                    {
                        "server": server.name,
                        "tool": tool.name,
                        "pin": tool.pin,
                        "state": tool.state.value,
                        "changes": pin.render(tool.difference) if tool.difference is not None else [],
                        "offered": tool.offered.decode() if tool.state is PinState.UNSEEN else "",
                        "offered_pin": offered[tool.name],
                    }
                )
            if server.instructions_pending:
                changed = pin.text_difference(server.instructions, server.instructions_pending)
                found.append(
                    {
                        "server": server.name,
                        "tool": INSTRUCTIONS_NAME,
                        "pin": pin.text_pin(server.instructions),
                        "state": "loosened",
                        "changes": pin.render(changed),
                        "offered": "",
                        "offered_pin": offered[INSTRUCTIONS_NAME],
                    }
                )
        return found

    async def op_pins_accept(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Accept what is offered now, for the tools named or all that wait."""
        _person(peer, "accepting a pin")
        app = self._app
        server = (await self._one(request, peer)).server
        named = [str(name) for name in request.get("tools") or ()]
        waiting = [t.name for t in server.tools.values() if t.state in (PinState.LOOSENED, PinState.UNSEEN)]
        tools = [name for name in named if name != INSTRUCTIONS_NAME] if named else waiting
        for name in tools:
            if self._named_tool(server, name).is_method:
                raise EarnestError("E1607", f"{name} is a method; only tools and instructions have pins")
            if server.tools[name].state is PinState.REFUSED:
                raise EarnestError("E1602", f"{server.name}/{name} has two schemas that differ; it cannot be accepted")
        instructions = not named or INSTRUCTIONS_NAME in named
        check_shown(server, request.get("pins"), [*tools, *([INSTRUCTIONS_NAME] if instructions else [])])
        taken = self._accept(server, tools, instructions=instructions)
        receipt = app.records.event(
            "pins-accepted",
            f"definitions of {server.name} accepted: {', '.join(taken) or 'none'}",
            principal=f"user:{peer.uid}",
            server=server.name,
        )
        app.gateway.resolved_again()
        return {"accepted": taken, "receipt": receipt}

    async def op_noise(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Mark text inside paths as noise for pins of a server."""
        _person(peer, "marking noise")
        app = self._app
        served = await self._one(request, peer)
        pattern = str(request["pattern"])
        pin.text_difference("", "/x", (pattern,))  # refuses a pattern that is none
        app.store.add_noise(served.server.identity, pattern, app.wall())
        self._compare(served.server.identity)
        receipt = app.records.event("noise", f"paths like {pattern} count as noise for {served.name}", server=served.name)
        app.gateway.resolved_again()
        return {"receipt": receipt}

    # approvals

    async def op_approvals(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """What waits for a person, or all that is kept."""
        return [_approval(row) for row in self._app.approvals.listed(bool(request.get("all")))]

    async def op_approvals_watch(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """What waits, and then each new ask as it comes."""
        app = self._app
        queue: asyncio.Queue[Approval] = asyncio.Queue()
        app.gateway.on_asked.add(queue.put_nowait)
        try:
            for row in app.approvals.listed():
                await peer.reply(_approval(row))
            while True:
                await peer.reply(_approval(await queue.get()))
        finally:
            app.gateway.on_asked.discard(queue.put_nowait)

    async def op_approve(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Answer an ask: once, no, or for this conversation with these destinations."""
        _person(peer, "answering an ask")
        app = self._app
        row = app.approvals.get(str(request["id"]))
        if row is None:
            raise EarnestError("E1608", f"there is no ask {request['id']!r}", "`earnest approvals` lists what waits.")
        answer = str(request["answer"])
        if answer not in ("once", "no", "conversation"):
            raise EarnestError("E1608", f"{answer!r} is no answer", "Answer once, no or conversation.")
        by = f"user:{peer.uid}"
        receipt = ""
        if answer == "conversation" and row.state == "pending":
            receipt = self._endorse_ask(row, by)
        valid = app.world.settings.asking.valid_s
        if not app.approvals.decide(row.id, answer != "no", channel="terminal", valid_s=valid, by=by):
            now = app.approvals.get(row.id)
            raise EarnestError(
                "E1609",
                f"the ask {row.id} is {now.state if now is not None else 'gone'} already; the answer changes nothing",
                exit_code=1,
            )
        return {"id": row.id, "answer": answer, "receipt": receipt}

    def _endorse_ask(self, row: Approval, by: str) -> str:
        prompt = msgspec.json.decode(row.prompt)
        key = tuple(prompt["conversation"])
        values = steering_digest(prompt["arguments"].encode(), frozenset(prompt["content_arguments"]))
        bound = CallValues(
            prompt["identity"],
            prompt["tool"],
            prompt["pin"],
            values,
            _steering_text(prompt["arguments"], prompt["content_arguments"]),
        )
        return self._endorse(key, bound, prompt["server"], by)

    def _endorse(self, key: Key, bound: CallValues, server: str, by: str) -> str:
        app = self._app
        receipt = app.records.event(
            "endorsement",
            f"{server}/{bound.tool} with {bound.text} is endorsed for this conversation",
            principal=by,
            server=server,
            tool=bound.tool,
            conversation=key,
        )
        row = EndorsementRow(
            id=app.new_id("e"),
            conversation=key_text(key),
            kind="call",
            values=msgspec.json.encode(bound).decode(),
            created=app.wall(),
            receipt=receipt,
        )
        app.endorsements.add(row)
        return receipt

    # conversations

    async def op_conversations(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """All known conversations, with what set their labels."""
        app = self._app
        found = []
        for line in app.conversations.list():
            key: Key = tuple(cast(list[str], line["key"]))
            causes = app.conversations.causes(key)
            found.append(
                {
                    **line,
                    "name": "/".join(key),
                    "causes": {
                        names(bit)[0]: {
                            "first": [msgspec.structs.asdict(cause) for cause in known.first],
                            "more": known.more,
                        }
                        for bit, known in causes.items()
                    },
                    "endorsements": [
                        {"id": row.id, "receipt": row.receipt, **msgspec.json.decode(row.values)}
                        for row in app.endorsements.listed(key)
                    ],
                }
            )
        return found

    async def op_conversation_end(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """A person says that a conversation is over: its labels go."""
        _person(peer, "ending a conversation")
        app = self._app
        key = self._key(request["conversation"], peer)
        labels = names(app.conversations.labels(key))
        receipt = app.records.event(
            "conversation-ended",
            f"labels {', '.join(labels) or '(none)'} of {'/'.join(key)} end by a person's word",
            principal=f"user:{peer.uid}",
            conversation=key,
        )
        gone = app.conversations.end(key, {session.client.key for session in app.gateway.sessions})
        app.endorsements.end(gone)
        return {"ended": ["/".join(k) for k in gone], "receipt": receipt}

    async def op_conversation_endorse(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """A standing yes for one tool with given steering values, in one conversation."""
        _person(peer, "endorsing")
        key = self._key(request["conversation"], peer)
        served = (await self._look({"server": request["server"]}, peer))[0]
        tool = served.server.tools.get(str(request["tool"]))
        if tool is None:
            raise EarnestError("E1607", f"{served.name} has no tool {request['tool']!r}")
        arguments = str(request["arguments"])
        canonical.canonical(arguments.encode())
        text = _steering_text(arguments, sorted(tool.takes_text))
        bound = CallValues(
            served.server.identity, tool.name, tool.pin, steering_digest(arguments.encode(), tool.takes_text), text
        )
        receipt = self._endorse(key, bound, served.name, f"user:{peer.uid}")
        return {"receipt": receipt, "values": text}

    # life

    async def op_listen(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Serve HTTP; the address."""
        address = await self._app.listen(request.get("host"), request.get("port"))
        return {"address": address, "token_file": f"{self._app.ctx.instance}/token"}

    async def op_unlisten(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Stop serving HTTP, unless another command line holds it; what is left that uses the daemon."""
        app = self._app
        if not app.waiting_ops:
            await app.unlisten()
        return {"holders": app.waiting_ops, "clients": len(app.fronts), "listening": app.listener is not None}

    async def op_hold(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Keep the daemon for as long as the caller is connected, and tell what is asked meanwhile."""
        app = self._app
        app.waiting_ops += 1
        try:
            await self.op_approvals_watch(request, peer)
        finally:
            app.waiting_ops -= 1

    async def op_token(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """The token of a named HTTP client, made where it has none: `token` itself, if one is given."""
        _person(peer, "giving out a token")  # a client's name carries what the operator said of it
        return {"token": self._app.tokens.make(str(request["client"]), str(request.get("token") or ""))}

    async def op_reload(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Read the configuration again."""
        world = self._app.reload()
        return {"policy_sha256": world.policy.sha256, "servers": list(world.settings.servers)}

    async def op_approve_config(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """A person read a working directory's file and takes it as their own."""
        _person(peer, "approving a configuration")
        app = self._app
        app.store.approve_config(str(request["path"]), str(request["sha256"]), app.wall())
        receipt = app.records.event("config-approved", f"{request['path']} approved", sha256=str(request["sha256"]))
        return {"receipt": receipt}

    async def op_checkpoint(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Write what is buffered and sign the head of the receipts."""
        app = self._app
        app.records.flush()
        app.payloads.flush()
        app.receipts.checkpoint()
        return {"seq": app.receipts.seq, "head": app.receipts.head}


def _said(labels: Labels) -> dict[str, bool]:
    return {name: value for name in NAMES if (value := labels.get(name)) is not None}


def _approval(row: Approval) -> dict[str, Any]:
    return {
        "id": row.id,
        "state": row.state,
        "created": row.created,
        "decided": row.decided,
        "expires": row.expires,
        "channel": row.channel,
        "by": row.by,
        **msgspec.json.decode(row.prompt, type=dict[str, Any]),
    }


def _steering_text(arguments: str, content: list[str]) -> str:
    """The values an endorsement is bound to, for a person."""
    members = canonical.members(arguments.encode() or b"{}")
    words = [f"{name}={shlex.quote(raw.decode())}" for name, raw in members.items() if name not in content]
    return " ".join(words) or "no arguments that steer it"

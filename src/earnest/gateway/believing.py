"""What a person believes of servers: their trust, labels of their tools, the definitions accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from earnest.config.document import nearest
from earnest.core import pin
from earnest.core.decide import PinState
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES, NOTHING, Labels, Trust
from earnest.gateway.looking import INSTRUCTIONS_NAME, Looking, check_shown, offered_pins
from earnest.gateway.person import person
from earnest.pdp.catalog import INSTRUCTIONS, SavedPin, Server
from earnest.pdp.persist import KeptPins
from earnest.store.base import OperatorLabel

if TYPE_CHECKING:
    from earnest.gateway.process.control import ControlPeer


class Believing(Looking):
    """The operations about trust, labels and pins."""

    # trust

    async def op_trust(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Set a server's trust; what its tools show now becomes what was shown."""
        person(peer, "changing trust")
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
        person(peer, "writing a label")
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
        person(peer, "accepting a pin")
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
        person(peer, "marking noise")
        app = self._app
        served = await self._one(request, peer)
        pattern = str(request["pattern"])
        pin.text_difference("", "/x", (pattern,))  # refuses a pattern that is none
        app.store.add_noise(served.server.identity, pattern, app.wall())
        self._compare(served.server.identity)
        receipt = app.records.event("noise", f"paths like {pattern} count as noise for {served.name}", server=served.name)
        app.gateway.resolved_again()
        return {"receipt": receipt}


def _said(labels: Labels) -> dict[str, bool]:
    return {name: value for name in NAMES if (value := labels.get(name)) is not None}

"""Keeping what an assay has shown, by the command line's wish: what raises from anyone, what lowers from a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.hints import HINTS
from earnest.gateway.looking import Looking
from earnest.gateway.person import person
from earnest.store.base import Evidence

if TYPE_CHECKING:
    from earnest.gateway.process.control import ControlPeer
    from earnest.pdp.catalog import Tool

MOST_TOOLS = 2000


class Evidencing(Looking):
    """The operation that keeps what an assay has shown."""

    async def op_assay_keep(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Keep what an assay showed of a server's tools. Violations anyone may add, since they only raise; support, and
        taking a
        violation back, lower, and so take a person (`support`)."""
        supporting = bool(request.get("support"))
        if supporting:
            person(peer, "keeping evidence that speaks for a server")
        app = self._app
        server = (await self._one(request, peer)).server
        artefact, start = app.world.catalogs.start(server)
        if supporting and (not artefact or artefact != request.get("artefact")):
            raise EarnestError(
                "E1958",
                f"what was assayed is not what {server.name} starts now, or it cannot be known what that is",
                "Assay it again; servers at an address, and programs whose package is not installed, get no support.",
            )
        kept: dict[str, dict[str, str]] = {}
        for told_tool in list(request["tools"])[:MOST_TOOLS]:
            tool = server.tools.get(str(told_tool["name"]))
            if tool is not None:
                rows = self._rows(server.identity, tool, told_tool, artefact, start, supporting, str(request.get("tier", "")))
                kept[tool.name] = {row.hint: row.verdict for row in rows}
                with app.store.transaction():
                    for row in rows:
                        app.store.put_evidence(row)
        count = sum(map(len, kept.values()))
        receipt = app.records.event(
            "assay",
            f"evidence about {server.name}: {count} findings kept" + (", support among them" if supporting else ""),
            principal=f"user:{peer.uid}",
            server=server.name,
            identity=server.identity,
        )
        for catalogs in (app.world.catalogs, *app.gateway.overlays.values()):
            catalogs.resolve_again(server.identity)
        app.gateway.resolved_again()
        return {"kept": {name: hints for name, hints in kept.items() if hints}, "receipt": receipt}

    def _rows(
        self, identity: str, tool: Tool, said: dict[str, Any], artefact: str, start: str, supporting: bool, tier: str
    ) -> list[Evidence]:
        app = self._app
        seen_pin = str(said.get("pin", ""))
        found: list[Evidence] = []
        hints = {hint: one for hint, one in dict(said["hints"]).items() if hint in HINTS}
        supported = {hint for hint, one in hints.items() if one["verdict"] == "supported"}
        if supporting and supported:
            # A violation that was assayed again and did not come again is taken back; others stay.
            kept = [
                row
                for row in app.store.evidence(identity, tool.name)
                if not (row.verdict == "violated" and row.hint in supported and seen_pin == tool.pin)
            ]
            with app.store.transaction():
                app.store.drop_evidence(identity, tool.name)
                for row in kept:
                    app.store.put_evidence(row)
        for hint, one in hints.items():
            verdict = str(one["verdict"])
            if verdict == "supported" and (not supporting or seen_pin != tool.pin):
                continue
            if verdict not in ("violated", "supported"):
                continue
            detail = {
                "reason": str(one.get("reason", ""))[:2000],
                "tier": tier,
                "calls": int(said.get("calls", 0)),
                "start": start,
            }
            text = msgspec.json.encode(detail).decode()
            found.append(Evidence(identity, tool.name, hint, seen_pin, artefact, verdict, text, app.wall()))
        return found

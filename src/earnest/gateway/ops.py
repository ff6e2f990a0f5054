"""What the command line asks of the daemon: the table of operations, and those about the daemon itself.

Reading operations answer anyone of the same user; `person.py` says which are a person's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from earnest.gateway.answering import Answering
from earnest.gateway.believing import Believing
from earnest.gateway.evidencing import Evidencing
from earnest.gateway.person import person
from earnest.gateway.undoing import Undoing
from earnest.store.anchor import loss_of

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


class Operations(Believing, Answering, Evidencing, Undoing):
    """One method for each operation: `op_NAME(request, peer)`."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._holders: list[int] = []
        """The process of each command line that holds the daemon."""

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
            "calls": app.gateway.under_way,
            "compiled": app.gateway.layer is not None,
            "waiting": len(app.approvals.listed()),
            "servers": [self._server_line(s.server) for s in app.world.catalogs.served()],
            "broken": {name: str(error) for name, error in app.world.catalogs.broken.items()},
            "views": sorted(app.world.settings.views),
            "receipts": {"writer": app.receipts.writer, "records": app.receipts.seq, "head": app.receipts.head},
            "receipts_problem": str(app.receipts.problem) if app.receipts.problem is not None else "",
            "store_lost": loss.text if (loss := loss_of(app.store)) is not None else "",
        }

    async def op_listen(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Serve HTTP; the address."""
        address = await self._app.listen(request.get("host"), request.get("port"))
        return {"address": address, "token_file": f"{self._app.ctx.instance}/token"}

    async def op_unlisten(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Stop serving HTTP, unless another command line holds it; what is left that uses the daemon. Whoever asks is
        leaving: the end of its own hold may be noticed only later."""
        app = self._app
        others = sum(pid != peer.pid for pid in self._holders)
        if not others:
            await app.unlisten()
        return {"holders": others, "clients": len(app.fronts), "listening": app.listener is not None}

    async def op_hold(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Keep the daemon for as long as the caller is connected, and tell what is asked meanwhile."""
        app = self._app
        app.waiting_ops += 1
        self._holders.append(peer.pid)
        try:
            await self.op_approvals_watch(request, peer)
        finally:
            self._holders.remove(peer.pid)
            app.waiting_ops -= 1

    async def op_token(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """The token of a named HTTP client, made where it has none: `token` itself, if one is given."""
        person(peer, "giving out a token")  # a client's name carries what the operator said of it
        return {"token": self._app.tokens.make(str(request["client"]), str(request.get("token") or ""))}

    async def op_reload(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Read the configuration again."""
        world = self._app.reload()
        return {"policy_sha256": world.policy.sha256, "servers": list(world.settings.servers)}

    async def op_approve_config(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """A person read a working directory's file and takes it as their own."""
        person(peer, "approving a configuration")
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

"""Taking back what a call changed: a person's word, at a terminal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from earnest.core.errors import EarnestError
from earnest.gateway.person import person

if TYPE_CHECKING:
    from earnest.gateway.app import App
    from earnest.gateway.process.control import ControlPeer


class Undoing:
    """The operation about undos."""

    _app: App

    async def op_undo(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Put back what a call's commit changed. Raises E1841 with the paths where something was changed since, E1845 and E1846
        where there is nothing to undo; then nothing changes. On record before it is done, and again if it fails after all."""
        person(peer, "undoing a call")
        app, id = self._app, str(request["id"])
        done = await asyncio.to_thread(app.undos.undo, id, look_only=True)
        meta, paths = done.meta, [item.shown for item in done.items]
        about = f"{meta.server}/{meta.tool} of {id}"
        receipt = app.records.event(
            "undo",
            f"what {about} changed is put back: {', '.join(paths[:5])}{' …' if len(paths) > 5 else ''}",
            principal=f"user:{peer.uid}",
            server=meta.server,
            tool=meta.tool,
            conversation=meta.conversation,
            undone=id,
        )
        app.waiting_ops += 1
        try:
            await asyncio.to_thread(app.undos.undo, id)
        except EarnestError as error:
            app.records.event("undo-failed", f"what {about} changed was not put back: {error.message}", undone=id)
            raise
        finally:
            app.waiting_ops -= 1
        return {"id": id, "receipt": receipt, "paths": paths}

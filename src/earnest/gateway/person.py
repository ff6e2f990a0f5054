"""What is a person's alone (law 9): to raise trust, write a label, accept a pin, answer an ask, endorse.

The command line runs these only at a terminal, and the daemon refuses them to anything that descends from a connected client or
from a server of its own, because then a model may have typed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earnest.core.errors import EarnestError

if TYPE_CHECKING:
    from earnest.gateway.process.control import ControlPeer


def person(peer: ControlPeer, what: str) -> None:
    """Raises E1604 if a model may be behind this command; `what` is how the message calls what it does."""
    if peer.by_model:
        raise EarnestError(
            "E1604",
            f"{what} takes a person at a terminal of their own; this command was started from inside an MCP client or server",
            "Run it in a terminal that no MCP client has started.",
            exit_code=1,
        )

"""What a connection needs of its listener."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from earnest.net.limits import ServerLimits
from earnest.net.message import Head, Request
from earnest.net.responder import Responder
from earnest.net.tracks import Known

if TYPE_CHECKING:
    from earnest.net._tracks import Trip
    from earnest.net.connection import Connection

Handler = Callable[[Request, Responder], None]


class Home(Protocol):
    """What a connection needs of its listener."""

    loop: asyncio.AbstractEventLoop
    limits: ServerLimits
    handler: Handler
    connections: set[Connection]
    heads: dict[bytes, Head]
    begin: Callable[[Known, bytes, Connection], Trip | None] | None
    closing: bool

    def report(self, what: str, error: Exception) -> None: ...
    def connection_closed(self) -> None: ...

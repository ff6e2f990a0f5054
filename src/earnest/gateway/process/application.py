"""The seam between the daemon as a process and what it does: the process knows descriptors, the application
MCP."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from earnest.core.scrub import Scrubber

if TYPE_CHECKING:
    from earnest.gateway.process.control import ControlPeer
    from earnest.gateway.process.handover import StdioPeer
    from earnest.gateway.process.hook_peer import HookPeer
    from earnest.gateway.process.reap import Children

Op = Callable[[dict[str, Any], "ControlPeer"], Awaitable[Any]]
"""One operation of the command line: takes the request, returns the last answer; more by
`ControlPeer.reply`."""


class DaemonContext(msgspec.Struct, frozen=True):
    """What the process tells the application it builds.

    `named` says that the configuration was named by its operator. `children` wants to know each upstream
    process. `stop(reason)` ends the daemon in good order. `scrub` takes out of the log and of
    what the command line is told whatever secrets the application gives it. The environment of clients comes with each peer,
    never from here. `hosts()` are the programs that clients came from, present and past, and our servers, by (pid, start).
    `umask` is that of whoever started the daemon, for servers of clients that tell none.
    """

    instance: str
    config: str
    named: bool
    log: logging.Logger
    children: "Children"
    stop: Callable[[str], None]
    scrub: Scrubber = msgspec.field(default_factory=Scrubber)
    hosts: Callable[[], frozenset[tuple[int, int]]] = frozenset
    umask: int = 0o022


class Application(Protocol):
    """What `earnest.gateway.app.build(DaemonContext)` returns.

    `build` and `start` may raise `EarnestError`: the waiting shims end with its text and exit code.
    """

    idle_s: float
    """Seconds without a client and not `busy()` after which the daemon ends; 900 unless configured."""

    @property
    def ops(self) -> Mapping[str, Op]:
        """The operations for the command line; `ping` and `stop` are the process's own."""

    async def start(self) -> None:
        """Everything that must be ready before the first client is served."""

    def on_stdio(self, peer: "StdioPeer") -> None:
        """A client came, or came back. Set the peer's callbacks before returning; reading starts then."""

    def on_hook(self, peer: "HookPeer") -> None:
        """A hook asks; answer with `peer.finish`, in a task."""

    def busy(self) -> bool:
        """Whether ending now would lose something: a listener of `serve`, a call, a child, a held ask."""

    async def stop(self) -> None:
        """Ends children and flushes; clients are still connected."""

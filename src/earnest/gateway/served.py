"""A server as the gateway serves it: the catalog's entry, how it is reached, and how long a call may take."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from earnest.core.lanes import Lane
from earnest.pdp.catalog import Server


class Grants(msgspec.Struct, frozen=True):
    """What a contained server may reach (`config.containing`), as paths of this machine. `env`: names of variables that every
    lane gets; `secrets` those that only some get."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    env: frozenset[str] = frozenset()
    secrets: Mapping[str, frozenset[str]] = {}
    one_lane: bool = False
    list_lane: Lane = Lane.OBSERVE
    tier: str = ""
    preview: bool = False
    undo: bool = False


class Launch(msgspec.Struct, frozen=True):
    """How a server is reached: a command with its environment and folder, or a URL with headers. Secrets are resolved here,
    so it is never shown, logged or kept."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    ca: str = ""
    client_cert: str = ""
    client_key: str = ""
    secrets: frozenset[str] = frozenset()
    """Of all these the values that must not be written down where calls are kept."""
    grants: Grants | None = None
    """Where it is contained: what it is granted."""


class Served:
    """One server for the sessions that use it. `shared`: one link for all of them."""

    __slots__ = ("launch", "name", "server", "shared", "timeout")

    def __init__(self, name: str, server: Server, launch: Launch, *, timeout: float, shared: bool) -> None:
        self.name = name
        self.server = server
        self.launch = launch
        self.timeout = timeout
        self.shared = shared

    @property
    def list_lane(self) -> Lane | None:
        """The lane that is asked for lists and all that is no tool call; None where the server is not contained."""
        grants = self.launch.grants
        return grants.list_lane if grants is not None else None

    @property
    def cwd(self) -> str | None:
        """The folder the server runs in, for arguments that are relative paths."""
        return self.launch.cwd

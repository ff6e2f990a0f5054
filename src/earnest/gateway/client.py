"""Who calls: what earnest knows of a client itself, apart from what the client says."""

from __future__ import annotations

import msgspec

from earnest.core.flow import Key


class Client(msgspec.Struct, frozen=True):
    """One client of one principal.

    `name`: from `--client` or the token, never from `clientInfo`. `key`: the narrowest conversation key that is known without
    looking at a request. `asks_person`: the operator marked it as putting in-band questions to a person. `ask_host`: asks of
    preset and user rules are left to it. `below`: another client's host, or a server of ours, started it; then whatever name it
    gives, it is no person's and neither of the two is true.
    """

    name: str
    principal: str
    key: Key
    asks_person: bool = False
    ask_host: bool = False
    overlay: str = ""
    """The folder whose `earnest.toml` tightens this client's calls; empty for none."""
    below: bool = False
    umask: int | None = None
    """Of the process it came by, where that is known; servers that are started for it make their files by it."""


class Route(msgspec.Struct, frozen=True):
    """What of the gateway a client looks at: one server under its own names, all servers, or a view of them."""

    kind: str
    """`server`, `all` or `view`."""
    name: str = ""
    read_only: bool = False
    """The request narrowed itself to read-only tools (`X-MCP-Readonly: true`)."""

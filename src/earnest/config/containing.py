"""`contain` of a server in earnest.toml: true, false, or a table of what the server is granted."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from earnest.config.reading import Table
from earnest.config.variables import Template
from earnest.core.lanes import LANES, Lane

_TIERS: Final = ("", "A", "B", "C")
_LISTING: Final = tuple(LANES)
_SECRETS: Final = (*LANES, Lane.PREVIEW)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST: Final = re.compile(r"(?:(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


class Containment(msgspec.Struct, frozen=True):
    """What a contained server is granted; all of it empty: nothing but its own program and a scratch.

    `read`: folders and files that all lanes may read. `write`: those that act may change and the others read. `hosts` for net
    and act: `name`, `*.name` or an address, with `:port` where it is neither 80 nor 443. `secrets`: which variables each lane
    gets that hold secrets. `env`: variables of a client's own that all lanes get. `one_lane`: one process for all calls, for
    servers with their state in memory; then nothing is enforced. `list_lane` is asked for the server's lists and all that is no
    tool call. `tier`: A, B or C; empty for the best that works. `preview`: an asked call that acts is run over a copy first,
    so that a person sees what it changes."""

    read: tuple[Template, ...] = ()
    write: tuple[Template, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: dict[str, tuple[str, ...]] = {}
    env: tuple[str, ...] = ()
    one_lane: bool = False
    list_lane: Lane = Lane.OBSERVE
    tier: str = ""
    preview: bool = True


def containment(table: Table) -> Containment | bool | None:
    """Read `contain` of a `[servers.NAME]`; None where it is not there. Raises E1003 to E1005."""
    node = table.node.get("contain")
    if node is None or node.kind != "object":
        said = table.maybe("contain")
        return Containment() if said else said
    inner = table.table("contain")
    assert inner is not None
    hosts = inner.texts("hosts")
    for host in hosts:
        if not _HOST.fullmatch(host):
            inner.fail("hosts", "E1005", f'{inner.path("hosts")}: "{host}" is no host', 'write "name", "*.name" or "name:port"')
    one_lane = inner.flag("one_lane", False)
    listing = inner.choice("list_lane", _LISTING, Lane.ACT if one_lane else Lane.OBSERVE)
    if one_lane and listing != Lane.ACT:
        inner.fail("list_lane", "E1005", f"{inner.path('list_lane')} means nothing in one lane", "remove one of the two")
    preview = inner.flag("preview", not one_lane)
    if one_lane and preview:
        inner.fail("preview", "E1005", f"{inner.path('preview')} means nothing in one lane", "remove one of the two")
    found = Containment(
        read=inner.templates("read"),
        write=inner.templates("write"),
        hosts=hosts,
        secrets=_secrets(inner),
        env=_names(inner, "env"),
        one_lane=one_lane,
        list_lane=Lane(listing),
        tier=inner.choice("tier", _TIERS, ""),
        preview=preview,
    )
    inner.finish()
    return found


def _secrets(table: Table) -> dict[str, tuple[str, ...]]:
    inner = table.table("secrets")
    if inner is None:
        return {}
    found = {lane.value: names for lane in _SECRETS if (names := _names(inner, lane))}
    inner.finish()
    return found


def _names(table: Table, key: str) -> tuple[str, ...]:
    names = table.texts(key)
    for name in names:
        if not _NAME.fullmatch(name):
            table.fail(key, "E1005", f'{table.path(key)}: "{name}" cannot name a variable')
    return names

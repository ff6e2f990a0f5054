"""What earnest calls the servers it finds: one name for one server, whichever clients have it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from earnest.config.clients.dialect import Entry


def slug(name: str) -> str:
    """A client's name for a server as one that earnest takes: lower case, `-` for everything else."""
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")[:48].rstrip("-_")
    return plain or "server"


def signature(entry: Entry) -> tuple[str, ...]:
    """What makes two entries the same server: its address, or its command and arguments as written."""
    return ("url", entry.url) if entry.kind == "http" else ("command", *entry.argv)


def assign(entries: Sequence[Entry], taken: Mapping[str, tuple[str, ...] | None] | None = None) -> tuple[str, ...]:
    """A name for each entry, in order. The same server has the same name in every client; another server of
    the same name gets a number. Wrapped entries keep the name they have, and names in `taken`
    (earnest.toml) go to nobody."""
    used: dict[str, tuple[str, ...] | None] = dict(taken or {})
    for entry in entries:
        if entry.wrapped:
            used.setdefault(entry.wrapped, signature(entry) if entry.kind == "stdio" else None)
    names = []
    for entry in entries:
        if entry.wrapped:
            names.append(entry.wrapped)
            continue
        base = name = slug(entry.name)
        number = 1
        while name in used and used[name] != signature(entry):
            number += 1
            name = f"{base}-{number}"
        used[name] = signature(entry)
        names.append(name)
    return tuple(names)

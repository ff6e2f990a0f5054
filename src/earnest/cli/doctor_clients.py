"""What `earnest doctor` says of MCP clients: which were found, what of them goes through earnest, and what cannot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from earnest.cli.doctor_checks import RUNNERS, Found, Place
from earnest.config.clients.dialect import Dialect, Entry, entries, find, read
from earnest.config.clients.registry import CLIENTS, over_limit, uncovered
from earnest.core.errors import EarnestError
from earnest.store.sqlite import open_store


def clients(at: Place, counts: Mapping[str, int], platform: str) -> Iterator[Found]:
    """`counts`: tools of the configured servers, by name; those of others are known from the store."""
    home = at.env.get("HOME") or os.path.expanduser("~")
    known = {**_seen(at), **counts}
    some = False
    for dialect in CLIENTS:
        servers: list[Entry] = []
        for path in find(dialect, home, at.env, platform):
            some = True
            try:
                servers += entries(dialect, read(dialect, path))
            except EarnestError as error:
                yield Found(dialect.name, "problem", f"{error.code}: {error.message}", error.remedy)
        yield from _client(dialect, servers, known, at.env)
    if not some:
        yield Found("clients", "ok", "no client's configuration was found")
    for item in uncovered(home, at.env, platform):
        text = f"{item.name} does not go through earnest: {item.why} ({item.path})"
        yield Found(item.client, "note", text, "Turn it off there and configure the server by its command instead.")


def _client(dialect: Dialect, servers: list[Entry], known: Mapping[str, int], env: Mapping[str, str]) -> Iterator[Found]:
    wrapped = [entry for entry in servers if entry.wrapped]
    if wrapped:
        names = ", ".join(entry.name for entry in wrapped)
        yield Found(dialect.name, "ok", f"through earnest: {names}")
    for entry in servers:
        if entry.disabled:
            continue
        if entry.kind == "stdio" and not _there(entry.command, env):
            remedy = "Install it, or correct the path there; then `earnest init` puts earnest before it."
            remedy = "`earnest init` writes it anew." if entry.wrapped else remedy
            yield Found(dialect.name, "problem", f"{entry.name}: there is no {entry.command} ({entry.file.path})", remedy)
            continue
        if entry.wrapped and entry.kind == "stdio" and entry.argv and not _there(entry.argv[0], env):
            remedy = RUNNERS.get(entry.argv[0], "Install it: earnest starts it for the client.")
            yield Found(dialect.name, "problem", f"{entry.name}: there is no {entry.argv[0]} on the PATH", remedy)
        if not entry.wrapped:
            why = f": {entry.leave}" if entry.leave else ""
            remedy = "" if entry.leave else "`earnest init` puts earnest before it."
            yield Found(dialect.name, "note", f"{entry.name} does not go through earnest{why} ({entry.file.path})", remedy)
    total = sum(known.get(entry.wrapped, 0) for entry in wrapped if not entry.disabled)
    limit = over_limit(dialect, total)
    if limit:
        yield Found(dialect.name, "problem", limit, "See docs/clients.md for what a client offers its model.")


def _there(command: str, env: Mapping[str, str]) -> bool:
    if "${" in command:
        return True  # the client's own variable: only the client knows
    return shutil.which(os.path.expanduser(command), path=env.get("PATH", "")) is not None


def _seen(at: Place) -> dict[str, int]:
    """Tools of each server that the store knows, by the name it goes by."""
    path = os.path.join(at.instance, "store.db")
    if not os.path.exists(path):
        return {}
    try:
        store = open_store(path, read_only=True)
    except EarnestError:
        return {}  # told by the check of the store
    try:
        return {row.name: len(store.pins(row.identity)) for row in store.servers()}
    finally:
        store.close()

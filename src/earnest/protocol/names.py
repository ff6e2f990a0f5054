"""Names on aggregated routes: aliases for tools and prompts, and a router for resources.

Theory. Clients accept `[A-Za-z0-9_-]{1,64}`, their own prefix included. An alias is a function of its own
server and name alone, so it stays what it was when other servers come, go or change places. `server__tool` is
used where it can be read in one way only: no `__` inside the server, no `_` at the seam, nothing to replace,
short enough, and no hash at its end. Everything else ends in `-x` and hexadecimal digits of SHA-256 over
server and name. The two forms cannot meet, and two hashes that do are made longer together. The way back is a
table, never a split.

A resource keeps its URI while only one server has it. A URI of several servers, or one in our own reserved
form, is served as `earnest://resource/SERVER/URI`, which any reader may also use to say which server is
meant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from earnest.core.errors import EarnestError

MAX_NAME: Final = 64
"""Longest name that clients accept, prefix included."""

RESERVED: Final = "earnest://resource/"

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+\Z")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")
_HASHED: Final = re.compile(r".*-x[0-9a-f]{10,}\Z")
_DIGITS: Final = 10
_LEAST: Final = 20


class Aliases(msgspec.Struct, frozen=True):
    """A table of aliases: `of[(server, name)]` is the alias, `back[alias]` the original pair."""

    of: Mapping[tuple[str, str], str]
    back: Mapping[str, tuple[str, str]]


def client_prefix(server: str) -> str:
    """What a client commonly puts before each tool of a server it calls `server`."""
    return f"mcp__{server}__"


def aliases(pairs: Iterable[tuple[str, str]], prefix: str = "") -> Aliases:
    """Aliases for (server, name) pairs; `prefix` is what the client itself adds, whose length counts.

    The order of `pairs` has no influence. Raises `EarnestError` E1702 where the prefix leaves too little
    room.
    """
    room = MAX_NAME - len(prefix)
    if room < _LEAST:
        raise EarnestError(
            "E1702",
            f"the client's prefix {prefix!r} leaves {room} of {MAX_NAME} characters for names",
            "Give earnest a shorter name in the client's configuration.",
        )
    of: dict[tuple[str, str], str] = {}
    hashed: list[tuple[str, str]] = []
    for pair in set(pairs):
        natural = _natural(*pair)
        if natural is not None and len(natural) <= room:
            of[pair] = natural
        else:
            hashed.append(pair)
    digits = _DIGITS
    while hashed:
        groups: dict[str, list[tuple[str, str]]] = {}
        for pair in hashed:
            groups.setdefault(_hashed(*pair, room, digits), []).append(pair)
        hashed = []
        for alias, group in groups.items():
            if len(group) == 1:
                of[group[0]] = alias
            else:
                hashed.extend(group)
        digits += 4
        if digits > room - 3:
            raise EarnestError("E1702", "two names cannot be told apart in the room that clients leave")
    return Aliases(of, {alias: pair for pair, alias in of.items()})


def _natural(server: str, name: str) -> str | None:
    if not _PLAIN.match(server) or not _PLAIN.match(name):
        return None
    if "__" in server or server.endswith("_") or name.startswith("_"):
        return None
    natural = f"{server}__{name}"
    return None if _HASHED.match(natural) else natural


def _hashed(server: str, name: str, room: int, digits: int) -> str:
    # The length stands before the name, so that no two pairs hash the same text.
    digest = hashlib.sha256(f"{len(server)}:{server}{name}".encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    readable = _OTHER.sub("_", f"{server}__{name}")[: room - digits - 2]
    return f"{readable}-x{digest}"


class Route(msgspec.Struct, frozen=True):
    """Where a resource is read: the server and the URI as that server knows it."""

    server: str
    uri: str


class Resources(msgspec.Struct, frozen=True):
    """Router for resources of several servers. Build it with `resources`."""

    servers: frozenset[str]
    owners: Mapping[str, frozenset[str]]
    templates: tuple[tuple[str, str, re.Pattern[str]], ...]

    def served(self, server: str, uri: str) -> str:
        """The URI (or URI template) under which one server's resource is listed."""
        if len(self.owners.get(uri, frozenset((server,)))) > 1 or uri.startswith(RESERVED):
            return f"{RESERVED}{server}/{uri}"
        return uri

    def route(self, uri: str) -> Route | None:
        """The one server a URI belongs to; `None` where that is nobody or cannot be said.

        Exact URIs come before templates. Where templates of several servers match, none is guessed: such a
        URI must be given in the reserved form.
        """
        if uri.startswith(RESERVED):
            server, slash, original = uri[len(RESERVED) :].partition("/")
            return Route(server, original) if slash and original and server in self.servers else None
        owners = self.owners.get(uri)
        if owners is None:
            owners = frozenset(server for server, _, pattern in self.templates if pattern.match(uri))
        if len(owners) != 1:
            return None
        return Route(next(iter(owners)), uri)


def resources(servers: Iterable[str], uris: Iterable[tuple[str, str]], templates: Iterable[tuple[str, str]]) -> Resources:
    """A router from (server, uri) and (server, uriTemplate) pairs; their order has no influence.

    Raises `EarnestError` E1003 for a server name with `/`, which the reserved form could not hold.
    """
    names = frozenset(servers)
    for name in names:
        if "/" in name or not name:
            raise EarnestError("E1006", f"server name {name!r} must not be empty or hold '/'")
    owners: dict[str, set[str]] = {}
    for server, uri in uris:
        owners.setdefault(uri, set()).add(server)
    patterns: list[tuple[str, str, re.Pattern[str]]] = []
    for server, template in sorted(set(templates)):
        owners.setdefault(template, set()).add(server)
        patterns.append((server, template, _pattern(template)))
    return Resources(names, {uri: frozenset(who) for uri, who in owners.items()}, tuple(patterns))


_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)[^{}]*\}")


def _pattern(template: str) -> re.Pattern[str]:
    """A pattern that matches what a URI template (RFC 6570) can become; simple expressions stay in one
    segment."""
    parts: list[str] = []
    at = 0
    for found in _EXPRESSION.finditer(template):
        parts.append(re.escape(template[at : found.start()]))
        parts.append("[^/?#]*" if found[1] == "" else ".*")
        at = found.end()
    parts.append(re.escape(template[at:]))
    return re.compile("".join(parts) + r"\Z", re.DOTALL)

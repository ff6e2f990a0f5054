"""Who may talk to a listener: pure checks on a request's Host, Origin and bearer token.

A page on the internet can reach a listener on loopback (DNS rebinding, plain cross-site requests), so each
listener checks all three; see MCP 2025-11-25 and 2026-07-28, "Streamable HTTP", security warning.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping

import msgspec

_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?\Z")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]+)\Z")


class Refusal(msgspec.Struct, frozen=True):
    """An HTTP status, a sentence for the answer's body, and the headers that go with it."""

    status: int
    message: str
    headers: tuple[tuple[str, str], ...] = ()


def loopback_hosts(port: int) -> frozenset[str]:
    """The values of Host under which a listener on loopback is reached."""
    return frozenset(f"{name}{end}" for name in ("127.0.0.1", "localhost", "[::1]") for end in (f":{port}", ""))


def check_host(host: str | None, allowed: Collection[str]) -> Refusal | None:
    """Refuse (421) a Host that is malformed or not in `allowed` (lower case, with port unless it is the
    default)."""
    if host is None or not _HOST.match(host) or host.lower() not in allowed:
        return Refusal(421, "this listener does not serve that host")
    return None


def check_origin(origin: str | None, allowed: Collection[str]) -> Refusal | None:
    """Refuse (403) a request that a web page of a foreign origin sent; programs send no Origin at all."""
    if origin is None or origin in allowed:
        return None
    return Refusal(403, "requests from this origin are not allowed")


def token_digest(token: str) -> bytes:
    """The form in which tokens are kept for `check_token`: SHA-256, so that all have one length."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def bearer(authorization: str | None) -> str | None:
    """The token that an Authorization header bears, None where it bears none."""
    match = _BEARER.match(authorization) if authorization is not None else None
    return match.group(1) if match is not None else None


def check_token(authorization: str | None, clients: Mapping[bytes, str]) -> str | Refusal:
    """The client whose token the Authorization header bears, or a refusal (401).

    `clients` maps `token_digest(token)` to a client's name. Each entry is compared in constant time and all
    entries are visited, so that the time taken tells nothing about any token.
    """
    token = bearer(authorization)
    if token is None:
        return Refusal(401, "a bearer token is required", (("WWW-Authenticate", "Bearer"),))
    presented = token_digest(token)
    found: str | None = None
    for digest, client in clients.items():
        if hmac.compare_digest(digest, presented):
            found = client
    if found is None:
        return Refusal(401, "this token is not known", (("WWW-Authenticate", 'Bearer error="invalid_token"'),))
    return found

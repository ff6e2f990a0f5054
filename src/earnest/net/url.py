"""Addresses of servers: `http` and `https` URLs taken apart, strictly."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

import msgspec

from earnest.core.errors import EarnestError

_PORTS = {"http": 80, "https": 443}
_VISIBLE = re.compile(r"[\x21-\x7e]+\Z")
_HOST = re.compile(r"[A-Za-z0-9._-]+\Z|[0-9A-Fa-f:.]+\Z")


class Origin(msgspec.Struct, frozen=True):
    """Scheme, host (lower case, an IPv6 address without brackets) and port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """What the Host header says: the port is left out where the scheme implies it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


def split(url: str) -> tuple[Origin, str]:
    """Origin and request target (path and query) of `url`; a fragment is left out, as on the wire.

    Raises E1229 for another scheme, user information, a name with characters that no host has, or a bad port.
    """
    if not _VISIBLE.match(url):
        raise _bad(url, "it holds characters that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _bad(url, str(error)) from error
    if parts.scheme not in _PORTS:
        raise _bad(url, "only http and https are spoken")
    if "@" in parts.netloc:
        raise _bad("(hidden)", "user information does not belong in a URL", "Put credentials under `headers`.")
    host = (parts.hostname or "").lower()
    if not _HOST.match(host) or "\\" in url:
        raise _bad(url, "it names no host")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Origin(parts.scheme, host, _PORTS[parts.scheme] if port is None else port), target


def join(base: str, reference: str) -> str:
    """`reference` resolved against `base` (RFC 3986, section 5)."""
    return urljoin(base, reference)


def _bad(url: str, why: str, remedy: str = "") -> EarnestError:
    return EarnestError("E1229", f"not a usable address: {url[:200]!r}: {why}", remedy)

"""An argument that is an address to fetch.

Theory. A fetcher reads what anyone may read, until it is pointed at this machine or the network around it.
Only raises: a name in public form may still resolve to a private address, which a name alone cannot tell.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from earnest.core.profile import Labels
from earnest.refine.refinement import Refinement

_LOCAL_ENDINGS: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".home")
_NAME: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z](?:[a-z0-9-]*[a-z0-9])?")


class AddressRule(msgspec.Struct, frozen=True):
    """Which argument is the address."""

    argument: str
    source: str = ""


def look(rule: AddressRule, arguments: Mapping[str, Any]) -> Refinement | None:
    """`reads_private` for an address that is not plainly one on the public internet; else nothing."""
    address = arguments.get(rule.argument)
    if isinstance(address, str) and _public(address):
        return None
    labels = Labels(reads_private=True, source=rule.source)
    return Refinement(labels, f"{rule.argument} is no plain public address")


def _public(address: str) -> bool:
    # Characters that readers of addresses disagree about, and credentials, make it not plain.
    if not address.isascii() or re.search(r"[\\\s\x00-\x1f]", address):
        return False
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").removesuffix(".")
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or "@" in parts.netloc:
        return False
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return _NAME.fullmatch(host) is not None and not host.endswith(_LOCAL_ENDINGS)
    if isinstance(ip, ipaddress.IPv6Address) and (ip.sixtofour or ip.teredo):
        return False
    if ip in ipaddress.ip_network("64:ff9b::/96"):
        return False
    return ip.is_global and not ip.is_multicast

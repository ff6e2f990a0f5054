"""Which hosts a box may reach: names, `*.name`, addresses, each with a port where it is neither 80 nor 443."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, NamedTuple

WEB: Final = (80, 443)


class Host(NamedTuple):
    name: str
    ports: tuple[int, ...]

    def fits(self, name: str) -> bool:
        name = name.lower().rstrip(".")
        return name.endswith(self.name[1:]) if self.name.startswith("*.") else name == self.name

    @property
    def is_here(self) -> bool:
        """Whether this is the machine itself."""
        return self.name == "localhost" or is_loopback(self.name)


class Hosts:
    """What a plan's `hosts` allow. Raises ValueError for what is no host."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.all = tuple(_host(text) for text in texts)

    def knows(self, name: str) -> bool:
        return any(host.fits(name) for host in self.all)

    def allows(self, name: str, port: int) -> bool:
        return any(host.fits(name) and port in host.ports for host in self.all)


def _host(text: str) -> Host:
    name = text.strip().lower()
    ports: tuple[int, ...] = WEB
    if name.startswith("["):
        name, _, rest = name[1:].partition("]")
        ports = (int(rest[1:]),) if rest else WEB
    elif name.count(":") == 1:
        name, _, port = name.partition(":")
        ports = (int(port),)
    name = name.rstrip(".")
    if not name or "/" in name or " " in name or "*" in name[1:] or (name[0] == "*" and name[:2] != "*."):
        raise ValueError(f"{text!r} is no host")
    return Host(name, ports)


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(text: str) -> bool:
    return is_address(text) and ipaddress.ip_address(text).is_loopback


def is_own_network(text: str) -> bool:
    """Whether an address is this machine's own or its link's: where a name must not lead, whoever answers for it."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast

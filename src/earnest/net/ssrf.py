"""Fetching what a stranger's URL names, without becoming the stranger's hand in the own network.

Theory. A name is resolved here, every address it has is judged, and the connection goes to an address that
was judged: nothing is resolved a second time, so a name that changes its mind between check and use gains
nothing. One address of a name that is not public condemns the name. Redirects are followed one by one, each
under the same rules, without the headers of the first request. `ipaddress.is_global` decides, together with
what it lets pass though it reaches inside: IPv4 within IPv6 in any spelling (mapped, compatible, 6to4,
Teredo, NAT64 and its local-use prefix), site-local, multicast and a few blocks that are assigned but no
host's.

Sources: MCP 2026-07-28 "Security best practices" (SSRF); RFC 6890, 6052, 8215, 3056, 4380.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.net.dial import Factory, TlsSettings
from earnest.net.limits import ClientLimits
from earnest.net.message import HeaderFields, Headers
from earnest.net.pool import Pool
from earnest.net.url import Origin, join, split

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]

_BLOCKED: Final = tuple(
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))


class SsrfRules(msgspec.Struct, frozen=True):
    """What may be fetched. `allow` names origins that the operator configured: they may be anywhere,
    loopback included.

    `schemes` are those of everything else.
    """

    allow: frozenset[Origin] = frozenset()
    schemes: frozenset[str] = frozenset(("https",))


class Fetched(msgspec.Struct, frozen=True):
    """An answer with its whole body; `url` is where it came from after redirects."""

    url: str
    status: int
    headers: Headers
    body: bytes


def is_public(address: str) -> bool:
    """Whether an IP address (text, without a zone) is a public host's, also through every way to embed IPv4
    in IPv6."""
    try:
        ip: Address = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            return False
        inner = _embedded(ip)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast and not any(ip in block for block in _BLOCKED)


def _embedded(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


def check_origin(origin: Origin, rules: SsrfRules) -> None:
    """Refuse (E1240) a scheme that is not allowed, and a host that is an address written in a way only some
    parsers read.

    `0x7f.1`, `2130706433` and `127.1` are names to us and loopback to others, so hosts of digits must be
    plain addresses.
    """
    if origin in rules.allow:
        return
    if origin.scheme not in rules.schemes:
        raise _refused(origin, f"only {' and '.join(sorted(rules.schemes))} may be fetched")
    last = origin.host.rstrip(".").rpartition(".")[2]
    if ":" in origin.host or last.isdigit() or last.startswith("0x"):
        try:
            ipaddress.ip_address(origin.host)
        except ValueError:
            raise _refused(origin, "its host is no plain address") from None


def check_addresses(origin: Origin, addresses: Iterable[str], rules: SsrfRules) -> list[str]:
    """The addresses that may be dialled for `origin`. Raises E1240 if any is not public (and it is not
    allowed), or none is left."""
    found = list(dict.fromkeys(addresses))
    if origin not in rules.allow:
        for address in found:
            if not is_public(address):
                raise _refused(origin, "its name leads to an address that is not public")
    if not found:
        raise _refused(origin, "its name has no address")
    return found


def system_resolver(loop: asyncio.AbstractEventLoop) -> Resolver:
    """Addresses of a name as the system knows them."""

    async def resolve(host: str, port: int) -> list[str]:
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        return [str(info[4][0]) for info in infos]

    return resolve


class SafeDialer:
    """A pool's dialer under `rules`: it connects to addresses that were judged, TLS still verifies the
    name."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rules: SsrfRules, resolve: Resolver | None = None) -> None:
        self._loop = loop
        self._rules = rules
        self._resolve = resolve or system_resolver(loop)

    async def __call__(self, origin: Origin, factory: Factory, context: ssl.SSLContext | None) -> tuple[Any, Any]:
        check_origin(origin, self._rules)
        addresses = check_addresses(origin, await self._resolve(origin.host, origin.port), self._rules)
        failure: OSError | None = None
        for address in addresses:
            try:
                return await self._loop.create_connection(
                    factory,
                    address,
                    origin.port,
                    ssl=context,
                    server_hostname=origin.host if context is not None else None,
                    flags=socket.AI_NUMERICHOST,
                )
            except OSError as error:
                failure = error
        assert failure is not None
        raise failure


class _Collect:
    """Hears of one answer and keeps it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[tuple[int, Headers, bytes]] = loop.create_future()
        self._status = 0
        self._headers = Headers([])
        self._body: list[bytes] = []

    def head(self, status: int, headers: Headers) -> None:
        self._status, self._headers = status, headers

    def data(self, chunk: bytes) -> None:
        self._body.append(chunk)

    def end(self) -> None:
        if not self.future.done():
            self.future.set_result((self._status, self._headers, b"".join(self._body)))

    def lost(self, error: EarnestError, sent: bool) -> None:
        if not self.future.done():
            self.future.set_exception(error)


async def fetch(
    url: str,
    rules: SsrfRules,
    *,
    headers: HeaderFields = (),
    max_body: int,
    max_redirects: int = 0,
    timeout_s: float = 10.0,
    tls: TlsSettings | None = None,
    resolve: Resolver | None = None,
) -> Fetched:
    """GET `url` under `rules`, following at most `max_redirects`; no connection is kept.

    `headers` go to the first origin only. Raises E1240 for what the rules forbid, E1241 for one redirect too
    many, E1226 past `max_body` bytes, other E12xx where the server fails.
    """
    loop = asyncio.get_running_loop()
    pool = Pool(loop, ClientLimits(idle_s=0.0), tls, SafeDialer(loop, rules, resolve))
    first, target = split(url)
    origin = first
    try:
        async with asyncio.timeout(timeout_s):
            for _ in range(max_redirects + 1):
                collect = _Collect(loop)
                own = headers if origin == first else ()
                pool.request(origin, "GET", target, own, b"", collect, max_body=max_body)
                status, answered, body = await collect.future
                location = answered.get("location")
                if status not in _REDIRECTS or location is None:
                    return Fetched(url, status, answered, body)
                url = join(url, location)
                origin, target = split(url)
    except TimeoutError:
        raise EarnestError("E1227", f"{origin} did not answer within {timeout_s:g} s", exit_code=3) from None
    finally:
        await pool.close()
    raise EarnestError("E1241", f"{first} redirects more than {max_redirects} times", exit_code=3)


def _refused(origin: Origin, why: str) -> EarnestError:
    return EarnestError("E1240", f"{origin} is not fetched: {why}", "Only public servers may be named here.", exit_code=3)

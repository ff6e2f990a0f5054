"""Which process is at the other end of a TCP connection on this machine, as the kernel says, and which host it works for.

The kernel does not hand that over with a connection, as it does on a Unix socket; it has to be put together: the client's end
of the connection is a line of `/proc/net/tcp` with its inode and user, and the inode is a descriptor of some process of that
user. Whatever is in doubt (another user, two holders, a process that ended or may not be looked at, too many processes to look
through) is answered with nothing: the caller then takes the wider key, which only adds labels.

All of it reads files, so it belongs on a thread, once for each connection; connections that come together are looked up
together, since looking through the processes is what costs. Linux only; elsewhere always None.
"""

import ipaddress
import os
import sys
import time
from collections.abc import Collection, Sequence

from earnest.gateway.process.peers import Process, ancestry, in_session, is_wrapper

TABLE_BYTES = 8 * 1024 * 1024
"""So much of the kernel's table of connections is read at most."""
DESCRIPTORS = 100_000
TIME_S = 0.5

_ESTABLISHED = "01"
_CARRIERS = frozenset({"curl", "wget", "http", "https", "xh", "nc", "ncat", "socat", "mcp-remote", "mcp-proxy", "supergateway"})
"""Programs that carry another one's words over HTTP: what they do is their starter's."""

Address = tuple[str, int]


def host_of(client: object, listener: object) -> tuple[Process, ...]:
    """The host process behind a connection from `client` to `listener` (addresses as sockets name them), then its ancestors;
    nothing if unsure. The host is the nearest of the process and its ancestors that is neither a wrapper nor a carrier.
    """
    return hosts_of([client], listener)[0]


def hosts_of(clients: Sequence[object], listener: object) -> list[tuple[Process, ...]]:
    """As `host_of`, for connections of several clients, whose processes are looked for in one go."""
    at = _address(listener)
    if not sys.platform.startswith("linux") or at is None:
        return [()] * len(clients)
    ends = [_address(client) for client in clients]
    inodes = _inodes({end for end in ends if end is not None}, at)
    holders = _holders(set(inodes.values()))
    chains = {pid: ancestry(pid) for pid in set(holders.values()) if pid}
    # Only a process that still holds the connection is the one whose ancestors were just read.
    held = {pid: {_link(descriptor) for descriptor in _descriptors(str(pid))} for pid in chains}
    hosts = {pid: _from_host(chain) for pid, chain in chains.items()}
    found: list[tuple[Process, ...]] = []
    for end in ends:
        inode = inodes.get(end, "") if end is not None else ""
        pid = holders.get(inode, 0)
        still = bool(pid) and f"socket:[{inode}]" in held[pid]
        found.append(hosts[pid] if still else ())
    return found


def _from_host(chain: Sequence[Process]) -> tuple[Process, ...]:
    for at, one in enumerate(chain):
        if not (is_wrapper(one) or _carries(one)):
            return () if in_session(one) else tuple(chain[at:])
    return ()


def _carries(one: Process) -> bool:
    words = [word.rsplit("/", 1)[-1] for word in one.argv[:3]]
    return any(word.removesuffix(".js").removesuffix(".py").partition("@")[0] in _CARRIERS for word in words)


def _address(end: object) -> Address | None:
    """An address on loopback; None for any other."""
    if not isinstance(end, tuple) or len(end) < 2 or not isinstance(end[0], str) or not isinstance(end[1], int):
        return None
    try:
        ip = ipaddress.ip_address(end[0].partition("%")[0])
    except ValueError:
        return None
    plain = getattr(ip, "ipv4_mapped", None) or ip
    return (str(plain), end[1]) if plain.is_loopback else None


def _table(name: str) -> list[str]:
    """The lines of one of the kernel's tables of connections."""
    try:
        with open(f"/proc/net/{name}", encoding="ascii") as file:
            return file.read(TABLE_BYTES).split("\n")[1:]
    except OSError:
        return []


def _inodes(clients: Collection[Address], listener: Address) -> dict[Address, str]:
    """The inodes of the clients' ends, where they are our own user's; none for an end that there is not, or more than once. The
    kernel's tables are gone through once, however many connections there are."""
    found: dict[Address, set[str]] = {}
    for table, mapped in (("tcp", False), ("tcp6", True)):
        to = _spelled(listener, mapped)
        wanted = {spelled: client for client in clients if (spelled := _spelled(client, mapped))}
        if not to or not wanted:
            continue
        for line in _table(table):
            if to not in line:
                continue
            words = line.split()
            if len(words) > 9 and words[2] == to and words[1] in wanted and words[3] == _ESTABLISHED:
                found.setdefault(wanted[words[1]], set()).add(words[9] if words[7] == str(os.getuid()) else "")
    return {client: inode for client, seen in found.items() if len(seen) == 1 and (inode := next(iter(seen)))}


def _spelled(end: Address, mapped: bool) -> str:
    """An address as the kernel's tables write it: words of 32 bits in the machine's order, in hexadecimal."""
    ip = ipaddress.ip_address(end[0])
    packed = ip.packed
    if mapped and len(packed) == 4:
        packed = b"\0" * 10 + b"\xff\xff" + packed
    if len(packed) != (16 if mapped else 4):
        return ""
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{end[1]:04X}"


def _holders(inodes: Collection[str]) -> dict[str, int]:
    """For each of these sockets the one process of our user that has it open; 0 for several. Empty where there is too much to
    look through."""
    if not inodes:
        return {}
    end = time.monotonic() + TIME_S
    links = {f"socket:[{inode}]": inode for inode in inodes}
    seen = 0
    found: dict[str, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        for descriptor in _descriptors(name):
            seen += 1
            if seen > DESCRIPTORS or time.monotonic() > end:
                return {}
            inode = links.get(_link(descriptor))
            if inode is not None and found.get(inode) != int(name):
                found[inode] = 0 if inode in found else int(name)
    return found


def _descriptors(pid: str) -> list[str]:
    folder = f"/proc/{pid}/fd"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []  # ended, or another user's


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""

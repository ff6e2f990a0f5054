"""Which process is at the other end of a TCP connection on this machine, as the kernel says, and which host it works for.

The kernel does not hand that over with a connection, as it does on a Unix socket; it has to be put together: the kernel is
asked for the client's end of the connection by its addresses (sock_diag, man 7 sock_diag), which gives its inode and user, and
the inode is a descriptor of some process of that user. Where that question may not be asked, the end is looked for in
`/proc/net/tcp`, which takes the longer the more connections there are. Whatever is in doubt (another user, two holders, a
process that ended or may not be looked at, too many processes to look through) is answered with nothing: the caller then takes
the wider key, which only adds labels.

All of it waits for the kernel, so it belongs on a thread, once for each connection; connections that come together are looked
up together, since looking through the processes is what costs. Linux only; elsewhere always None.
"""

import errno
import ipaddress
import os
import socket
import stat
import struct
import sys
import time
from collections.abc import Collection, Iterator, Sequence

from earnest.gateway.process.peers import Process, ancestry, in_session, is_wrapper
from earnest.net import netlink

TABLE_BYTES = 8 * 1024 * 1024
"""So much of the kernel's table of connections is read at most."""
DESCRIPTORS = 100_000
TIME_S = 0.5

PAUSES_S = (0.01, 0.04, 0.16)
"""A connection with several holders is looked at again after these: a process that starts another one shares all it holds with
it until that one runs its program."""

_ESTABLISHED = "01"
_SOCK_DIAG = 4
_BY_FAMILY = 20
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
    for pause in PAUSES_S:
        several = {inode for inode, (pid, _) in holders.items() if not pid}
        if not several:
            break
        time.sleep(pause)
        holders |= _holders(several)
    chains = {pid: ancestry(pid) for pid in {pid for pid, _ in holders.values()} if pid}
    hosts = {pid: _from_host(chain) for pid, chain in chains.items()}
    found: list[tuple[Process, ...]] = []
    for end in ends:
        inode = inodes.get(end, "") if end is not None else ""
        pid, descriptor = holders.get(inode, (0, ""))
        # Only a process that still holds the connection is the one whose ancestors were just read.
        still = bool(pid) and _link(f"/proc/{pid}/fd/{descriptor}") == f"socket:[{inode}]"
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


def _inodes(clients: Collection[Address], listener: Address) -> dict[Address, str]:
    """The inodes of the clients' ends, where they are our own user's; none for an end that there is not."""
    asked = _asked(clients, listener)
    return _looked_for(clients, listener) if asked is None else asked


def _asked(clients: Collection[Address], listener: Address) -> dict[Address, str] | None:
    """As `_inodes`, by asking for each; None where the kernel does not answer such questions."""
    found: dict[Address, str] = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as line:
            line.settimeout(TIME_S)
            line.bind((0, 0))
            for client in clients:
                end = _end(line, client, listener)
                if end is None:
                    # Without the part that knows of TCP the kernel says the same as of an end that there is not. Our own end
                    # there is, or else what listens.
                    if _end(line, listener, client) is None:
                        return None
                    continue
                user, inode = end
                if user == os.getuid() and inode:
                    found[client] = str(inode)
    except (OSError, struct.error):
        return None
    return found


def _end(line: socket.socket, own: Address, other: Address) -> tuple[int, int] | None:
    """User and inode of the end at `own` of an established connection to `other`; None where there is none. An inode of 0 where
    there is something else. Raises OSError where it may not be asked."""
    (ip, other_ip), port, other_port = (ipaddress.ip_address(end[0]).packed for end in (own, other)), own[1], other[1]
    if len(ip) != len(other_ip):
        return 0, 0
    family = socket.AF_INET if len(ip) == 4 else socket.AF_INET6
    # A socket that was bound to the loopback device is found by that device alone; others are found by it as well.
    device = socket.if_nametoindex("lo")
    id = struct.pack(">HH16s16s", port, other_port, ip, other_ip) + struct.pack("=III", device, 0xFFFFFFFF, 0xFFFFFFFF)
    head = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
    line.send(netlink.message(_BY_FAMILY, netlink.REQUEST, head + id))
    for kind, payload in netlink.messages(line.recv(4096)):
        if kind == netlink.ERROR:
            error = netlink.outcome(payload)
            if error == errno.ENOENT:
                return None
            raise OSError(error, os.strerror(error))
        _, state, _, _, at, to = struct.unpack_from(">BBBBHH", payload)
        user, inode = struct.unpack_from("=II", payload, 64)
        return (user, inode) if (state, at, to) == (int(_ESTABLISHED), port, other_port) else (0, 0)
    raise OSError(errno.EPROTO, "netlink: no answer")


def _table(name: str) -> list[str]:
    """The lines of one of the kernel's tables of connections."""
    try:
        with open(f"/proc/net/{name}", encoding="ascii") as file:
            return file.read(TABLE_BYTES).split("\n")[1:]
    except OSError:
        return []


def _looked_for(clients: Collection[Address], listener: Address) -> dict[Address, str]:
    """As `_inodes`, in the kernel's tables, which are gone through once, however many connections there are; none for an end
    that stands there more than once."""
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


def _holders(inodes: Collection[str]) -> dict[str, tuple[int, str]]:
    """For each of these sockets the one process of our user that has it open, and as what; 0 for several. Empty where there is
    too much to look through."""
    if not inodes:
        return {}
    end = time.monotonic() + TIME_S
    seen = 0
    found: dict[str, tuple[int, str]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        # One that it holds twice is told once, so nothing is left to look for in a process that holds all of them.
        left = set(inodes)
        for descriptor, inode in _sockets(int(name)):
            seen += 1
            if seen > DESCRIPTORS or time.monotonic() > end:
                return {}
            if inode in left:
                left.remove(inode)
                found[inode] = (0, "") if inode in found else (int(name), descriptor)
                if not left:
                    break
    return found


def _sockets(pid: int) -> Iterator[tuple[str, str]]:
    """The descriptors of a process, newest first, each with the inode of its socket; empty where it is none."""
    own = pid == os.getpid()
    try:
        folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return  # ended, or another user's
    try:
        for descriptor in reversed(os.listdir(folder)):
            try:
                if own:  # a quarter of the time, and the daemon has most of all
                    about = os.fstat(int(descriptor))
                    inode = str(about.st_ino) if stat.S_ISSOCK(about.st_mode) else ""
                else:
                    link = os.readlink(descriptor, dir_fd=folder)
                    inode = link[8:-1] if link.startswith("socket:[") else ""
            except OSError:
                continue  # closed meanwhile
            yield descriptor, inode
    except OSError:
        return  # ended meanwhile
    finally:
        os.close(folder)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""

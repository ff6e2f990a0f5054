"""Every address of the world leads to this network namespace, every TCP port to one (man 7 netlink, rtnetlink; nf_tables).

Spoken by hand, so that no `ip` and no `nft` needs to be installed. A route of type *local* for all addresses makes the kernel
take every packet for its own; rules of nf_tables lead TCP to the port that `sink.py` listens on, and swallow UDP, which
is recorded from the wire. Without nf_tables the listed ports alone are answered.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Final

from earnest.net import netlink

ADDRESS4: Final = "10.0.2.15"
ADDRESS6: Final = "fd17:625c:f037:2::15"
RESOLVER: Final = "10.0.2.3"
_LO: Final = 1
_MAKE: Final = netlink.REQUEST | netlink.ACK | 0x400  # and create
_NEWADDR, _NEWROUTE = 20, 24
_TABLE: Final = b"box\0"
_INET: Final = 1
_OUT, _IN = 3, 1


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _talk(protocol: int, messages: list[bytes], answers: int) -> None:
    """Send messages and read that many answers; raises OSError for the first that is an error."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as line:
        line.settimeout(5)
        line.bind((0, 0))
        line.send(b"".join(messages))
        while answers > 0:
            for kind, payload in netlink.messages(line.recv(65536)):
                if kind == netlink.ERROR:
                    answers -= 1
                    if error := netlink.outcome(payload):
                        raise OSError(error, f"netlink: {os.strerror(error)}")


def all_addresses() -> None:
    """An address of our own, of each family that there is, and every other address, too."""
    for family, text, size in ((socket.AF_INET, ADDRESS4, 32), (socket.AF_INET6, ADDRESS6, 128)):
        raw = socket.inet_pton(family, text)
        no_detection = 2
        own = struct.pack("=BBBBI", family, size, no_detection, 0, _LO) + _attribute(2, raw) + _attribute(1, raw)
        local_table, by_hand, host_scope, local = 255, 4, 254, 2
        every = struct.pack("=BBBBBBBBI", family, 0, 0, 0, local_table, by_hand, host_scope, local, 0)
        every += _attribute(4, struct.pack("=I", _LO)) + _attribute(7, raw)  # with our own address for a sender
        flags = _MAKE
        try:
            for number, (kind, payload) in enumerate(((_NEWADDR, own), (_NEWROUTE, every))):
                _talk(0, [netlink.message(kind, flags, payload, number)], 1)
        except OSError:
            if family == socket.AF_INET:
                raise  # without IPv6 there is none; without IPv4 there is no internet


def _expression(name: str, *attributes: bytes) -> bytes:
    data = _attribute(1, name.encode() + b"\0") + _attribute(2 | 0x8000, b"".join(attributes))
    return _attribute(1 | 0x8000, data)


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">I", value))


def _value(kind: int, value: bytes) -> bytes:
    return _attribute(kind | 0x8000, _attribute(1, value))


def _meta(key: int, value: int) -> bytes:
    return _expression("meta", _number(1, 1), _number(2, key)) + _compared(bytes([value]))


def _compared(value: bytes, unequal: bool = False) -> bytes:
    return _expression("cmp", _number(1, 1), _number(2, int(unequal)), _value(3, value))


def _payload(base: int, offset: int, size: int) -> bytes:
    return _expression("payload", _number(1, 1), _number(2, base), _number(3, offset), _number(4, size))


def _elsewhere(family: int) -> bytes:
    """Packets of a family that are not for the loopback, nor for our own address."""
    nfproto = 15
    if family == socket.AF_INET:
        first_byte = _payload(1, 16, 1) + _compared(b"\x7f", unequal=True)
        own = _payload(1, 16, 4) + _compared(socket.inet_pton(family, ADDRESS4), unequal=True)
        return _meta(nfproto, 2) + first_byte + own
    loopback, address = (socket.inet_pton(family, text) for text in ("::1", ADDRESS6))
    destination = _payload(1, 24, 16)
    return _meta(nfproto, 10) + destination + _compared(loopback, True) + destination + _compared(address, True)


def lead_to(port: int) -> None:
    """TCP to anywhere else leads to `port` here; UDP to anywhere else but to a resolver is swallowed. Raises OSError where the
    kernel has no nf_tables."""
    l4proto, tcp, udp = 16, 6, 17
    to_port = _expression("immediate", _number(1, 1), _value(2, struct.pack(">H", port))) + _expression("redir", _number(1, 1))
    verdict = _attribute(2 | 0x8000, _number(1, 0))
    drop = _expression("immediate", _number(1, 0), _attribute(2 | 0x8000, verdict))
    chains = ((b"out\0", b"nat\0", _OUT, -100), (b"in\0", b"filter\0", _IN, 0))
    parts = [(0, _attribute(1, _TABLE))]
    for name, purpose, hook, priority in chains:
        where = _number(1, hook) + _attribute(2, struct.pack(">i", priority))
        parts.append((3, _attribute(1, _TABLE) + _attribute(3, name) + _attribute(4 | 0x8000, where) + _attribute(7, purpose)))
    for family in (socket.AF_INET, socket.AF_INET6):
        other = _elsewhere(family)
        not_names = _payload(2, 2, 2) + _compared(struct.pack(">H", 53), unequal=True)
        led = _meta(l4proto, tcp) + other + to_port
        swallowed = _meta(l4proto, udp) + other + not_names + drop
        for name, rule in ((b"out\0", led), (b"in\0", swallowed)):
            parts.append((6, _attribute(1, _TABLE) + _attribute(2, name) + _attribute(4 | 0x8000, rule)))
    nf_tables, begin, end = 10, 0x10, 0x11
    whole = struct.pack(">BBH", 0, 0, nf_tables)
    messages = [netlink.message(begin, netlink.REQUEST, whole, 0)]
    for number, (kind, payload) in enumerate(parts, 1):
        head = struct.pack(">BBH", _INET, 0, 0)
        append = 0x800
        messages.append(netlink.message(nf_tables << 8 | kind, _MAKE | append, head + payload, number))
    messages.append(netlink.message(end, netlink.REQUEST, whole, len(parts) + 1))
    _talk(12, messages, len(parts))

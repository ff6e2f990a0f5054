"""Names of the internet that a box has: each gets one address of its own, so that a connection tells whom it was meant for.

The addresses look like those of public hosts, since what fetches for a model often refuses all others. Nothing sent to them
leaves the box. A name has the same address in every box. RFC 1035 for the format.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

A, PTR, MX, AAAA, ANY = 1, 12, 15, 28, 255
_MOST: Final = 20_000
"""Names that are remembered."""
_TTL: Final = 60


class Question(NamedTuple):
    id: int
    flags: int
    name: str
    kind: int
    raw: bytes


class Names:
    """Which address stands for which name. `known`: whether a name has one."""

    def __init__(self, known: Callable[[str], bool] = lambda name: True) -> None:
        self._known = known
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._addresses: dict[str, tuple[str, str]] = {}

    def addresses(self, name: str) -> tuple[str, str] | None:
        """The IPv4 and the IPv6 address of a name."""
        name = name.lower().rstrip(".")
        if not self._known(name):
            return None
        with self._lock:
            pair = self._addresses.get(name)
            if pair is None and len(self._addresses) < _MOST:
                pair = self._addresses[name] = self._fresh(name)
                self._names[pair[0]] = self._names[pair[1]] = name
            return pair

    def _fresh(self, name: str) -> tuple[str, str]:
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2], "big")
        while True:
            high, low = divmod(number, 256)
            wide = socket.inet_pton(socket.AF_INET6, f"2606:2800:220:1:{number:x}::1")
            pair = f"93.184.{high}.{low}", socket.inet_ntop(socket.AF_INET6, wide)
            if low not in (0, 255) and pair[0] not in self._names:
                return pair
            number = (number + 1) % 65536

    def name(self, address: str) -> str:
        """The name that an address stands for; itself where it stands for none."""
        with self._lock:
            return self._names.get(address, address)

    def answer(self, question: Question) -> bytes:
        """The answer of a resolver."""
        records: list[bytes] = []
        missing = False
        name = question.name
        if question.kind == PTR:
            host = self._names.get(".".join(reversed(name.removesuffix(".in-addr.arpa").split("."))), "")
            records = [_record(PTR, _encoded(host))] if host else []
            missing = not host
        else:
            pair = self.addresses(name) if "." in name.rstrip(".") else None
            missing = pair is None
            if pair is not None and question.kind in (A, ANY):
                records.append(_record(A, socket.inet_aton(pair[0])))
            if pair is not None and question.kind in (AAAA, ANY):
                records.append(_record(AAAA, socket.inet_pton(socket.AF_INET6, pair[1])))
            if pair is not None and question.kind == MX:
                records.append(_record(MX, struct.pack(">H", 10) + _encoded(f"mail.{name}")))
        is_answer, recursive, no_such_name = 0x8000, 0x0080, 3
        flags = is_answer | recursive | question.flags & 0x0100 | (no_such_name if missing else 0)
        return struct.pack(">6H", question.id, flags, 1, len(records), 0, 0) + question.raw + b"".join(records)


def question(packet: bytes) -> Question | None:
    """The question of a packet, or None where it is none."""
    if len(packet) < 17:
        return None
    id, flags, count = struct.unpack_from(">3H", packet)
    labels: list[str] = []
    place = 12
    while place < len(packet) and packet[place]:
        size = packet[place]
        if size > 63 or place + 1 + size >= len(packet):
            return None
        labels.append(packet[place + 1 : place + 1 + size].decode("latin-1"))
        place += 1 + size
    if flags & 0x8000 or count != 1 or place + 5 > len(packet) or not labels:
        return None
    kind = struct.unpack_from(">H", packet, place + 1)[0]
    return Question(id, flags, ".".join(labels), kind, packet[12 : place + 5])


def _encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".") if label) + b"\0"


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack(">HHHIH", 0xC00C, kind, 1, _TTL, len(data)) + data

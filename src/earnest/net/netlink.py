"""Messages to and from the kernel over netlink (man 7 netlink): the frame that all of its families share.

Spoken by hand: no program and no library need be there, and the few messages that are sent here are sent rarely.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

REQUEST: Final = 1
ACK: Final = 4
ERROR: Final = 2
"""The kind of an answer that says how it went: a negative error number, 0 for an acknowledgement (see `outcome`)."""

_HEAD: Final = struct.Struct("=IHHII")


def message(kind: int, flags: int, payload: bytes, sequence: int = 0) -> bytes:
    """One message. `payload` is a whole number of 4-byte words."""
    return _HEAD.pack(_HEAD.size + len(payload), kind, flags, sequence, 0) + payload


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and payload of each message in what was received; stops at one that is cut off."""
    while len(data) >= _HEAD.size:
        size, kind = struct.unpack_from("=IH", data)
        if not _HEAD.size <= size <= len(data):
            return
        yield kind, data[_HEAD.size : size]
        data = data[(size + 3) & ~3 :]


def outcome(payload: bytes) -> int:
    """The error number that an answer of kind `ERROR` gives, 0 where all went well."""
    return -int(struct.unpack_from("=i", payload)[0])

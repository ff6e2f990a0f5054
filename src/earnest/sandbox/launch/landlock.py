"""Which files a process may open, by Landlock (man 7 landlock): all below the folders named, nothing else, for good."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final

from earnest.sandbox.launch import kernel

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_REMOVE: Final = 1 << 4 | 1 << 5
_MAKE: Final = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
_DEVICES: Final = 1 << 6 | 1 << 11
_REFER: Final = 1 << 13
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
"""Rights that a rule for a file may give."""
_TCP: Final = 3
_SCOPES: Final = 3
"""No abstract UNIX sockets and no signals beyond the box."""


def version() -> int:
    """The version of Landlock's interface, 0 where there is none."""
    try:
        return kernel.syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def restrict(read: Iterable[str], write: Iterable[str], devices: Iterable[str], *, tcp: bool) -> None:
    """Bind this process. `tcp`: also no TCP connection and no TCP port of its own, where the kernel can (since 6.7). Needs
    NO_NEW_PRIVS; raises OSError where there is no Landlock."""
    known = version()
    handled = (1 << 13) - 1
    handled |= _REFER if known >= 2 else 0
    handled |= _TRUNCATE if known >= 3 else 0
    handled |= _IOCTL if known >= 5 else 0
    network = _TCP if known >= 4 and tcp else 0
    attributes = struct.pack("=QQQ", handled, network, _SCOPES if known >= 6 else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    rules = kernel.syscall("landlock_create_ruleset", attributes[:size], size, 0)
    try:
        for paths, rights in (
            (read, _READ),
            (write, handled & ~_DEVICES),
            (devices, _READ_FILE | _WRITE_FILE | _IOCTL),
        ):
            for path in paths:
                _allow(rules, path, rights & handled)
        kernel.syscall("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)


def only_read(but: Iterable[str] = ()) -> None:
    """Bind a process of our own that hears what a box says: it needs to write nowhere `but` there. Where there is no Landlock
    it stays as it is."""
    if version():
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        restrict(["/"], but, ["/dev/null"], tcp=False)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        held = os.open(path, os.O_PATH)
    except OSError:  # not there, or not for us: nothing to allow
        return
    try:
        if not stat.S_ISDIR(os.fstat(held).st_mode):
            rights &= _OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, held), 12)
        kernel.syscall("landlock_add_rule", rules, 1, rule, 0)
    finally:
        os.close(held)

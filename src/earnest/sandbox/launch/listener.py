"""Answers what the seccomp program of a box hands over (man 2 seccomp_unotify).

What is read from a process's memory may change after it was read: it is evidence. So a call is let go on only where
something else holds it (namespaces, mounts, Landlock); what nothing else would hold is done here, on a copy of the
process's own descriptor, with the bytes that were looked at.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from earnest.sandbox.launch import kernel
from earnest.sandbox.launch.filter import LEASES, NEW_NAMESPACE
from earnest.sandbox.launch.layers import within
from earnest.sandbox.launch.report import Report

_RECEIVE, _SEND, _STILL_THERE = 0xC0502100, 0xC0182101, 0x40082102
_GO_ON: Final = 1
_NAMES: Final = {number: name for name, number in kernel.NUMBERS.items()}
_ARGUMENT: Final = 4096
_ARGUMENTS: Final = 64


class Call(NamedTuple):
    """One system call that waits for an answer. `thread` is its thread's number, in our own pid namespace."""

    id: int
    thread: int
    name: str
    args: tuple[int, ...]

    def memory(self, address: int, size: int) -> bytes:
        """Up to `size` bytes at an address; fewer where the mapping ends."""
        if not address:
            return b""
        with open(f"/proc/{self.thread}/mem", "rb", buffering=0) as file:
            try:
                return os.pread(file.fileno(), size, address)
            except OSError:
                try:  # the page ends before what was asked for does
                    return os.pread(file.fileno(), min(size, 4096 - address % 4096), address)
                except OSError:
                    return b""

    def text(self, address: int) -> str:
        return os.fsdecode(self.memory(address, _ARGUMENT).split(b"\0", 1)[0])

    def words(self, address: int) -> list[str]:
        """The strings of an argument vector."""
        found: list[str] = []
        pointers = self.memory(address, 8 * _ARGUMENTS)
        for (pointer,) in struct.iter_unpack("=Q", pointers[: len(pointers) // 8 * 8]):
            if not pointer:
                break
            found.append(self.text(pointer))
        return found

    def path(self, address: int, folder: int = -100) -> str:
        """A path argument made absolute by the folder it is relative to, as the process sees it."""
        return self.absolute(self.text(address), folder)

    def absolute(self, given: str, folder: int = -100) -> str:
        if given.startswith("/"):
            return os.path.normpath(given)
        place = "cwd" if folder in (-100, 0xFFFFFF9C) else f"fd/{folder}"
        try:
            return os.path.normpath(os.path.join(os.readlink(f"/proc/{self.thread}/{place}"), given))
        except OSError:
            return given

    def descriptor(self, number: int) -> int:
        """A copy of the process's descriptor."""
        with open(f"/proc/{self.thread}/status") as file:
            leader = next(int(line[5:]) for line in file if line.startswith("Tgid:"))
        return kernel.descriptor_of(leader, number & 0x7FFFFFFF)


def signed(value: int) -> int:
    """An argument that is an int of C."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


Answer = int | None
"""An errno to fail with, 0 for success, None to let the call go on."""
Handler = Callable[[Call], Answer]


class Listener:
    """One box's listener. `handlers` by name of system call; a call without one is refused and reported."""

    def __init__(self, descriptor: int, report: Report, handlers: dict[str, Handler]) -> None:
        self.descriptor = descriptor
        self._report = report
        self._handlers = handlers

    def serve(self) -> bool:
        """Take one waiting call and answer it; whether the listener has still someone to listen to."""
        buffer = bytearray(80)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, buffer)
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.EINTR)  # who called was killed meanwhile
        id, thread, _, number, _, _, *args = struct.unpack("=QIIiIQ6Q", buffer)
        call = Call(id, thread, _NAMES.get(number, str(number)), tuple(args))
        handler = self._handlers.get(call.name, self._refuse)
        if handler in self._slow:
            threading.Thread(target=self._answer, args=(call, handler), daemon=True).start()
        else:
            self._answer(call, handler)
        return True

    _slow: frozenset[Handler] = frozenset()

    def aside(self, *handlers: Handler) -> None:
        """Answer these in threads of their own: they may wait for others."""
        self._slow = frozenset(handlers)

    def _answer(self, call: Call, handler: Handler) -> None:
        try:
            answer = handler(call)
        except (OSError, ValueError, OverflowError, StopIteration):
            # It was killed while we looked, or its arguments are no arguments.
            answer = errno.EPERM
        flags = _GO_ON if answer is None else 0
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.descriptor, _SEND, struct.pack("=QqiI", call.id, 0, -(answer or 0), flags))

    def _refuse(self, call: Call) -> Answer:
        self._report.say("refused", call.name, detail=f"system call by process {call.thread}")
        return errno.ENOSYS if call.name.startswith("io_uring") else errno.EPERM


def starts(report: Report) -> dict[str, Handler]:
    """Tells of programs that are started, where there is such a file."""

    def execve(call: Call) -> Answer:
        return started(call, call.path(call.args[0]), call.args[1])

    def execveat(call: Call) -> Answer:
        by_descriptor = call.args[4] & 0x1000
        path = f"descriptor {call.args[0]}" if by_descriptor else call.path(call.args[1], call.args[0])
        return started(call, path, call.args[2])

    def started(call: Call, path: str, vector: int) -> Answer:
        if not path.startswith("/") or os.path.exists(f"/proc/{call.thread}/root{path}"):
            words = call.words(vector)
            report.say("start", " ".join([path, *words[1:]]), detail=words[0] if words else "")
        return None

    return {"execve": execve, "execveat": execveat}


def forks(report: Report, most: int, count: Callable[[], int]) -> dict[str, Handler]:
    """Lets a process be made while there are fewer than `most`. `count` is asked only when there may be more."""
    guess = most

    def fork(call: Call) -> Answer:
        nonlocal guess
        if call.name == "clone" and call.args[0] & NEW_NAMESPACE:
            report.say("refused", call.name, detail=f"new namespaces, by process {call.thread}")
            return errno.EPERM
        if guess >= most:
            guess = count()
        if guess >= most:
            report.say("refused", "processes", detail="limit of the box")
            return errno.EAGAIN
        guess += 1
        return None

    return dict.fromkeys(("fork", "vfork", "clone"), fork)


def locks(report: Report, readable: list[str]) -> dict[str, Handler]:
    """Refuses locks on files of the machine that the box may only read, and leases on any. That the descriptor may be another
    one by the time the kernel looks makes others wait, and no more.

    A lock for reading (man 2 fcntl) is pretended where nobody holds one for writing: databases take one before each look, and
    nobody has to wait for it. Who writes meanwhile does not wait either, so that a look may then fail."""
    unlock, for_reading, no_lock = 8, 0, 2

    def lock(call: Call) -> Answer:
        path = os.readlink(f"/proc/{call.thread}/fd/{call.args[0] & 0x7FFFFFFF}")
        if call.name == "fcntl" and call.args[1] & 0xFFFFFFFF in LEASES:
            report.say("refused", path, detail="fcntl: a lease, for which others would wait, or a watch")
            return errno.EPERM
        if not any(within(path, folder) for folder in readable):
            return None
        releases = call.args[1] & unlock if call.name == "flock" else call.memory(call.args[2], 2) == bytes([no_lock, 0])
        if releases:
            return None
        if call.name == "fcntl" and (wanted := call.memory(call.args[2], _LOCK))[:2] == bytes([for_reading, 0]):
            return _pretended(call, wanted)
        report.say("refused", path, detail=f"{call.name}: a lock on what may only be read")
        return errno.EACCES

    return {"flock": lock, "fcntl": lock}


_LOCK: Final = 32
"""Bytes of a `struct flock`."""


def _pretended(call: Call, wanted: bytes) -> int:
    copy = call.descriptor(call.args[0])
    try:
        found = fcntl.fcntl(copy, fcntl.F_GETLK, wanted)
    finally:
        os.close(copy)
    return 0 if int.from_bytes(found[:2], "little") == fcntl.F_UNLCK else errno.EAGAIN


def address_of(raw: bytes) -> tuple[str, int]:
    """Host and port of a socket address, or path and 0 of a UNIX one (`@` for an abstract name); ("", 0): another family."""
    family = int.from_bytes(raw[:2], "little")
    if family == socket.AF_UNIX:
        name = raw[2:]
        return ("@" + os.fsdecode(name[1:]) if name[:1] == b"\0" else os.fsdecode(name.split(b"\0", 1)[0])), 0
    if family == socket.AF_INET and len(raw) >= 8:
        return socket.inet_ntop(socket.AF_INET, raw[4:8]), int.from_bytes(raw[2:4], "big")
    if family == socket.AF_INET6 and len(raw) >= 24:
        mapped = raw[8:20] == bytes(10) + b"\xff\xff"
        host = socket.inet_ntop(socket.AF_INET, raw[20:24]) if mapped else socket.inet_ntop(socket.AF_INET6, raw[8:24])
        return host, int.from_bytes(raw[2:4], "big")
    return "", 0


def connections(report: Report, *, outside: bool, own: Callable[[str], bool] | None) -> dict[str, Handler]:
    """Tells of connections, inside a network namespace of the box's own. `outside`: something there answers for the rest of the
    world, and tells of it itself. `own`: whether a path is in the box's own keeping, where folders of the machine are there
    too: UNIX sockets in those are not for the box. None: there are none."""

    def connect(call: Call) -> Answer:
        raw = call.memory(call.args[1], min(call.args[2], 128))
        host, port = address_of(raw)
        if not host:
            return None
        if raw[:2] == b"\x01\0":
            return unix(call, raw, host)
        if port == 0:  # how libraries find out which of their own addresses would be used
            return None
        if not outside and port == 53:
            report.say("refused", host, port=port, detail="looks for a resolver, and there is no network")
        elif host.startswith("127.") or host in ("::1", "0.0.0.0", "::"):
            report.say("connect", host, port=port, detail="inside the box")
        elif not outside:
            sends_nothing = _is_of_datagrams(call)
            report.say("refused", host, port=port, method="datagram" if sends_nothing else "", detail="no network")
        return None

    def unix(call: Call, raw: bytes, name: str) -> Answer:
        if name.startswith("@"):
            report.say("socket", name, detail="connected")
            return None
        if own is None:
            path = call.absolute(name)
            if os.path.exists(f"/proc/{call.thread}/root{path}"):  # libraries try sockets of services by habit
                report.say("socket", path, detail="connected")
            return None
        return connect_to_own(call, raw, report, own)

    return {"connect": connect}


def _is_of_datagrams(call: Call) -> bool:
    """Whether a socket is one for datagrams: that it is given an address sends nothing yet, and is how libraries find out which
    of their own addresses would be used."""
    with contextlib.suppress(OSError), socket.socket(fileno=call.descriptor(call.args[0])) as copy:
        return copy.type == socket.SOCK_DGRAM
    return False


def connect_to_own(call: Call, raw: bytes, report: Report, own: Callable[[str], bool]) -> Answer:
    """Connect a process's UNIX socket for it, to the very file that was found to be the box's own."""
    path = call.absolute(address_of(raw)[0])
    try:
        held = os.open(f"/proc/{call.thread}/root{path}", os.O_PATH)
    except OSError as error:
        return error.errno
    try:
        real = os.readlink(f"/proc/self/fd/{held}")
        if not stat.S_ISSOCK(os.fstat(held).st_mode):
            return errno.ECONNREFUSED
        if not own(real):
            report.say("refused", path, detail="UNIX socket outside the box")
            return errno.EACCES
        report.say("socket", path, detail="connected")
        with socket.socket(fileno=call.descriptor(call.args[0])) as copy:
            try:
                copy.connect(f"/proc/self/fd/{held}")
            except OSError as error:
                return error.errno or errno.EPERM
        return 0
    finally:
        os.close(held)

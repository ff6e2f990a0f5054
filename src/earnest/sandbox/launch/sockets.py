"""Sockets of a box that has no network namespace: which there may be, and where each leads.

Each connection is made here, on a copy of the process's socket, to where the box's own internet answers or to an address that
the box itself listens on; so nothing it writes into memory meanwhile changes where it leads.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import NamedTuple

from earnest.sandbox.launch.layers import within
from earnest.sandbox.launch.listener import Answer, Call, Handler, address_of, connect_to_own, signed
from earnest.sandbox.launch.report import Report

_libc = ctypes.CDLL(None, use_errno=True)


class Folders(NamedTuple):
    """Folders that a box may write to, and those of them that are its alone."""

    writable: list[str]
    own: list[str]

    def is_writable(self, path: str) -> bool:
        return any(within(path, folder) for folder in self.writable)

    def is_own(self, path: str) -> bool:
        return any(within(path, folder) for folder in self.own)


class Sockets:
    """Handlers of one box. `inlet`: where the box's own internet listens; `meant` is told where a connection that comes in
    there, from a port, was meant to go. `here`: ports of this machine that the plan names."""

    def __init__(
        self,
        report: Report,
        folders: Folders,
        inlet: tuple[str, int] | None,
        meant: Callable[[int, str, int], None],
        here: frozenset[int],
    ) -> None:
        self._report = report
        self._folders = folders
        self._inlet = inlet
        self._meant = meant
        self._here = here
        self._ports: set[tuple[str, int]] = set()
        self._lock = threading.Lock()

    def handlers(self) -> dict[str, Handler]:
        """By name of system call."""
        return {"socket": self._socket, "connect": self._connect, "bind": self._bind, "listen": self._listen}

    def _socket(self, call: Call) -> Answer:
        domain, kind = call.args[0] & 0xFFFFFFFF, call.args[1] & 0xF
        if domain in (socket.AF_INET, socket.AF_INET6) and kind == socket.SOCK_DGRAM:
            # Where it was to go is not known, and every look-up of a name tries one: no refusal of anything, but told.
            self._report.say("datagram", "", detail="a socket for datagrams, which this tier does not give")
            return errno.EAFNOSUPPORT
        self._report.say("refused", call.name, detail=f"family {domain}, type {kind}")
        return errno.EPERM

    def _connect(self, call: Call) -> Answer:
        raw = call.memory(call.args[1], min(call.args[2], 128))
        copy = socket.socket(fileno=call.descriptor(call.args[0]))
        with copy:
            if copy.family == socket.AF_UNIX:
                host, _ = address_of(raw)
                if host.startswith("@"):
                    return _refused(self._report, host, call)
                return connect_to_own(call, raw, self._report, self._folders.is_own)
            if copy.family not in (socket.AF_INET, socket.AF_INET6):
                return _connected(copy, raw)
            host, port = address_of(raw)
            if not host:
                return _connected(copy, raw)  # of no family: lets go of a connection
            host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
            if host.startswith("127.") or host == "::1":
                if (host, port) in self._ports:
                    self._report.say("connect", host, port=port, detail="inside the box")
                    return _connected(copy, raw)
                if port != 53 and port not in self._here:
                    self._report.say("refused", host, port=port, detail="a port of this machine")
                    return errno.ECONNREFUSED
            if self._inlet is None:
                self._report.say("refused", host, port=port, detail="no network")
                return errno.ENETUNREACH
            return self._led(copy, host, port)

    def _led(self, copy: socket.socket, host: str, port: int) -> Answer:
        """Connect to our own inlet instead, which learns from the port it comes from where it was meant to go."""
        assert self._inlet is not None
        if copy.family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                copy.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        raw = _loopback(copy.family, self._inlet[1])
        with self._lock:
            answer = _connected(copy, raw)
            if answer in (0, errno.EINPROGRESS):
                self._meant(copy.getsockname()[1], host, port)
        return answer

    def _bind(self, call: Call) -> Answer:
        raw = call.memory(call.args[1], min(call.args[2], 128))
        copy = socket.socket(fileno=call.descriptor(call.args[0]))
        with copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6):
                host, port = address_of(raw)
                if host in ("0.0.0.0", "::"):
                    # Every address, from inside a box, is its own; of this machine's that leaves the loopback.
                    host, raw = "127.0.0.1", _loopback(copy.family, port)
                if not (host.startswith("127.") or host == "::1"):
                    self._report.say("refused", host, port=port, detail="listens beyond the loopback")
                    return errno.EACCES
                # Not beside a listener of this machine's, which would share its connections.
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
                answer = _called(_libc.bind, copy, raw)
                if answer == 0:
                    self._ports.add(_bound(copy))
                return answer
            if copy.family == socket.AF_UNIX:
                return self._bind_unix(call, raw)
            return _called(_libc.bind, copy, raw)

    def _bind_unix(self, call: Call, raw: bytes) -> Answer:
        name, _ = address_of(raw)
        if not name or name.startswith("@"):
            return _refused(self._report, name or "socket without a name", call)
        path = call.absolute(name)
        if not self._folders.is_writable(os.path.realpath(os.path.dirname(path))):
            return _refused(self._report, path, call)
        self._report.say("socket", path, detail="bound")
        return None  # Landlock holds where it is made, and the socket has the name that the process gave it

    def _listen(self, call: Call) -> Answer:
        copy = socket.socket(fileno=call.descriptor(call.args[0]))
        with copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6) and _bound(copy) not in self._ports:
                self._report.say("refused", "listen", detail="a port on every address")
                return errno.EACCES
            try:
                copy.listen(signed(call.args[1]))
            except OSError as error:
                return error.errno
            return 0


def _bound(copy: socket.socket) -> tuple[str, int]:
    """Address and port of a socket; IPv4 in IPv6 as IPv4."""
    host, port, *_ = copy.getsockname()
    return host.removeprefix("::ffff:"), port


def _refused(report: Report, subject: str, call: Call) -> int:
    report.say("refused", subject, detail=f"{call.name} by process {call.thread}")
    return errno.EACCES


def _loopback(family: int, port: int) -> bytes:
    """A socket address of the IPv4 loopback, for a socket of either family."""
    if family == socket.AF_INET6:
        mapped = socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1")
        return struct.pack("=H", socket.AF_INET6) + port.to_bytes(2, "big") + bytes(4) + mapped + bytes(4)
    return struct.pack("=H", socket.AF_INET) + port.to_bytes(2, "big") + socket.inet_aton("127.0.0.1") + bytes(8)


def _connected(copy: socket.socket, raw: bytes) -> Answer:
    return _called(_libc.connect, copy, raw)


def _called(function: Callable[..., int], copy: socket.socket, raw: bytes) -> Answer:
    return 0 if function(copy.fileno(), raw, len(raw)) == 0 else ctypes.get_errno()

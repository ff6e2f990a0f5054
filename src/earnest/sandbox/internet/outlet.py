"""The way out of a box for hosts that its plan names: outside of its namespaces, one process for each box.

Connections come in as descriptors over a socket (`sink.py`), or from a listener, as requests to a proxy (CONNECT, or a whole
URL: RFC 9110, section 9.3.6). Either way the host is held to what the client says to it: on the web's ports a TLS greeting must
name it (RFC 6066, section 3), plain HTTP must be for it. Names that lead to this machine or its link are refused, whoever
answers for them, unless the plan names the machine itself.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from earnest.sandbox.internet.hosts import WEB, Hosts, is_address, is_own_network
from earnest.sandbox.internet.talk import looks_like_http
from earnest.sandbox.launch import landlock
from earnest.sandbox.launch.report import Report

_AT_ONCE: Final = 128
_HEAD: Final = 16 << 10
_FIRST_WORD_S: Final = 10.0
_SERVER_FIRST_S: Final = 0.5
_CONNECT_S: Final = 10.0
_PIECE: Final = 1 << 16


class Refused(Exception):
    """Why a connection does not go out."""


def serve(inlet: socket.socket, hosts: list[str], report: Report) -> None:
    """Take connections from a box's sink, until it is gone."""
    outlet = Outlet(Hosts(hosts), report)
    landlock.only_read()
    while True:
        data, descriptors, _, _ = socket.recv_fds(inlet, 512, 1)
        if not data:
            return
        name, _, port = data.decode().rpartition(" ")
        outlet.take(socket.socket(fileno=descriptors[0]), name, int(port))


class Outlet:
    """`resolve` finds a name's addresses, as `socket.getaddrinfo` does."""

    def __init__(self, hosts: Hosts, report: Report, resolve: Callable[..., Any] = socket.getaddrinfo) -> None:
        self._hosts = hosts
        self._resolve = resolve
        self._report = report
        self._free = threading.Semaphore(_AT_ONCE)

    def accept(self, listener: socket.socket) -> None:
        """Be a proxy for who connects to a listener; does not return."""
        while True:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                self.take(connection, "", 0)

    def take(self, connection: socket.socket, name: str, port: int) -> None:
        """Lead a connection to a host, in a thread of its own; an empty name: it is to say where it wants to go."""
        self._free.acquire()  # given back by the thread
        threading.Thread(target=self._one, args=(connection, name, port), daemon=True).start()

    def _one(self, connection: socket.socket, name: str, port: int) -> None:
        try:
            with connection:
                try:
                    self._lead(connection, name, port)
                except Refused as refused:
                    self._report.say("refused", name, port=port, detail=str(refused))
        except (OSError, ValueError):
            pass  # one of the two ends went
        finally:
            self._free.release()

    def _lead(self, connection: socket.socket, name: str, port: int) -> None:
        ahead = b""
        if not name:
            name, port, ahead = self._asked(connection)
        if not self._hosts.allows(name, port):
            self._deny(connection, ahead)
            self._report.say("refused", name, port=port, detail="not a host and port that this box may reach")
            return
        if ahead == b"CONNECT":
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            ahead = b""
        if not ahead:
            self._hold(connection, name, port)
        try:
            out = self._connect(name, port)
        except Refused as refused:
            self._report.say("refused", name, port=port, detail=str(refused))
            return
        except OSError as error:
            self._report.say("connect", name, port=port, detail=f"failed: {error.strerror or error}")
            return
        self._report.say("connect", name, port=port, detail="outside")
        with out:
            if ahead:
                out.sendall(ahead)
            _relay(connection, out)

    def _deny(self, connection: socket.socket, ahead: bytes) -> None:
        if ahead:
            text = b"earnest: this host is not one that the server may reach\n"
            head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(text)
            connection.sendall(head + text)

    def _asked(self, connection: socket.socket) -> tuple[str, int, bytes]:
        """Where a client of the proxy wants to go, and what is to be said there first (CONNECT: nothing yet)."""
        connection.settimeout(_FIRST_WORD_S)
        head = b""
        while b"\r\n\r\n" not in head:
            # Byte for byte what is the head: what follows it is for the other end.
            peeked = connection.recv(_HEAD, socket.MSG_PEEK)
            end = (head + peeked).find(b"\r\n\r\n")
            take = len(peeked) if end < 0 else end + 4 - len(head)
            if not peeked or len(head) + take > _HEAD:
                raise OSError("no request")
            head += connection.recv(take)
        line, _, rest = head.partition(b"\r\n")
        method, target, version = line.decode("latin-1").split(" ")
        if method == "CONNECT":
            name, _, port = target.rpartition(":")
            return name.strip("[]").lower(), int(port), b"CONNECT"
        scheme, _, place = target.partition("://")
        if scheme != "http":
            raise OSError("no request to a proxy")
        authority, _, path = place.partition("/")
        name, _, port = authority.partition(":")
        # One request a connection: each may be for another host.
        dropped = (b"host:", b"connection:", b"proxy-")
        lines = [each for each in rest.split(b"\r\n") if each and not each.lower().startswith(dropped)]
        first = f"{method} /{path} {version}\r\nHost: {authority}\r\nConnection: close\r\n"
        request = first.encode("latin-1") + b"\r\n".join([*lines, b"", b""])
        if _hosts_of(request) != [authority]:
            raise Refused("speaks HTTP that can be read in two ways")
        return name.lower(), int(port or 80), request

    def _hold(self, connection: socket.socket, name: str, port: int) -> None:
        """Raise Refused if what the client says first is for another host."""
        connection.settimeout(_FIRST_WORD_S if port in WEB else _SERVER_FIRST_S)
        try:
            first = _peek(connection)
        except TimeoutError:
            if port in WEB:
                raise Refused("nothing was said") from None
            return
        if first[:1] == b"\x16":
            said = server_name(first)
            if said != name and (said or port in WEB) and not (not said and is_address(name)):
                raise Refused(f"greets {said or 'nobody'} by TLS")
        elif looks_like_http(first):
            hosts = {host.lower().removesuffix(f":{port}").strip("[]") for host in _hosts_of(first)}
            if hosts != {name}:
                raise Refused(f"asks for {', '.join(sorted(hosts)) or 'no host'} by HTTP")
        elif port in WEB:
            raise Refused("says neither TLS nor HTTP")

    def _connect(self, name: str, port: int) -> socket.socket:
        error: OSError = OSError(f"{name} has no address")
        itself = any(host.is_here and host.fits(name) for host in self._hosts.all)
        for family, _, _, _, address in self._resolve(name, port, type=socket.SOCK_STREAM):
            if not itself and not is_address(name) and is_own_network(str(address[0])):
                raise Refused(f"leads to {address[0]}, which is this machine's own")
            out = socket.socket(family, socket.SOCK_STREAM)
            out.settimeout(_CONNECT_S)
            try:
                out.connect(address)
            except OSError as failed:
                out.close()
                error = failed
            else:
                return out
        raise error


def _peek(connection: socket.socket) -> bytes:
    """What a client says first: all of a TLS greeting or an HTTP head, unread."""
    until = time.monotonic() + _FIRST_WORD_S
    seen = b""
    while time.monotonic() < until:
        peeked = connection.recv(_HEAD, socket.MSG_PEEK)
        if not peeked:
            raise OSError("closed")
        whole = len(peeked) >= 5 + int.from_bytes(peeked[3:5], "big") if peeked[:1] == b"\x16" else b"\r\n\r\n" in peeked
        if whole or len(peeked) >= _HEAD or not (peeked[:1] == b"\x16" or looks_like_http(peeked)):
            return peeked
        if peeked == seen:
            time.sleep(0.01)
        seen = peeked
    return seen


_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:")
_TARGET: Final = re.compile(rb"/[^ ]*|\*|[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)[^ ]*")


def _hosts_of(first: bytes) -> list[str]:
    """Whom HTTP requests are for: by their `Host` (of any that are in sight), and by a whole URL as target, which counts before
    it (RFC 9112, section 3.2.2). Raises Refused for a head that two servers may read in two ways."""
    head, whole, _ = first.partition(b"\r\n\r\n")
    line, *fields = head.split(b"\r\n")
    _, _, rest = line.partition(b" ")
    target = _TARGET.fullmatch(rest.rpartition(b" ")[0])
    if not whole:
        raise Refused("speaks HTTP, and its head does not end")
    if target is None or re.search(rb"[\r\n\0]", head.replace(b"\r\n", b"")) or not all(map(_FIELD.match, fields)):
        raise Refused("speaks HTTP that can be read in two ways")
    named = [line[5:].strip() for line in first.split(b"\r\n") if line.lower().startswith(b"host:")]
    if target[1] is not None:
        named.append(target[1])
    return [host.decode("latin-1") for host in named]


def server_name(record: bytes) -> str:
    """The server name of a TLS greeting (RFC 8446, section 4.1.2; RFC 6066, section 3), empty where it has none."""
    try:
        if record[5] != 1:
            return ""
        place = 9 + 2 + 32
        place += 1 + record[place]
        place += 2 + int.from_bytes(record[place : place + 2], "big")
        place += 1 + record[place]
        end = place + 2 + int.from_bytes(record[place : place + 2], "big")
        place += 2
        while place + 4 <= end:
            kind, size = int.from_bytes(record[place : place + 2], "big"), int.from_bytes(record[place + 2 : place + 4], "big")
            if kind == 0:
                length = int.from_bytes(record[place + 7 : place + 9], "big")
                return record[place + 9 : place + 9 + length].decode("ascii").lower().rstrip(".")
            place += 4 + size
    except (IndexError, UnicodeDecodeError):
        pass
    return ""


def _relay(one: socket.socket, other: socket.socket) -> None:
    """Bytes both ways until both ends have said all."""
    for each in (one, other):
        each.settimeout(None)
    back = threading.Thread(target=_pump, args=(other, one), daemon=True)
    back.start()
    _pump(one, other)
    back.join()


def _pump(source: socket.socket, to: socket.socket) -> None:
    try:
        while data := source.recv(_PIECE):
            to.sendall(data)
    except OSError:
        with contextlib.suppress(OSError):
            source.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        to.shutdown(socket.SHUT_WR)


def listener() -> socket.socket:
    """A listener on this machine's loopback, for a tier that has no namespace of its own."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.bind(("127.0.0.1", 0))
    found.listen(_AT_ONCE)
    return found


def environment(port: int) -> dict[str, str]:
    """Variables that send programs to a proxy."""
    address = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {spelled: address for name in names for spelled in (name, name.lower())} | {"NODE_USE_ENV_PROXY": "1"}

"""The internet of a box, in its network namespace but not among its processes: a resolver, every TCP port, every datagram.

`pretend`: everything is answered here and recorded. `hosts`: names that the plan allows get an address, and connections to
them go out through `outlet.py`, which looks at them again; everything else is refused and recorded.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from earnest.sandbox.internet import names, netlink, talk
from earnest.sandbox.internet.answers import Answers
from earnest.sandbox.internet.certificates import Certificates
from earnest.sandbox.internet.hosts import Hosts
from earnest.sandbox.launch import kernel, landlock
from earnest.sandbox.launch.report import Report

PORT: Final = 61001
"""Where all TCP leads, if the kernel can lead it."""
LISTED: Final = (
    80, 443, 21, 22, 25, 465, 587, 853, 2525, 3000, 3306, 5000, 5432, 6379, 8000, 8080, 8443, 8888, 9000, 9200, 11434, 27017,
)  # fmt: skip
"""Ports that answer where it cannot."""
_MAIL: Final = (25, 465, 587, 2525)
_AT_ONCE: Final = 128
_REQUESTS: Final = 1000
_IDLE_S: Final = 30.0
_FIRST_WORD_S: Final = 1.0
_SO_ORIGINAL_DST: Final = 80


Leads = Callable[[socket.socket, str, int], None]
"""Takes a connection to a host that a plan names."""


def serve(plan: dict[str, Any], report: Report, way_out: socket.socket | None, done: int) -> None:
    """All of it, in a network namespace of the box's own; does not return. `done` is closed once it answers."""
    sending = threading.Lock()

    def lead(connection: socket.socket, name: str, port: int) -> None:
        assert way_out is not None
        with sending:
            socket.send_fds(way_out, [f"{name} {port}".encode()], [connection.fileno()])

    netlink.all_addresses()
    hosts = Hosts(plan["hosts"]) if way_out is not None else None
    sink = Sink(plan, report, hosts, lead)
    listeners = _listeners(hosts)
    resolvers = [_resolver(family) for family in (socket.AF_INET, socket.AF_INET6)]
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    kernel.drop_capabilities()
    landlock.only_read([plan["certificates"]] if plan["certificates"] else [])
    for listener in listeners:
        _thread(sink.accept, listener)
    for resolver in resolvers:
        if resolver is not None:
            _thread(sink.resolve, resolver)
    os.write(done, b".")
    os.close(done)
    sink.watch(wire)


def _thread(run: Callable[..., None], *args: object) -> None:
    threading.Thread(target=run, args=args, daemon=True).start()


def _listeners(hosts: Hosts | None) -> list[socket.socket]:
    ports: set[int] = {53}
    try:
        netlink.lead_to(PORT)
        ports.add(PORT)
    except OSError:
        ports |= {*LISTED} if hosts is None else {port for host in hosts.all for port in host.ports}
    found = [_listener(family, "", port) for family in (socket.AF_INET, socket.AF_INET6) for port in sorted(ports)]
    if hosts is not None:
        here = {port for host in hosts.all if host.is_here for port in host.ports}
        places = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
        found += [_listener(family, address, port) for family, address in places for port in sorted(here - ports)]
    return [listener for listener in found if listener is not None]


def _listener(family: int, address: str, port: int) -> socket.socket | None:
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(_AT_ONCE)
    except OSError:  # no IPv6 here
        return None
    return listener


def _resolver(family: int) -> socket.socket | None:
    try:
        resolver = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            resolver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            resolver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            resolver.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO: answers come from where the question went
        resolver.bind(("", 53))
    except OSError:
        return None
    return resolver


class Sink:
    """Answers connections, each with where it was meant to go."""

    def __init__(self, plan: dict[str, Any], report: Report, hosts: Hosts | None, lead: Leads) -> None:
        self._report = report
        self._hosts = hosts
        self._lead = lead
        self.names = names.Names(hosts.knows) if hosts is not None else names.Names()
        self._answers = Answers(plan["answers"])
        self._certificates = Certificates(plan["certificates"], plan["authority"])
        self._free = threading.Semaphore(_AT_ONCE)

    # names

    def resolve(self, resolver: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError):
                packet, aside, _, sender = resolver.recvmsg(4096, 256)
                answer = self._named(packet)
                if answer is not None:
                    resolver.sendmsg([answer], _from_there(aside), 0, sender)

    def _named(self, packet: bytes) -> bytes | None:
        question = names.question(packet)
        if question is None:
            return None
        if question.kind in (names.A, names.AAAA):
            if self._hosts is None or self._hosts.knows(question.name):
                self._report.say("name", question.name, detail="A" if question.kind == names.A else "AAAA")
                if self._hosts is None:
                    self._certificates.prepare()
            else:
                self._report.say("refused", question.name, detail="not a host that this box may reach")
        else:
            self._report.say("name", question.name, detail=f"record type {question.kind}")
        return self.names.answer(question)

    # connections

    def accept(self, listener: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                self._free.acquire()
                _thread(self._one, connection, listener.family)

    def _one(self, connection: socket.socket, family: int) -> None:
        try:
            address, port = _meant(connection, family)
            self.one(connection, address, port)
        except OSError:
            pass  # whoever connected went
        finally:
            self._free.release()

    def one(self, connection: socket.socket, address: str, port: int) -> None:
        """Answer a connection that was meant for an address, to its end."""
        try:
            with connection:
                connection.settimeout(_IDLE_S)
                if port == 53:
                    self._resolve_stream(connection)
                elif self._hosts is not None:
                    self._out(connection, address, port)
                else:
                    host = self.names.name(address)
                    self._report.say("connect", host, port=port, detail=address)
                    self._talk(connection, host, port)
        except (OSError, ValueError, talk.Malformed):
            pass  # whoever connected went, or talks what nobody understands: it is recorded that it did

    def _resolve_stream(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while len(head := stream.read(2)) == 2:
            answer = self._named(stream.read(int.from_bytes(head, "big")))
            if answer is None:
                return
            connection.sendall(len(answer).to_bytes(2, "big") + answer)

    def _out(self, connection: socket.socket, address: str, port: int) -> None:
        assert self._hosts is not None
        name = self.names.name(address)
        if address in ("127.0.0.1", "::1"):
            name = next((host.name for host in self._hosts.all if host.is_here and port in host.ports), name)
        if not self._hosts.allows(name, port):
            self._report.say("refused", name, port=port, detail="not a host and port that this box may reach")
            return
        self._lead(connection, name, port)

    def _talk(self, connection: socket.socket, host: str, port: int, secure: bool = False) -> None:
        if port in _MAIL and not (port == 465 and not secure):
            self._mail(connection, host, port)
            return
        connection.settimeout(_FIRST_WORD_S if not secure else _IDLE_S)
        try:
            first = connection.recv(16, socket.MSG_PEEK) if not secure else b""
        except TimeoutError:  # a protocol in which the server speaks first
            connection.settimeout(_IDLE_S)
            self._other(connection, host, port)
            return
        connection.settimeout(_IDLE_S)
        if not secure and first[:2] == b"\x16\x03":
            import ssl

            try:
                with self._certificates.context(host).wrap_socket(connection, server_side=True) as inside:
                    self._talk(inside, host, port, secure=True)
            except ssl.SSLError as error:
                self._report.say("connect", host, port=port, detail=f"TLS failed: {error.reason or error}")
        elif secure or talk.looks_like_http(first):
            self._http(connection, host, port, "https" if secure else "http")
        else:
            self._other(connection, host, port)

    def _http(self, connection: socket.socket, host: str, port: int, scheme: str) -> None:
        stream: BinaryIO = connection.makefile("rb")
        for _ in range(_REQUESTS):
            request = talk.read(stream, connection.sendall)
            if request is None:
                return
            named, target = _host_of(request.headers.get("host", "")) or host, request.target
            if "://" in target:
                authority, _, path = target.split("://", 1)[1].partition("/")
                named, target = _host_of(authority), f"/{path}"
            if request.method == "CONNECT":  # the box was given a proxy of its own
                self._report.say("connect", _host_of(target), port=port, detail="through a proxy")
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                self._talk(connection, _host_of(target), port)
                return
            kind = request.headers.get("content-type", "")
            detail = f"{scheme} {kind}".strip()
            self._report.say(
                "request", named, port=port, method=request.method, target=target, body=request.body, detail=detail
            )
            said = self._answers.to(named, request.method, target, request.headers.get("accept", ""))
            connection.sendall(talk.written(said, request))
            if not request.keep_alive:
                return

    def _mail(self, connection: socket.socket, host: str, port: int) -> None:
        def heard(sender: str, recipients: str, text: bytes) -> None:
            self._report.say("request", host, port=port, method="MAIL", target=recipients, body=text, detail=f"from {sender}")

        talk.mail(connection.makefile("rb"), connection.sendall, heard)

    def _other(self, connection: socket.socket, host: str, port: int) -> None:
        """Another protocol: what is said first is kept, and nothing is answered."""
        said = b""
        with contextlib.suppress(TimeoutError):
            while len(said) < 4096 and (piece := connection.recv(4096)):
                said += piece
                connection.settimeout(_FIRST_WORD_S)
        if said:
            self._report.say("request", host, port=port, body=said, detail="no HTTP")

    # datagrams

    def watch(self, wire: socket.socket) -> None:
        """Record datagrams to anywhere else, from the wire."""
        while True:
            packet, sender = wire.recvfrom(65536)
            outgoing = 4
            if sender[2] == outgoing:
                continue
            found = _datagram(packet, sender[1])
            if found is not None:
                address, port, body = found
                self._report.say("datagram", self.names.name(address), port=port, body=body)


def _host_of(authority: str) -> str:
    """The host of `host:port` (RFC 3986, section 3.2)."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].lower()


def _datagram(packet: bytes, kind: int) -> tuple[str, int, bytes] | None:
    """Destination and content of a UDP packet that is for somewhere else and is no question to a resolver."""
    udp, ipv4, ipv6 = 17, 0x0800, 0x86DD
    if kind == ipv4 and len(packet) >= 28 and packet[9] == udp:
        size, address = (packet[0] & 15) * 4, socket.inet_ntop(socket.AF_INET, packet[16:20])
    elif kind == ipv6 and len(packet) >= 48 and packet[6] == udp:
        size, address = 40, socket.inet_ntop(socket.AF_INET6, packet[24:40])
    else:
        return None
    source, port = struct.unpack_from(">HH", packet, size)
    if address.startswith("127.") or address in ("::1", netlink.ADDRESS4, netlink.ADDRESS6) or 53 in (source, port):
        return None
    return address, port, packet[size + 8 :]


def _meant(connection: socket.socket, family: int) -> tuple[str, int]:
    """Where a connection was meant to go, whatever it was led to."""
    level = socket.IPPROTO_IP if family == socket.AF_INET else socket.IPPROTO_IPV6
    try:
        raw = connection.getsockopt(level, _SO_ORIGINAL_DST, 28)
    except OSError:  # it was not led
        address, port, *_ = connection.getsockname()
        return address, port
    port = int.from_bytes(raw[2:4], "big")
    return socket.inet_ntop(family, raw[4:8] if family == socket.AF_INET else raw[8:24]), port


def _from_there(aside: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """What makes an answer come from the address that was asked."""
    for level, kind, data in aside:
        if level == socket.IPPROTO_IP:
            return [(level, kind, data[:4] + data[8:12] + bytes(4))]
        if level == socket.IPPROTO_IPV6:
            return [(level, socket.IPV6_PKTINFO, data)]
    return []

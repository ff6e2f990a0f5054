"""The daemon's end of the socket: takes connections, their headers and descriptors, and says how it went.

The wire is described in `earnest.shim.handover`.
"""

import array
import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

from earnest.gateway.process.peers import Credentials, credentials
from earnest.shim.handover import HEADER_LIMIT

_HEADER_TIME_S = 20.0
_FDS = 8
_TEXT_BYTES = 60_000  # fits the socket's buffer, so that an end never has to wait


class Arrival:
    """A connection whose header is complete. `fds` are its descriptors; whoever takes one removes it."""

    def __init__(self, sock: socket.socket, who: Credentials) -> None:
        self.sock = sock
        self.who = who
        self.header: dict[str, Any] = {}
        self.fds: list[int] = []

    def text(self, member: str) -> str:
        """A member that should be a string; empty if it is not."""
        value = self.header.get(member)
        return value if isinstance(value, str) else ""

    def texts(self, member: str) -> list[str]:
        """A member that should be a list of strings."""
        value = self.header.get(member)
        return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []

    def environment(self) -> dict[str, str]:
        """The environment of the process that connected."""
        value = self.header.get("env")
        return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}

    def umask(self) -> int | None:
        """The umask of the process that connected; None if it did not tell."""
        value = self.header.get("umask")
        return value if isinstance(value, int) and 0 <= value <= 0o777 else None

    def refuse(self, code: int, text: str) -> None:
        """Ends the other side with a text for its stderr."""
        end(self.sock, code, text)
        self.close()

    def close(self) -> None:
        """Closes the connection and every descriptor nobody took."""
        self.sock.close()
        while self.fds:
            os.close(self.fds.pop())


def end(sock: socket.socket, code: int, text: str) -> None:
    """Sends the end: exit code and text."""
    data = text.encode("utf-8", "replace")[:_TEXT_BYTES]
    try:
        sock.send(b"X" + bytes((code & 255,)) + len(data).to_bytes(4, "little") + data)
    except OSError:
        pass


def receive(sock: socket.socket, size: int, fds: list[int]) -> bytes:
    """Some bytes, and the descriptors that came with them."""
    space = socket.CMSG_SPACE(_FDS * 4)
    data, rights, _, _ = sock.recvmsg(size, space, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    for level, kind, payload in rights:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
            for fd in numbers:
                os.set_inheritable(fd, False)
            fds.extend(numbers)
    return data


class Arrivals:
    """Accepts on a listener and calls `on_arrival` for each complete header."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        on_arrival: Callable[[Arrival], None],
        log: logging.Logger,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._on_arrival = on_arrival
        self._log = log
        self._pending: dict[socket.socket, asyncio.TimerHandle] = {}
        listener.setblocking(False)

    def start(self) -> None:
        """Begins to accept."""
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def stop(self) -> None:
        """Accepts no more and drops what is incomplete; the other side tries again. The listener stays
        open."""
        self._loop.remove_reader(self._listener.fileno())
        for sock in tuple(self._pending):
            self._drop(sock)
            sock.close()

    @property
    def waiting(self) -> bool:
        """Whether a header is on its way."""
        return bool(self._pending)

    def _accept(self) -> None:
        for _ in range(64):
            try:
                sock, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as e:
                self._log.error("cannot accept: %s", e)
                return
            sock.setblocking(False)
            who = credentials(sock)
            if who.uid != os.geteuid():
                self._log.warning("refused a connection of user %s, process %s", who.uid, who.pid)
                sock.close()
                continue
            arrival = Arrival(sock, who)
            buffer = bytearray()
            self._pending[sock] = self._loop.call_later(_HEADER_TIME_S, self._late, arrival)
            self._loop.add_reader(sock.fileno(), self._read, arrival, buffer)
            self._read(arrival, buffer)

    def _drop(self, sock: socket.socket) -> None:
        self._pending.pop(sock).cancel()
        self._loop.remove_reader(sock.fileno())

    def _late(self, arrival: Arrival) -> None:
        self._drop(arrival.sock)
        arrival.close()

    def _read(self, arrival: Arrival, buffer: bytearray) -> None:
        wanted = 4 if len(buffer) < 4 else 4 + int.from_bytes(buffer[:4], "little")
        try:
            data = receive(arrival.sock, max(1, min(1 << 18, max(wanted - len(buffer), 4096))), arrival.fds)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        buffer += data
        length = int.from_bytes(buffer[:4], "little") if len(buffer) >= 4 else 0
        if not data or length > HEADER_LIMIT or len(arrival.fds) > _FDS:
            self._drop(arrival.sock)
            arrival.close()
            return
        if len(buffer) < 4 or len(buffer) < 4 + length:
            return
        self._drop(arrival.sock)
        try:
            # The standard library's decoder: undecodable bytes of an environment arrive as lone surrogates.
            header = json.loads(bytes(buffer[4 : 4 + length]))
        except ValueError:
            header = None
        if not isinstance(header, dict):
            arrival.refuse(2, "E1508: the header is not JSON.")
            return
        arrival.header = header
        try:
            self._on_arrival(arrival)
        except Exception:
            self._log.exception("a connection failed")
            arrival.refuse(3, "E1506: the daemon made a mistake with this connection; see daemon.log.")

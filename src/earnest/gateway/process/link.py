"""The connection back to a shim, and who the shim is."""

import asyncio
import socket
from collections.abc import Callable, Mapping

import msgspec

from earnest.gateway.process import arrivals
from earnest.gateway.process.arrivals import Arrival
from earnest.gateway.process.peers import Process, host_chain, host_process


class ShimLink:
    """The connection back to the shim: taken over, ended, and whether it still lives."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, on_gone: Callable[[], None]) -> None:
        self._loop = loop
        self._sock = sock
        self._on_gone = on_gone
        self._open = True
        self._taken = False

    def take(self) -> None:
        """Says that from now on the descriptors are read."""
        if self._open and not self._taken:
            self._taken = True
            try:
                self._sock.send(b"A")
            except OSError:
                pass  # gone already, which the next read tells
            self._loop.add_reader(self._sock.fileno(), self._read)

    def _read(self) -> None:
        try:
            if self._sock.recv(4096):
                return  # a shim says nothing more
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass
        self.drop()
        self._on_gone()

    def end(self, code: int, text: str) -> None:
        """Ends the shim with this exit code and text for its stderr."""
        if self._open:
            arrivals.end(self._sock, code, text)
            self.drop()

    def drop(self) -> None:
        """Closes without a word: the shim looks for another daemon."""
        if self._open:
            self._open = False
            if self._taken:
                self._loop.remove_reader(self._sock.fileno())
            self._sock.close()


class Caller(msgspec.Struct, frozen=True):
    """Who a shim is: what it was started as, and what the kernel says of it."""

    name: str
    client: str
    argv: tuple[str, ...]
    """`stdio`: the command after `--`; `hook`: its arguments."""
    cwd: str
    env: Mapping[str, str]
    uid: int
    pid: int
    chain: tuple[Process, ...]
    """The shim's process and its ancestors, nearest first."""
    umask: int | None = None

    @property
    def host(self) -> Process | None:
        """The program that started the shim, past all wrappers."""
        return host_process(self.chain)

    @property
    def hosts(self) -> tuple[Process, ...]:
        """That program and its ancestors."""
        return host_chain(self.chain)

    @property
    def start(self) -> int:
        """Start of the shim's process in clock ticks; 0 if unknown."""
        return self.chain[0].start if self.chain else 0


def caller(arrival: Arrival) -> Caller:
    """Reads who arrived."""
    argv = arrival.texts("command") if arrival.text("kind") == "stdio" else arrival.texts("argv")
    return Caller(
        name=arrival.text("name"),
        client=arrival.text("client"),
        argv=tuple(argv),
        cwd=arrival.text("cwd"),
        env=arrival.environment(),
        uid=arrival.who.uid,
        pid=arrival.who.pid,
        chain=arrival.who.chain,
        umask=arrival.umask(),
    )

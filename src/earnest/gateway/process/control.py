"""The command line's way into the daemon: JSON lines on the same socket.

Request `{"op": NAME, …}`, answered by any number of `{"item": …}` and one `{"ok": …}` or
`{"error": {"code", "message", "remedy", "exit_code"}}`. One request at a time; ending the connection cancels
it.
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from earnest.core.errors import EarnestError
from earnest.gateway.process.application import Op
from earnest.gateway.process.arrivals import Arrival
from earnest.gateway.process.peers import Process
from earnest.shim import handover as shim
from earnest.shim import paths

_LINE_BYTES = 32 << 20


class ControlPeer:
    """A command line that is connected."""

    def __init__(
        self, arrival: Arrival, writer: asyncio.StreamWriter, hosts: Callable[[], frozenset[tuple[int, int]]]
    ) -> None:
        self.uid = arrival.who.uid
        self.pid = arrival.who.pid
        self.chain: tuple[Process, ...] = arrival.who.chain
        """The process and its ancestors, nearest first; empty where they cannot be known."""
        self.cwd = arrival.text("cwd")
        self.env: Mapping[str, str] = arrival.environment()
        self.config = arrival.text("config")
        self._writer = writer
        self._hosts = hosts

    @property
    def by_model(self) -> bool:
        """Whether a connected client, or a server of ours, is among its ancestors: then a model may have
        started it.

        True as well where the ancestors cannot be known, so that what it guards is refused and not granted.
        """
        if not self.chain:
            return True
        hosts = self._hosts()
        return any(one.key in hosts for one in self.chain)

    async def reply(self, item: Any) -> None:
        """Sends one more answer of a request that streams."""
        await self._send({"item": item})

    async def _send(self, answer: dict[str, Any]) -> None:
        self._writer.write(json.dumps(answer, ensure_ascii=True).encode() + b"\n")
        await self._writer.drain()


class _Asked(dict[str, Any]):
    """A request for an operation, which says so where a member is missing."""

    def __missing__(self, name: str) -> Any:
        raise EarnestError("E1509", f"the operation {self.get('op')!r} wants {name!r}.", "Is the daemon of another version?")


async def serve(
    arrival: Arrival,
    ops: Mapping[str, Op],
    hosts: Callable[[], frozenset[tuple[int, int]]],
    log: logging.Logger,
    scrub: Callable[[str], str] = lambda text: text,
) -> None:
    """Answers one connection until it ends."""
    arrival.sock.send(b"A")
    reader, writer = await asyncio.open_unix_connection(sock=arrival.sock, limit=_LINE_BYTES)
    peer = ControlPeer(arrival, writer, hosts)
    try:
        line = asyncio.ensure_future(reader.readline())
        while request := await line:
            line = asyncio.ensure_future(reader.readline())
            work = asyncio.ensure_future(_answer(request, ops, peer, log, scrub))
            await asyncio.wait({line, work}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and line.done() and not line.result():
                work.cancel()  # the command line left
                await asyncio.wait({work})
                return
            await peer._send(await work)
    except (ConnectionError, ValueError):
        pass
    finally:
        line.cancel()
        writer.close()


async def _answer(
    request: bytes, ops: Mapping[str, Op], peer: ControlPeer, log: logging.Logger, scrub: Callable[[str], str]
) -> dict[str, Any]:
    try:
        asked = json.loads(request)
        name = asked.get("op") if isinstance(asked, dict) else None
        op = ops.get(name) if isinstance(name, str) else None
        if op is None:
            raise EarnestError("E1509", f"the daemon has no operation {name!r}.", "Is it of another version?")
        return {"ok": await op(_Asked(asked), peer)}
    except EarnestError as e:
        # What a server said goes to persons alone.
        message = scrub(e.message if peer.by_model else e.told)
        return {"error": {"code": e.code, "message": message, "remedy": scrub(e.remedy), "exit_code": e.exit_code}}
    except Exception as e:
        log.exception("operation failed: %r", _named(request))
        message = scrub(f"the daemon made a mistake: {type(e).__name__}: {e}")
        return {"error": {"code": "E1506", "message": message, "remedy": "See daemon.log.", "exit_code": 3}}


def _named(request: bytes) -> object:
    """The operation a request names; what else is in it is nothing for a log."""
    try:
        asked = json.loads(request)
    except ValueError:
        return None
    return asked.get("op") if isinstance(asked, dict) else None


class Control:
    """The command line's end of a connection; blocking, closes as a context manager."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = sock.makefile("rb")

    def __enter__(self) -> "Control":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, and with it what runs for it; a thread that reads from it hears the end of file."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._sock.close()

    def stream(self, op: str, **members: Any) -> Iterator[Any]:
        """Every answer of a request, the last one included; raises `EarnestError` as the daemon does."""
        self._sock.sendall(json.dumps({"op": op, **members}).encode() + b"\n")
        while True:
            line = self._file.readline()
            if not line:
                raise EarnestError("E1503", "the daemon ended.", exit_code=3)
            answer = json.loads(line)
            if "item" in answer:
                yield answer["item"]
                continue
            if "error" in answer:
                e = answer["error"]
                raise EarnestError(e["code"], e["message"], e["remedy"], exit_code=e["exit_code"])
            yield answer["ok"]
            return

    def call(self, op: str, **members: Any) -> Any:
        """The last answer of a request."""
        last = None
        for last in self.stream(op, **members):  # noqa: B007
            pass
        return last


def connect_control(env: Mapping[str, str], config_flag: str = "", *, start: bool = True) -> Control | None:
    """A connection to the daemon of this configuration, started if none runs; None if none does and not
    `start`.

    Raises `EarnestError`: with the daemon's own words where it could not start.
    """
    try:
        config, named = paths.config_path(env, config_flag)
        instance = paths.instance(env, config_flag)
        if not start and not os.path.isdir(instance):
            return None
        folder = paths.open_folder(instance)
        try:
            return _connect(folder, instance, config, named, env, start)
        finally:
            os.close(folder)
    except paths.ShimError as e:
        raise EarnestError(e.code, e.message, e.remedy, exit_code=e.exit_code) from None


def _told(text: str, exit_code: int) -> EarnestError:
    """The error that a daemon said before it ended: `CODE: message`, then what to do. Several findings stay one text."""
    message, _, remedy = text.partition("\n  ")
    code, colon, rest = message.partition(": ")
    if colon and re.fullmatch(r"E1\d{3}", code):
        return EarnestError(code, rest, remedy, exit_code=exit_code)
    known = re.search(r"\bE1\d{3}\b", text)
    return EarnestError(known[0] if known else "E1503", text, exit_code=exit_code)


def _connect(
    folder: int, instance: str, config: str, named: bool, env: Mapping[str, str], start: bool
) -> Control | None:
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    head = shim.header("control", env, cwd, config, named)
    for _ in range(6):  # a daemon about to end at idle closes before it has read anything: again
        raw = shim.reach(folder, instance, config, named, env) if start else shim.connect(folder)
        if raw is None:
            return None
        sock = socket.socket(fileno=raw.detach())
        try:
            shim.send(sock, head, ())
        except ConnectionError:
            pass
        word = shim.receive(sock, 1)
        if word == b"A":
            return Control(sock)
        if word == b"X":
            code, text = shim.read_end(sock)
            sock.close()
            raise _told(text, code)
        sock.close()
    raise EarnestError("E1503", "the daemon dies each time it is started.", f"See {instance}/daemon.log", exit_code=3)

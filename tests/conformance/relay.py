"""A relay that adds a token to each request, for a suite that knows of none.

Bytes pass as they come, both ways and unbuffered. Of a request's head three things change: an `Authorization` is added, and
where `Host` or `Origin` name this relay they name the listener behind it; any other host or origin goes on, because refusing
it is the listener's work and the suite's question.
"""

from __future__ import annotations

import asyncio
import re
from types import TracebackType

_LENGTH = re.compile(rb"\r\nContent-Length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\nTransfer-Encoding:", re.IGNORECASE)


class Relay:
    """`async with Relay(port, token) as relay: relay.port`."""

    def __init__(self, port: int, token: str) -> None:
        """`port`: of the listener on loopback. `token`: what each request gets."""
        self._behind = port
        self._token = token.encode()
        self._server: asyncio.Server
        self._open: set[asyncio.StreamWriter] = set()
        self._idle = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> Relay:
        # The suite says `localhost`, which may be either address.
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.close()
        for writer in list(self._open):
            writer.close()  # its reader hears the end
        if self._open:
            self._idle.clear()
            await self._idle.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, on = await asyncio.open_connection("127.0.0.1", self._behind)
        self._open |= {writer, on}
        answers = asyncio.create_task(_copy(back, writer))
        try:
            await self._requests(reader, on)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one side is gone; so is the other now
        finally:
            on.close()
            writer.close()
            await asyncio.gather(answers, return_exceptions=True)
            self._open -= {writer, on}
            if not self._open:
                self._idle.set()

    async def _requests(self, reader: asyncio.StreamReader, on: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if _CHUNKED.search(head):
                raise OSError("the suite sends lengths; a chunked request is not read here")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length.group(1))) if length is not None else b""
            on.write(self._changed(head) + body)
            await on.drain()

    def _changed(self, head: bytes) -> bytes:
        for name in (b"localhost", b"127.0.0.1"):
            head = head.replace(b"%b:%d\r\n" % (name, self.port), b"%b:%d\r\n" % (name, self._behind))
        return head[:-2] + b"Authorization: Bearer %b\r\n\r\n" % self._token


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

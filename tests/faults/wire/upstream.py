"""A server of either era on a raw socket: honest, but for calls of the tool `bad`, whose argument names a misbehaviour.

It reads requests with a few lines of its own and no library, so that what it understood is a second opinion on what earnest
wrote. `calls` has every tool call that reached it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from faults.wire.reading import form, read

META = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
TOOLS = ["echo", "bad"]


@dataclass(frozen=True)
class Called:
    """One tool call as it was understood."""

    name: Any
    arguments: Any
    headers: dict[str, str]
    body: bytes


@dataclass
class Turn:
    """One request that the server may answer as it likes."""

    id: str
    modern: bool
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    gone: asyncio.Event
    """Set once its connection is over."""

    def result(self, text: str = "hello", id: str | None = None, more: str = "") -> bytes:
        """A plain answer's body."""
        kind = '"resultType":"complete",' if self.modern else ""
        return (
            f'{{"jsonrpc":"2.0","id":{id or self.id},"result":{{{kind}"content":[{{"type":"text","text":"{text}"}}]{more}}}}}'
        ).encode()

    def send(self, data: bytes) -> None:
        """Write exactly these bytes."""
        self.writer.write(data)

    def answer(self, body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> None:
        """Write an answer that is framed well."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *([f"Content-Type: {kind}"] if kind else []), *headers]
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def reset(self) -> None:
        """Break the connection off."""
        self.writer.transport.abort()


Misbehaviour = Callable[[Turn], Awaitable[None]]


class Upstream:
    """The server. `bad`: misbehaviours by name; `turns`: the last request of each."""

    def __init__(self, *, modern: bool) -> None:
        self.modern = modern
        self.calls: list[Called] = []
        self.bad: dict[str, Misbehaviour] = {}
        self.turns: dict[str, Turn] = {}
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen on loopback; returns the address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    async def stop(self) -> None:
        """End it and its connections."""
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        gone = asyncio.Event()
        try:
            while (request := await _request(reader)) is not None:
                await self._handle(*request, reader, writer, gone)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            gone.set()
            with contextlib.suppress(Exception):
                writer.close()

    async def _handle(
        self,
        line: str,
        headers: dict[str, str],
        body: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gone: asyncio.Event,
    ) -> None:
        if not line.startswith("POST "):
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return
        message = read(body)
        if "id" not in message or "method" not in message:
            writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        params = message.get("params") or {}
        turn = Turn(form(message["id"]), self.modern, reader, writer, gone)
        if message["method"] == "tools/call":
            self.calls.append(Called(params.get("name"), params.get("arguments"), headers, body))
            if params.get("name") == "bad":
                lie = params["arguments"]["lie"]
                self.turns[lie] = turn
                await self.bad[lie](turn)
                return
            turn.answer(turn.result("honest"))
            return
        result = self._result(message["method"])
        if result is None:
            error = '{"code":-32601,"message":"Method not found"}'
            turn.answer(f'{{"jsonrpc":"2.0","id":{turn.id},"error":{error}}}'.encode())
            return
        turn.answer(f'{{"jsonrpc":"2.0","id":{turn.id},"result":{result}}}'.encode())

    def _result(self, method: str) -> str | None:
        kind = '"resultType":"complete","ttlMs":0,"cacheScope":"private",' if self.modern else ""
        hints = '"annotations":{"readOnlyHint":true,"openWorldHint":false}'
        tools = ",".join(f'{{"name":"{name}","inputSchema":{{"type":"object"}},{hints}}}' for name in TOOLS)
        if method == "tools/list":
            return f'{{{kind}"tools":[{tools}]}}'
        if method == "server/discover" and self.modern:
            return f'{{{kind}"supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}}}}'
        if method == "initialize" and not self.modern:
            about = '"capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}'
            return f'{{"protocolVersion":"{LEGACY}",{about}}}'
        return "{}" if method == "ping" else None


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes] | None:
    """One request: its line, its fields by lower-case name, its body. A field given twice is a defect of earnest's."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head[:-4].split("\r\n")
    headers: dict[str, str] = {}
    for one in fields:
        name, colon, value = one.partition(":")
        assert colon and name == name.strip() and name.lower() not in headers, f"earnest wrote {one!r}"
        headers[name.lower()] = value.strip()
    assert "transfer-encoding" not in headers, "earnest frames by length"
    return line, headers, await reader.readexactly(int(headers.get("content-length", "0")))

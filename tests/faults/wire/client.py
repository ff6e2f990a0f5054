"""A client on a raw socket: it sends the bytes it is given and says what became of them and of its connection."""

import asyncio
import contextlib
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

from faults.wire.upstream import LEGACY, META, MODERN

PATIENCE_S = 20.0


@dataclass(frozen=True)
class Answer:
    """One answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        """Its JSON, the last event's where it is a stream, None where there is none."""
        body = self.body
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            body = next((line[6:] for line in reversed(body.split(b"\n")) if line.startswith(b"data: ")), b"")
        try:
            return json.loads(body, parse_int=lambda digits: int(digits) if len(digits) < 4000 else digits)
        except ValueError:
            return None

    @property
    def code(self) -> int | None:
        """The JSON-RPC error code, if it is an error."""
        message = self.message
        error = message.get("error") if isinstance(message, dict) else None
        return error.get("code") if isinstance(error, dict) else None


class Wire:
    """One connection to the gateway."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, port: int) -> "Wire":
        """Connect."""
        wire = cls()
        wire.reader, wire.writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 25)
        return wire

    async def send(self, data: bytes) -> None:
        """Send these bytes; a gateway that has hung up is no error here."""
        with contextlib.suppress(OSError):
            self.writer.write(data)
            await self.writer.drain()

    def half_close(self) -> None:
        """Say that no more comes."""
        self.writer.write_eof()

    def reset(self) -> None:
        """Break off, so that the other side is told so."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def answer(self) -> Answer | None:
        """The next answer, None where the connection ends before one. Interim answers are skipped."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                    line, *fields = head[:-4].split("\r\n")
                    status = int(line.split(" ")[1])
                    if status >= 200:
                        break
                headers = {name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in fields)}
                if headers.get("transfer-encoding") == "chunked":
                    body = b""
                    while size := int(await self.reader.readline(), 16):
                        body += (await self.reader.readexactly(size + 2))[:-2]
                    await self.reader.readline()
                elif "content-length" in headers:
                    body = await self.reader.readexactly(int(headers["content-length"]))
                else:
                    body = b"" if status in (204, 304) else await self.reader.read()
                return Answer(status, headers, body)
        except (asyncio.IncompleteReadError, OSError):
            return None

    async def ended(self) -> bool:
        """Whether the gateway closes the connection, having nothing more to say."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.reader.read(1) == b""
        except OSError:
            return True

    def close(self) -> None:
        """Close."""
        self.writer.close()


@dataclass
class Ground:
    """What a shape is made from: where the gateway is, and how an honest request looks."""

    port: int
    token: str
    modern: bool
    path: str = "/s/up/mcp"
    session: str = ""

    def body(
        self,
        arguments: bytes = b'{"n":1}',
        *,
        name: bytes = b'"echo"',
        id: bytes = b"7",
        method: bytes = b'"tools/call"',
        meta: bytes = b"",
    ) -> bytes:
        """A tool call. All parts are raw JSON; `meta` are more members of `_meta`."""
        known = b""
        if self.modern:
            version, capabilities = f'"{META}protocolVersion":"{MODERN}"', f'"{META}clientCapabilities":{{}}'
            known = f'{version},{capabilities},"{META}clientInfo":{{"name":"raw","version":"1"}}'.encode()
        members = [part for part in (known, meta) if part]
        inner = b',"_meta":{%b}' % b",".join(members) if members else b""
        params = b'{"name":%b,"arguments":%b%b}' % (name, arguments, inner)
        return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (id, method, params)

    def fields(self, method: str = "tools/call", name: str = "echo") -> dict[str, str]:
        """The fields of an honest request, but for those that frame it."""
        found = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.modern:
            return {**found, "MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": name}
        return {**found, "MCP-Protocol-Version": LEGACY, **({"Mcp-Session-Id": self.session} if self.session else {})}

    def head(self, *more: bytes, line: bytes = b"", change: dict[str, str] | None = None, drop: tuple[str, ...] = ()) -> bytes:
        """A head without framing of its own: `more` are whole lines as they stand, without their ends."""
        fields = {**self.fields(), **(change or {})}
        lines = [line or f"POST {self.path} HTTP/1.1".encode()]
        lines += [f"{name}: {value}".encode("latin-1") for name, value in fields.items() if name not in drop]
        return b"\r\n".join([*lines, *more]) + b"\r\n\r\n"

    def request(
        self, body: bytes, *more: bytes, line: bytes = b"", change: dict[str, str] | None = None, drop: tuple[str, ...] = ()
    ) -> bytes:
        """A request with the right length."""
        return self.head(b"Content-Length: %d" % len(body), *more, line=line, change=change, drop=drop) + body

    def honest(self, arguments: bytes = b'{"n":1}', id: bytes = b"7") -> bytes:
        """A request with nothing wrong."""
        return self.request(self.body(arguments, id=id))

    async def enter(self) -> None:
        """Legacy: open a session."""
        if self.modern:
            return
        wire = await Wire.open(self.port)
        about = b'{"protocolVersion":"%b","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}' % LEGACY.encode()
        await wire.send(self.request(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}' % about))
        answer = await wire.answer()
        assert answer is not None and answer.status == 200, answer
        self.session = answer.headers["mcp-session-id"]
        await wire.send(self.request(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
        answer = await wire.answer()
        assert answer is not None and answer.status == 202, answer
        wire.close()

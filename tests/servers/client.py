"""Raw MCP clients of both eras for tests: they validate nothing and drop nothing (see README.md)."""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self
from urllib.parse import urlsplit

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
META: Final = "io.modelcontextprotocol/"
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Json = dict[str, Any]
NOTHING: Final = object()  # as an answer: the client stays silent
Answerer = Callable[[Json], Any]


class Client:
    """What both transports share: ids, waiting for answers, answering the server."""

    def __init__(self) -> None:
        self.era = "legacy"
        self.version = LEGACY
        self.capabilities: Json = {}
        self.info: Json = {"name": "test-client", "version": "1"}
        self.answers: dict[str, Any] = {}  # method of a server's request -> result, function of its params, NOTHING
        self.notifications: list[Json] = []
        self.requests: list[Json] = []  # what the server asked
        self.orphans: list[Json] = []  # answers to ids nobody waits for
        self.opened: Json = {}
        self._next = 0
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._early: dict[str, Json] = {}
        self._news = asyncio.Event()

    # To be supplied by a transport

    async def transmit(self, message: Json) -> None:
        """Send one message on its way; answers come in through `take`."""
        raise NotImplementedError

    # Opening

    async def open(
        self,
        era: str = "legacy",
        capabilities: Json | None = None,
        version: str | None = None,
        timeout: float = 60.0,
    ) -> Json:
        """Get ready in one era and return the server's answer to `initialize` or `server/discover`."""
        self.era = era
        self.capabilities = capabilities or {}
        self.version = version or (MODERN if era == "modern" else LEGACY)
        if era == "modern":
            self.opened = await self.request("server/discover", timeout=timeout)
            return self.opened
        params = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": self.info}
        self.opened = await self.request("initialize", params, timeout=timeout)
        if "result" in self.opened:
            self.version = self.opened["result"]["protocolVersion"]
            await self.notify("notifications/initialized")
        return self.opened

    def _dressed(self, params: Json | None) -> Json | None:
        """In the modern era each request says again who asks and what it can do."""
        if self.era != "modern":
            return params
        meta = {
            META + "protocolVersion": self.version,
            META + "clientCapabilities": self.capabilities,
            META + "clientInfo": self.info,
            **((params or {}).get("_meta") or {}),
        }
        return {**(params or {}), "_meta": meta}

    # Asking the server

    async def begin(self, method: str, params: Json | None = None, id: Any = None) -> Any:
        """Send a request and return its id at once."""
        if id is None:
            self._next += 1
            id = self._next
        self._waiting[json.dumps(id)] = asyncio.get_running_loop().create_future()
        message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
        params = self._dressed(params)
        if params is not None:
            message["params"] = params
        await self.transmit(message)
        return id

    def expect(self, id: Any) -> None:
        """Announce that an answer to `id` will be waited for, when the request goes out by `send_raw`."""
        self._waiting[json.dumps(id)] = asyncio.get_running_loop().create_future()

    async def answer(self, id: Any, timeout: float = 60.0) -> Json:
        """The whole message that answers `id`."""
        key = json.dumps(id)
        try:
            return await asyncio.wait_for(asyncio.shield(self._waiting[key]), timeout)
        except TimeoutError:
            raise TimeoutError(f"no answer to {id} within {timeout} s; {self.state()}") from None

    async def request(self, method: str, params: Json | None = None, timeout: float = 60.0) -> Json:
        """Send a request and return the whole message that answers it."""
        return await self.answer(await self.begin(method, params), timeout)

    async def call(self, tool: str, arguments: Json | None = None, timeout: float = 60.0, meta: Json | None = None) -> Json:
        """Call a tool and return the whole message that answers."""
        params: Json = {"name": tool, "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta
        return await self.request("tools/call", params, timeout)

    async def call_asking(self, tool: str, arguments: Json | None = None, rounds: int = 5) -> Json:
        """Call a tool in the modern era, answer each `input_required` from `answers` and try again."""
        params: Json = {"name": tool, "arguments": arguments or {}}
        message = await self.request("tools/call", params)
        for _ in range(rounds):
            result = message.get("result", {})
            if result.get("resultType") != "input_required":
                break
            params = {"name": tool, "arguments": arguments or {}}
            if "requestState" in result:
                params["requestState"] = result["requestState"]
            responses = {}
            for key, asked in result.get("inputRequests", {}).items():
                self.requests.append(asked)
                reply = self._reply_to(asked)
                if reply is not NOTHING:
                    responses[key] = reply
            params["inputResponses"] = responses
            message = await self.request("tools/call", params)
        return message

    async def list_all(self, method: str = "tools/list", member: str = "tools") -> list[Json]:
        """All pages of a list."""
        entries: list[Json] = []
        cursor: str | None = None
        while True:
            message = await self.request(method, {"cursor": cursor} if cursor is not None else {})
            entries += message["result"][member]
            cursor = message["result"].get("nextCursor")
            if cursor is None:
                return entries

    async def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        await self.transmit(message)

    async def cancel(self, id: Any, reason: str = "no longer needed") -> None:
        """Cancel a request in flight."""
        await self.notify("notifications/cancelled", {"requestId": id, "reason": reason})

    async def until(self, condition: Callable[[], Any], timeout: float = 60.0) -> None:
        """Wait until what came in makes `condition` true."""
        end = time.monotonic() + timeout
        while not condition():
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), end - time.monotonic())
            except TimeoutError:
                raise TimeoutError(f"not so within {timeout} s; {self.state()}") from None

    async def notification(self, method: str, timeout: float = 60.0, count: int = 1) -> Json:
        """The `count`th notification of this method, as soon as it is there."""

        def found() -> list[Json]:
            return [message for message in self.notifications if message["method"] == method]

        await self.until(lambda: len(found()) >= count, timeout)
        return found()[count - 1]

    def state(self) -> str:
        """What came in so far, for messages of failed tests."""
        notes = [message["method"] for message in self.notifications]
        return f"notifications {notes}, requests {self.requests}, other answers {self.orphans}"

    # What the server sends

    async def take(self, message: Json) -> None:
        """Sort one message that came in."""
        if "method" in message and "id" in message:
            self.requests.append(message)
            reply = self._reply_to(message)
            if reply is not NOTHING:
                member = "error" if isinstance(reply, dict) and "code" in reply else "result"
                await self.transmit({"jsonrpc": "2.0", "id": message["id"], member: reply})
        elif "method" in message:
            self.notifications.append(message)
        else:
            waiting = self._waiting.get(json.dumps(message.get("id")))
            if waiting is None or waiting.done():
                self.orphans.append(message)
            else:
                waiting.set_result(message)
        self._news.set()

    def _reply_to(self, request: Json) -> Any:
        if request["method"] == "ping":
            return {}
        unknown = {"code": -32601, "message": "Method not found"}
        reply = self.answers.get(request["method"], unknown)
        return reply(request.get("params", {})) if callable(reply) else reply


class StdioClient(Client):
    """A client that starts a command and speaks over its pipes."""

    process: asyncio.subprocess.Process

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[bytes] = []  # every line that came in, as it came
        self.garbage: list[bytes] = []  # those that are no JSON object
        self.stderr = b""
        self.ended = asyncio.Event()  # its output is at an end
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None) -> Self:
        """Start `command`; `env` replaces the whole environment."""
        client = cls()
        client.process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            limit=64 * 1024 * 1024,
        )
        client._tasks = [asyncio.create_task(client._read()), asyncio.create_task(client._read_stderr())]
        return client

    async def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        while line := await stdout.readline():
            self.lines.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict):
                await self.take(message)
            else:
                self.garbage.append(line)
                self._news.set()
        self.ended.set()
        self._news.set()

    async def _read_stderr(self) -> None:
        stderr = self.process.stderr
        assert stderr is not None
        while data := await stderr.read(65536):
            self.stderr += data

    def state(self) -> str:
        return f"{super().state()}, ended {self.ended.is_set()}, stderr {self.stderr[-800:]!r}"

    async def transmit(self, message: Json) -> None:
        await self.send_raw(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def send_raw(self, data: bytes) -> None:
        """Write exactly these bytes."""
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(data)
        await stdin.drain()

    def close_stdin(self) -> None:
        """Say that nothing more comes."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    async def wait(self, timeout: float = 60.0) -> int:
        """The exit code, once the command has ended."""
        code = await asyncio.wait_for(self.process.wait(), timeout)
        await asyncio.wait(self._tasks, timeout=2)
        return code

    async def close(self, timeout: float = 10.0) -> int:
        """Close its input, wait for its end, then kill it; returns the exit code."""
        self.close_stdin()
        try:
            return await self.wait(timeout)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
            return await self.wait()
        finally:
            for task in self._tasks:
                task.cancel()


class Reply:
    """One raw HTTP answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class HttpClient(Client):
    """A client over Streamable HTTP; each message has a connection of its own."""

    def __init__(self, url: str, token: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.url = urlsplit(url)
        self.headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        self.session: str | None = None
        self.replies: list[Reply] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def standard_headers(self, message: Json) -> dict[str, str]:
        """The headers that the protocol wants for this message."""
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.era == "modern":
            headers["MCP-Protocol-Version"] = self.version
            if "method" in message:
                headers["Mcp-Method"] = message["method"]
            name = (message.get("params") or {}).get(NAMED.get(message.get("method", ""), ""))
            if name is not None:
                headers["Mcp-Name"] = str(name)
        elif message.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = self.version
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        return headers

    async def transmit(self, message: Json) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        key = json.dumps(message.get("id")) if "id" in message and "method" in message else ""
        task = asyncio.create_task(self._post(body, self.standard_headers(message), key))
        if key:
            self._tasks[key] = task
        else:
            await task

    async def cancel(self, id: Any, reason: str = "no longer needed") -> None:
        """Legacy: a notification. Modern: the stream of the request is closed."""
        if self.era == "modern":
            self._tasks[json.dumps(id)].cancel()
        else:
            await super().cancel(id, reason)

    async def _post(self, body: bytes, headers: dict[str, str], key: str) -> None:
        reply = await self.post(body, headers, on_event=self.take)
        self.replies.append(reply)
        self.session = reply.headers.get("mcp-session-id", self.session)
        if reply.headers.get("content-type", "").startswith("application/json") and reply.body:
            await self.take(reply.json())
        waiting = self._waiting.get(key)
        if key and waiting is not None and not waiting.done():
            waiting.set_exception(ConnectionError(f"HTTP {reply.status} without an answer: {reply.body[:300]!r}"))
            waiting.exception()  # nobody need be waiting: it may have been cancelled

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        on_event: Callable[[Json], Any] | None = None,
        method: str = "POST",
        path: str | None = None,
        on_head: Callable[[], Any] | None = None,
    ) -> Reply:
        """Send one HTTP request with exactly this body, and these headers beside token, Host and length."""
        reader, writer = await asyncio.open_connection(self.url.hostname, self.url.port, limit=64 * 1024 * 1024)
        try:
            wanted = {"Host": self.url.netloc, "Connection": "close", **self.headers, **(headers or {})}
            if method == "POST":
                wanted["Content-Length"] = str(len(body))
            target = path or self.url.path or "/"
            head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in wanted.items())
            writer.write(head.encode("latin-1") + b"\r\n" + body)
            await writer.drain()
            status, fields = await _read_head(reader)
            if on_head:
                on_head()
            parser = _Events()
            received = b""
            async for piece in _read_body(reader, fields, status):
                received += piece
                if on_event and fields.get("content-type", "").startswith("text/event-stream"):
                    for data in parser.feed(piece):
                        await on_event(_parsed(data))
            return Reply(status, fields, received)
        finally:
            writer.close()

    async def listen(self) -> asyncio.Task[Reply]:
        """Open the GET stream of a legacy session; what comes on it is sorted like everything else."""
        headers = {**self.standard_headers({"method": ""}), "Accept": "text/event-stream"}
        ready = asyncio.Event()
        task = asyncio.create_task(self.post(b"", headers, on_event=self.take, method="GET", on_head=ready.set))
        self._tasks["GET"] = task  # type: ignore[assignment]
        await asyncio.wait_for(ready.wait(), 60)
        return task

    async def close(self) -> None:
        """Close every open stream."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    status = 100
    while 100 <= status < 200:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        status = int(first.split(" ")[1])
    fields = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    return status, fields


async def _read_body(reader: asyncio.StreamReader, fields: dict[str, str], status: int) -> Any:
    if status in (204, 304):
        return
    if fields.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
    elif "content-length" in fields:
        yield await reader.readexactly(int(fields["content-length"]))
    else:
        while data := await reader.read(65536):
            yield data


def _parsed(data: str) -> Json:
    """The message in an event, or `{"text": ...}` if it is none."""
    try:
        message = json.loads(data)
    except ValueError:
        message = None
    return message if isinstance(message, dict) else {"text": data}


class _Events:
    """The data of event streams, piece by piece."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, piece: bytes) -> list[str]:
        self._buffer = (self._buffer + piece).replace(b"\r\n", b"\n")
        *blocks, self._buffer = self._buffer.split(b"\n\n")
        events = []
        for block in blocks:
            lines = [line[5:].removeprefix(" ") for line in block.decode().split("\n") if line.startswith("data:")]
            if lines:
                events.append("\n".join(lines))
        return events

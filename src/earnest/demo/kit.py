"""A small MCP server over stdio: tools and resources in both eras of the protocol, on the standard library.

It speaks 2026-07-28 (each request says its version in `_meta`; `server/discover`) and the revisions with a handshake
(`initialize`). Lists come in pages. A tool call runs in a thread, so that it can be cancelled and others go on
meanwhile. What the protocol leaves to taste is kept as plain as possible, so that the servers can be read.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
META: Final = "io.modelcontextprotocol/"
TYPES: Final[Mapping[str, type]] = {"string": str, "integer": int, "boolean": bool}

Json = dict[str, Any]


class ToolError(Exception):
    """A call that failed in a way the model can do something about; the text is for the model."""


class ProtocolError(Exception):
    """A request that gets a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message} | ({"data": data} if data else {})


class Cancelled(Exception):
    """The client no longer wants the answer."""


class Context:
    """What a running call may know and say."""

    def __init__(self, progress: Callable[[float, float, str], None]) -> None:
        self.cancelled = threading.Event()
        self._progress = progress

    def progress(self, done: float, total: float, message: str = "") -> None:
        """Tell the client how far the call is, if it asked for that; raises `Cancelled` if nobody waits."""
        if self.cancelled.is_set():
            raise Cancelled
        self._progress(done, total, message)


@dataclass(frozen=True)
class Tool:
    """One tool. `parameters` maps each name to its JSON schema; those in `optional` may be missing."""

    name: str
    description: str
    run: Callable[[Json, Context], str]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    hints: Mapping[str, bool] = field(default_factory=dict)

    def listed(self) -> Json:
        """The tool as `tools/list` shows it."""
        required = [name for name in self.parameters if name not in self.optional]
        schema: Json = {"type": "object", "properties": dict(self.parameters), "required": required}
        schema["additionalProperties"] = False
        entry: Json = {"name": self.name, "description": self.description, "inputSchema": schema}
        return entry | ({"annotations": dict(self.hints)} if self.hints else {})

    def check(self, arguments: Json) -> None:
        """Raise `ToolError` unless the arguments fit the parameters."""
        for name in arguments:
            if name not in self.parameters:
                raise ToolError(f"unknown argument {name!r}; known: {', '.join(self.parameters) or 'none'}")
        for name, schema in self.parameters.items():
            if name not in arguments and name not in self.optional:
                raise ToolError(f"argument {name!r} is missing")
            kind = TYPES[schema["type"]]
            if name in arguments and type(arguments[name]) is not kind:
                raise ToolError(f"argument {name!r} must be of type {schema['type']}")


@dataclass(frozen=True)
class Resource:
    """One resource; `read` returns its text."""

    uri: str
    name: str
    read: Callable[[], str]
    mime: str = "text/plain"


class Server:
    """Tools and resources behind one pair of streams."""

    def __init__(
        self,
        name: str,
        instructions: str,
        tools: Callable[[], Sequence[Tool]],
        resources: Callable[[], Sequence[Resource]] = tuple,
        page: int = 50,
        listing: Callable[[], Sequence[Tool]] | None = None,
    ) -> None:
        """`listing` is what a list shows, if that is not `tools`."""
        self._info: Json = {"name": name, "version": "1.0.0"}
        self._instructions = instructions
        self._tools = tools
        self._listing = listing or tools
        self._resources = resources
        self._page = page
        self._running: dict[str, Context] = {}
        self._out: BinaryIO = sys.stdout.buffer
        self._lock = threading.Lock()

    def serve(self, source: BinaryIO | None = None, target: BinaryIO | None = None) -> None:
        """Answer requests from `source` (default: stdin) on `target` (default: stdout) until `source` ends."""
        self._out = target or sys.stdout.buffer
        workers: list[threading.Thread] = []
        for line in source or sys.stdin.buffer:
            if not line.strip():
                continue
            try:
                message = json.loads(line)
                method, params = message["method"], message.get("params") or {}
            except (ValueError, TypeError, KeyError):
                # Answers are for requests of ours, and we make none; what is no message gets the standard error.
                if b'"result"' not in line and b'"error"' not in line:
                    self._send({"id": None, "error": {"code": -32700, "message": "Parse error"}})
                continue
            if method == "notifications/cancelled":
                context = self._running.get(json.dumps(params.get("requestId")))
                if context:
                    context.cancelled.set()
            elif "id" in message:
                context = Context(self._progress(params))
                self._running[json.dumps(message["id"])] = context
                request = (message["id"], method, params, context)
                worker = threading.Thread(target=self._answer, args=request, daemon=True)
                worker.start()
                workers = [thread for thread in workers if thread.is_alive()] + [worker]
        # What is nearly done still leaves; what takes longer has nobody to answer to.
        deadline = time.monotonic() + 0.5
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    def _send(self, message: Json) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=False)
        with self._lock:
            try:
                self._out.write(data.encode() + b"\n")
                self._out.flush()
            except (OSError, ValueError):
                pass  # nobody reads any more; the end of the input will follow

    def _progress(self, params: Json) -> Callable[[float, float, str], None]:
        token = (params.get("_meta") or {}).get("progressToken")

        def tell(done: float, total: float, message: str) -> None:
            if token is not None:
                params = {"progressToken": token, "progress": done, "total": total, "message": message}
                self._send({"method": "notifications/progress", "params": params})

        return tell

    def _answer(self, id: Any, method: str, params: Json, context: Context) -> None:
        try:
            result = self._result(method, params, context)
            if not context.cancelled.is_set():
                self._send({"id": id, "result": result})
        except ProtocolError as error:
            self._send({"id": id, "error": error.error})
        except Cancelled:
            pass
        finally:
            self._running.pop(json.dumps(id), None)

    def _result(self, method: str, params: Json, context: Context) -> Json:
        meta = params.get("_meta") or {}
        version = meta.get(META + "protocolVersion")
        if version not in (None, MODERN):
            data = {"supported": [MODERN, *LEGACY], "requested": version}
            raise ProtocolError(-32022, "Unsupported protocol version", data)
        if version and not isinstance(meta.get(META + "clientCapabilities"), dict):
            raise ProtocolError(-32602, f"_meta lacks {META}clientCapabilities")
        fresh: Json = {"ttlMs": 0, "cacheScope": "private"} if version else {}
        done: Json = {"resultType": "complete", "_meta": {META + "serverInfo": self._info}} if version else {}
        match method:
            case "initialize":
                wanted = params.get("protocolVersion")
                chosen = wanted if wanted in LEGACY else LEGACY[0]
                return {"protocolVersion": chosen, "serverInfo": self._info, **self._about()}
            case "server/discover":
                done = {"resultType": "complete", "_meta": {META + "serverInfo": self._info}}
                about = {"supportedVersions": [MODERN, *LEGACY], "ttlMs": 0, "cacheScope": "private"}
                return {**about, **self._about(), **done}
            case "ping" if not version:
                return {}
            case "tools/list":
                return self._paged("tools", [tool.listed() for tool in self._listing()], params) | fresh | done
            case "tools/call":
                return self._call(params, context) | done
            case "resources/list":
                entries = [{"uri": r.uri, "name": r.name, "mimeType": r.mime} for r in self._resources()]
                return self._paged("resources", entries, params) | fresh | done
            case "resources/templates/list":
                return {"resourceTemplates": []} | fresh | done
            case "resources/read":
                return self._read(params) | fresh | done
        raise ProtocolError(-32601, f"Method not found: {method}")

    def _about(self) -> Json:
        return {"capabilities": {"tools": {}, "resources": {}}, "instructions": self._instructions}

    def _paged(self, member: str, entries: list[Json], params: Json) -> Json:
        cursor = str(params.get("cursor") or 0)
        if not cursor.isdecimal() or int(cursor) > len(entries):
            raise ProtocolError(-32602, "Invalid cursor")
        end = int(cursor) + self._page
        page: Json = {member: entries[int(cursor) : end]}
        return page | ({"nextCursor": str(end)} if end < len(entries) else {})

    def _call(self, params: Json, context: Context) -> Json:
        name, arguments = params.get("name"), params.get("arguments") or {}
        tool = next((tool for tool in self._tools() if tool.name == name), None)
        if tool is None or not isinstance(arguments, dict):
            raise ProtocolError(-32602, f"Unknown tool: {name}" if tool is None else "arguments must be an object")
        try:
            tool.check(arguments)
            return {"content": [{"type": "text", "text": tool.run(arguments, context)}], "isError": False}
        except (ToolError, OSError, UnicodeError) as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}

    def _read(self, params: Json) -> Json:
        resource = next((entry for entry in self._resources() if entry.uri == params.get("uri")), None)
        if resource is None:
            raise ProtocolError(-32602, "Unknown resource", {"uri": params.get("uri")})
        return {"contents": [{"uri": resource.uri, "mimeType": resource.mime, "text": resource.read()}]}

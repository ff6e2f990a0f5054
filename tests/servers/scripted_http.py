"""A scripted MCP server over HTTP on loopback: `scripted_http.py SCRIPT [PORT]`.

Prints its address as the first line, `{"url": ...}`, and ends when its input ends: no test leaves one behind.
Speaks Streamable HTTP of both eras, or with `"http": {"legacy_sse": true}` only the older HTTP+SSE transport.
"""

import json
import os
import select
import socket
import sys
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from behaviour import META, MODERN, Call, Json, Server, dump, load

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Stream:
    """An event stream on an open connection."""

    def __init__(self, handler: "Handler") -> None:
        self._handler = handler
        self.lock = threading.Lock()
        self.open = False

    def begin(self) -> None:
        """Send the head; the stream ends with the connection."""
        self._handler.reply_head(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        self._handler.close_connection = True
        self.open = True

    def event(self, kind: str, data: str) -> None:
        """Send one event; each line of the data is a line of the event."""
        lines = "".join(f"data: {line}\n" for line in data.split("\n"))
        self.send(f"event: {kind}\n{lines}\n")

    def send(self, text: str) -> None:
        """Send exactly this text."""
        with self.lock:
            if not self.open:
                self.begin()
            try:
                self._handler.wfile.write(text.encode())
                self._handler.wfile.flush()
            except OSError:
                pass

    def gone(self) -> bool:
        """Whether the client closed the connection."""
        connection = self._handler.connection
        try:
            ready, _, _ = select.select([connection], [], [], 0)
            return bool(ready) and connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True


class Answer:
    """The channel of one POST: plain JSON for a lone answer, a stream as soon as anything else is sent."""

    def __init__(self, handler: "Handler", stream_always: bool) -> None:
        self._handler = handler
        self._stream = Stream(handler)
        self._always = stream_always
        self.done = False

    def write(self, text: str) -> None:
        final = self._is_answer(text)
        if final and not self._stream.open and not self._always:
            if not self.done:
                self._handler.reply(self._status(text), text)
        else:
            self._stream.event("message", text)
        self.done = self.done or final

    @staticmethod
    def _is_answer(text: str) -> bool:
        try:
            return "method" not in json.loads(text)
        except ValueError:
            return False

    @staticmethod
    def _status(text: str) -> int:
        """Modern servers carry some errors in the status too (spec 2026-07-28, Streamable HTTP)."""
        error = json.loads(text).get("error") or {}
        return {-32020: 400, -32021: 400, -32022: 400}.get(error.get("code"), 200)

    def raw(self, text: str) -> None:
        self.done = True
        self._stream.send(text)

    def gone(self) -> bool:
        return self._stream.gone()

    def finish(self) -> None:
        """A POST that got nothing is held until the client leaves, as a server that hangs would."""
        while not self.done and not self._stream.open and not self.gone():
            threading.Event().wait(0.05)


class Everyone:
    """The channel of what belongs to no request: all open GET streams."""

    def __init__(self, server: "HttpServer") -> None:
        self._server = server

    def write(self, text: str) -> None:
        for listener in list(self._server.legacy_listeners):
            listener.write(text)

    def raw(self, text: str) -> None:
        for listener in list(self._server.legacy_listeners):
            listener.raw(text)

    def gone(self) -> bool:
        return False


class Listening:
    """The channel of one GET stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        self.stream.event("message", text)

    def raw(self, text: str) -> None:
        self.stream.send(text)

    def gone(self) -> bool:
        return self.stream.gone()


class HttpServer(Server):
    """The script's state plus sessions."""

    def __init__(self, script: Json) -> None:
        super().__init__(script)
        self.http: Json = script.get("http", {})
        self.sessions: dict[str, int] = {}
        self.streams: dict[str, Listening] = {}
        self.made = 0

    def new_session(self) -> str:
        """A fresh session id."""
        with self.lock:
            self.made += 1
            name = f"session-{os.getpid()}-{self.made}"
            self.sessions[name] = 0
        return name

    def do_lose_sessions(self, call: Call, value: bool) -> None:
        self.sessions.clear()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    scripted: HttpServer

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""

    def reply_head(self, status: int, headers: dict[str, str]) -> None:
        """Send status and headers."""
        self.send_response(status)
        for name, value in {**self.scripted.http.get("headers", {}), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def reply(self, status: int, text: str = "", **headers: str) -> None:
        """Send one whole answer."""
        body = text.encode("utf-8", "surrogatepass")
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            names["Content-Type"] = "application/json"
        self.reply_head(status, {**names, **self.extra, "Content-Length": str(len(body))})
        self.wfile.write(body)

    extra: dict[str, str]

    def _begin(self, body: str) -> bool:
        """Record the request and turn away who has no token."""
        self.extra = {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.scripted.record.add("http", method=self.command, path=self.path, headers=headers, body=body)
        token = self.scripted.http.get("token")
        if token and headers.get("authorization") != f"Bearer {token}":
            self.reply(401, '{"error":"invalid_token"}', WWW_Authenticate="Bearer")
            return False
        return True

    def do_GET(self) -> None:
        if not self._begin(""):
            return
        server = self.scripted
        legacy_sse = bool(server.http.get("legacy_sse"))
        if server.era == "modern" or server.http.get("no_get"):
            self.reply(405)
            return
        if not legacy_sse and self._lost_session():
            return
        stream = Stream(self)
        listening = Listening(stream)
        with stream.lock:  # who hears the head can be sure to be on the list
            server.legacy_listeners.append(listening)
            stream.begin()
        if legacy_sse:
            name = server.new_session()
            server.streams[name] = listening
            stream.event("endpoint", f"/messages?session={name}")
        while not stream.gone():
            threading.Event().wait(0.05)
        server.legacy_listeners.remove(listening)

    def do_DELETE(self) -> None:
        if self._begin("") and not self._lost_session():
            self.scripted.sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
            self.reply(200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        if not self._begin(body):
            return
        server = self.scripted
        try:
            message = json.loads(body)
        except ValueError:
            self.reply(400, dump({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}))
            return
        method = message.get("method", "")
        if method in server.http.get("status", {}):
            self.reply(server.http["status"][method])
            return
        if server.http.get("legacy_sse"):
            self._post_sse(body)
            return
        meta = (message.get("params") or {}).get("_meta") or {}
        modern = META + "protocolVersion" in meta
        if modern and server.http.get("strict") and (wrong := self._mismatch(message, meta)):
            error = {"code": -32020, "message": wrong}
            self.reply(400, dump({"jsonrpc": "2.0", "id": message.get("id"), "error": error}))
            return
        if modern and server.era == "legacy":
            self.reply(400, dump({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "No session"}}))
            return
        if server.http.get("session") and not modern:
            if method == "initialize":
                self.extra = {"Mcp-Session-Id": server.new_session()}
            elif self._lost_session():
                return
        if not method or "id" not in message:
            self.reply(202)
            server.handle(body, Everyone(server))
            return
        answer = Answer(self, server.http.get("answer") == "sse" and method != "initialize")
        server.handle(body, answer)
        answer.finish()

    def _post_sse(self, body: str) -> None:
        """HTTP+SSE of 2024-11-05: the answer goes out on the stream of the session."""
        listening = self.scripted.streams.get(self.path.partition("session=")[2])
        if listening is None:
            self.reply(404)
            return
        self.reply(202)
        self.wfile.flush()
        threading.Thread(target=self.scripted.handle, args=(body, listening), daemon=True).start()

    def _lost_session(self) -> bool:
        """Answer 400 for no session and 404 for one that is not known (any more)."""
        server = self.scripted
        if not server.http.get("session"):
            return False
        name = self.headers.get("Mcp-Session-Id")
        if name is None:
            self.reply(400)
            return True
        if name not in server.sessions:
            self.reply(404)
            return True
        server.sessions[name] += 1
        limit = server.http.get("lose_session_after")
        if limit is not None and server.sessions[name] > limit:
            del server.sessions[name]
            self.reply(404)
            return True
        return False

    def _mismatch(self, message: Json, meta: Json) -> str:
        """What is wrong with the headers that must repeat the body; '' if nothing is."""
        method = message.get("method", "")
        wanted = {"MCP-Protocol-Version": meta.get(META + "protocolVersion"), "Mcp-Method": method}
        if method in NAMED:
            wanted["Mcp-Name"] = message["params"].get(NAMED[method])
        for name, value in wanted.items():
            given = self.headers.get(name)
            if given and given.startswith("=?base64?") and given.endswith("?="):
                given = b64decode(given[9:-2]).decode()
            if given != value:
                return f"{name} is {given!r}, the body says {value!r}"
        return ""


class Listener(ThreadingHTTPServer):
    """Takes many connections at once, and says nothing about those that break."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main() -> None:
    """Entry point."""
    server = HttpServer(load(sys.argv[1]))
    handler = type("ScriptedHandler", (Handler,), {"scripted": server})
    listener = Listener(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), handler)
    server.record.add("start", argv=sys.argv, cwd=os.getcwd(), env=dict(os.environ))
    path = "/sse" if server.http.get("legacy_sse") else "/mcp"
    url = f"http://127.0.0.1:{listener.server_port}{path}"
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    print(dump({"url": url, "era": server.era, "modern": MODERN}), flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()

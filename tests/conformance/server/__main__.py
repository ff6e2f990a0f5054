"""A server with everything that the conformance suite's scenarios ask of one, on the official SDK.

    python tests/conformance/server [--stdio] [--only legacy|modern]

Prints one line, its URL, when it is ready; over pipes it speaks at once. With `--only` it knows no other era than that one, and
asks in that era's words what it asks in the other's otherwise.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import warnings

import contents
import crossed
import questions
import uvicorn
from mcp.server import MCPServer
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage

RETRY_MS = 100


class Events(EventStore):
    """Every event that was sent, so that a stream can be taken up again."""

    def __init__(self) -> None:
        self._sent: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._sent.append((stream_id, message))
        return str(len(self._sent))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = int(last_event_id) if last_event_id.isdecimal() else 0
        if not 0 < last <= len(self._sent):
            return None
        stream = self._sent[last - 1][0]
        for number, (owner, message) in enumerate(self._sent[last:], last + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def build(only: str = "") -> MCPServer:
    """The server, without a transport. `only`: the one era it speaks."""
    server = MCPServer("everything", version="1")
    contents.add(server, changes=only != "legacy")
    if only != "modern":
        questions.inside_calls(server)
    if only != "legacy":
        questions.as_results(server)
    if only:
        crossed.add(server, only)
    return server


def main() -> None:
    """Entry point."""
    warnings.simplefilter("ignore")
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv[1:] else ""
    server = build(only)
    logging.disable(logging.ERROR)
    if "--stdio" in sys.argv[1:]:
        server.run("stdio")
        return
    whole = server.streamable_http_app(event_store=Events(), retry_interval=RETRY_MS)
    app = crossed.one_era(whole, only) if only else whole
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://localhost:{listening.getsockname()[1]}/mcp", flush=True)
        # Not httptools: it leaves blanks behind a header's value, which then matches nothing (RFC 9112, 5.1).
        uvicorn.Server(uvicorn.Config(app, log_level="error", http="h11", timeout_graceful_shutdown=1)).run(sockets=[listening])


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()

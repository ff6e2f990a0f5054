"""What the lying server and its honest counterpart are made with: a registry of tools, and JSON-RPC on standard input and
output,
each call in a thread of its own. Standard library alone, so that a start costs nothing."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

HOME = os.environ.get("HOME", "/")
WORK = os.getcwd()
STATE = os.path.join(WORK, "state")
TOOLS: dict[str, dict[str, Any]] = {}
_CALLS: dict[str, Callable[..., Any]] = {}
_WRITING = threading.Lock()
BEFORE: list[Callable[[str], None]] = []


def tool(*, args: dict[str, Any] | None = None, need: tuple[str, ...] = (), says: str = "", **hints: bool) -> Any:
    """Register a function as a tool; `hints` in the spelling of the wire without `Hint`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        TOOLS[function.__name__] = {
            "name": function.__name__,
            "description": says or (function.__doc__ or "").split("\n")[0],
            "inputSchema": {"type": "object", "properties": args or {}, "required": list(need)},
            "annotations": {f"{name}Hint": value for name, value in hints.items()},
        }
        _CALLS[function.__name__] = function
        return function

    return register


def state(name: str) -> str:
    """A path in the server's state folder, which is made."""
    os.makedirs(STATE, exist_ok=True)
    return os.path.join(STATE, name)


def write(path: str, text: str, mode: str = "a") -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, mode) as file:
        file.write(text)


def say(message: dict[str, Any]) -> None:
    with _WRITING:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def _answer(id: Any, name: str, arguments: dict[str, Any]) -> None:
    for before in BEFORE:
        before(name)
    if name not in _CALLS:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": f"unknown tool {name}"}})
        return
    try:
        result = _CALLS[name](**arguments)
        text, bad = (result if isinstance(result, str) else json.dumps(result)), False
    except Exception as error:
        text, bad = f"{type(error).__name__}: {error}", True
    say({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}], "isError": bad}})


def serve() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        if method == "initialize":
            info = {"name": os.path.basename(sys.argv[0]), "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            say({"jsonrpc": "2.0", "id": id, "result": result})
        elif method == "tools/list":
            say({"jsonrpc": "2.0", "id": id, "result": {"tools": list(TOOLS.values())}})
        elif method == "tools/call":
            params = message["params"]
            run = threading.Thread(target=_answer, args=(id, params["name"], params.get("arguments") or {}), daemon=True)
            run.start()
        elif id is not None:
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}})

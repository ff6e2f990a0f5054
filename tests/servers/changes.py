"""An MCP server over stdio whose tools, `do` and `look`, do what they are told to files and say nothing of themselves: each
of `acts` is a list, its first word one of `ACTS`."""

import json
import os
import shutil
import socket
import sys
import time

TOOLS = [{"name": name, "description": "does anything", "inputSchema": {"type": "object"}} for name in ("do", "look")]
HELD = {}


def write(path, text, mode=None):
    with open(path, "w") as file:
        file.write(text)
    if mode is not None:
        os.chmod(path, mode)


def tick(path):
    """Never twice the same."""
    write(path, str(time.time_ns()))


def count(path):
    """In memory."""
    HELD[path] = HELD.get(path, 0) + 1
    write(path, str(HELD[path]))


def fill(folder, count):
    for number in range(count):
        write(f"{folder}/{number}", "x")


def connect(host, port):
    try:
        socket.create_connection((host, port), 2).close()
    except OSError:
        pass


def ask(path):
    """The client, and write down what came."""
    print('{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"message":"sure?","requestedSchema":'
          '{"type":"object","properties":{}}}}', flush=True)  # fmt: skip
    write(path, json.dumps(json.loads(sys.stdin.readline()).get("result")))


ACTS = {
    "ask": ask, "note": lambda path, value: os.setxattr(path, "user.note", value.encode()),
    "write": write, "tick": tick, "count": count, "fill": fill, "chdir": os.chdir, "connect": connect,
    "mkdir": os.mkdir, "remove": os.unlink,
    "rmtree": shutil.rmtree, "move": os.rename, "chmod": os.chmod, "link": lambda path, to: os.symlink(to, path),
    "sleep": time.sleep,
    "fail": lambda text: (_ for _ in ()).throw(ValueError(text)),
}  # fmt: skip


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "changes", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        return {}
    try:
        for act, *words in params["arguments"]["acts"]:
            ACTS[act](*words)
    except Exception as error:
        return {"content": [{"type": "text", "text": f"{type(error).__name__}: {error}"}], "isError": True}
    return {"content": [{"type": "text", "text": f"done by {os.getpid()}"}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "server/discover":
            reply["error"] = {"code": -32601, "message": "unknown method"}
        else:
            reply["result"] = answer(message)
        print(json.dumps(reply), flush=True)

"""A server whose tools look worse than they are: every claim here is true. With `--bookkeeping` it counts its calls in a
file, with `--late-bookkeeping` a moment after each answer."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from liar_kit import BEFORE, HOME, WORK, serve, state, tool, write

READER = {"readOnly": True, "openWorld": False}
WRITER = {"readOnly": False, "destructive": False, "openWorld": False}
_answers = 0


@tool(args={"name": {"type": "string"}}, **READER)
def read_cached(name: str = "alpha") -> str:
    """Read something, and keep the answer in a cache."""
    write(f"{HOME}/.cache/honest/{abs(hash(name))}", name, "w")
    return f"{name} is fine"


@tool(**READER)
def read_logged() -> str:
    """Read something, and log that."""
    write(f"{HOME}/.local/state/honest/server.log", f"{time.time()} read\n")
    return "fine"


@tool(**READER)
def read_with_scratch() -> str:
    """Read something by way of a scratch folder."""
    folder = tempfile.mkdtemp()
    write(f"{folder}/part", "part")
    shutil.rmtree(folder)
    return "fine"


@tool(**READER)
def count_rows() -> str:
    """Count rows of a database in write-ahead mode, which makes files beside it."""
    database = sqlite3.connect(f"{WORK}/app.db")
    (n,) = database.execute("SELECT count(*) FROM notes").fetchone()
    database.close()
    return json.dumps({"rows": n})


@tool(**READER)
def git_state() -> str:
    """Say what git says, which refreshes its index."""
    repo = f"{HOME}/repo"
    os.utime(f"{repo}/alpha.txt")
    done = subprocess.run(["git", "-C", repo, "status", "--short"], capture_output=True, text=True, check=False)
    return json.dumps({"lines": done.stdout.splitlines()})


@tool(**READER)
def tell_time() -> str:
    """Tell the time and how often it was asked."""
    global _answers
    _answers += 1
    return json.dumps({"now": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "asked": _answers})


@tool(**READER)
def ask_helper() -> str:
    """Ask a helper on this machine."""
    with contextlib.suppress(OSError), socket.create_connection(("localhost", _helper()), timeout=2) as end:
        return end.recv(20).decode()
    return "no helper"


_port = 0


def _loaded(path: str) -> dict:
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)


def _helper() -> int:
    global _port
    if not _port:
        listener = socket.create_server(("127.0.0.1", 0))
        _port = listener.getsockname()[1]

        def run() -> None:
            while True:
                end, _ = listener.accept()
                end.sendall(b"fine")
                end.close()

        threading.Thread(target=run, daemon=True).start()
    return _port


@tool(args={"query": {"type": "string"}}, need=("query",), readOnly=True, openWorld=True)
def search_site(query: str) -> str:
    """Search a site, by a request with a body, as its interface wants it."""
    data = json.dumps({"q": query}).encode()
    with contextlib.suppress(OSError), urllib.request.urlopen("http://search.example.com/q", data, timeout=3) as answer:
        return f"{len(answer.read())} bytes"
    return "nothing found on it"


@tool(args={"name": {"type": "string"}}, need=("name",), **WRITER)
def append_item(name: str) -> str:
    """Add an item to data.json, which is written anew in another order."""
    path = f"{WORK}/data.json"
    with open(path) as file:
        data = json.load(file)
    items = [*data["items"], {"name": name, "id": len(data["items"]) + 1}]
    write(path, json.dumps({"title": data["title"], "items": items}, indent=2, sort_keys=True), "w")
    return json.dumps({"id": len(items)})


@tool(args={"title": {"type": "string"}, "body": {"type": "string"}}, need=("title",), **WRITER)
def insert_row(title: str, body: str = "new") -> str:
    """Add a row to a database, which moves its pages."""
    database = sqlite3.connect(f"{WORK}/app.db")
    with database:
        cursor = database.execute("INSERT INTO notes (title, body) VALUES (?, ?)", (title, body))
        row = cursor.lastrowid
    database.execute("VACUUM")
    database.close()
    return json.dumps({"row_id": row})


@tool(
    args={"key": {"type": "string"}, "value": {"type": "string"}},
    need=("key", "value"),
    readOnly=False,
    destructive=True,
    idempotent=True,
    openWorld=False,
)
def set_value(key: str, value: str) -> str:
    """Set a value, and note when."""
    path = state("values.json")
    data = _loaded(path) or {}
    data[key] = {"value": value, "updated_at": time.time()}
    write(path, json.dumps(data), "w")
    return "set"


@tool(
    args={"path": {"type": "string", "description": "The file to delete."}},
    need=("path",),
    readOnly=False,
    destructive=True,
    idempotent=True,
    openWorld=False,
)
def delete_file(path: str) -> str:
    """Delete a file; the second time there is none."""
    os.unlink(path)
    return "deleted"


@tool(
    args={
        "source": {"type": "string", "description": "Path of a file."},
        "destination": {"type": "string", "description": "Its new path."},
    },
    need=("source", "destination"),
    **WRITER,
)
def move_file(source: str, destination: str) -> str:
    """Move a file to where nothing is."""
    if os.path.exists(destination):
        raise ValueError("something is there already")
    os.makedirs(os.path.dirname(destination) or ".", exist_ok=True)
    os.rename(source, destination)
    return "moved"


@tool(args={"message": {"type": "string"}}, need=("message",), **WRITER)
def commit_all(message: str) -> str:
    """Commit what has changed, which moves a branch."""
    repo = f"{HOME}/repo"
    subprocess.run(["git", "-C", repo, "add", "-A"], check=True, capture_output=True)
    done = subprocess.run(["git", "-C", repo, "commit", "-m", message], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stdout)
    return "committed"


@tool(args={"note": {"type": "string"}}, need=("note",), **WRITER)
def queue_note(note: str) -> str:
    """Add a note; it is written a moment later."""
    threading.Timer(0.6, write, (state("queued"), note + "\n")).start()
    return "queued"


@tool(readOnly=False, destructive=False, idempotent=True, openWorld=False)
def tidy_csv() -> str:
    """Write a table anew, with the same lines."""
    path = f"{WORK}/data.csv"
    with open(path) as file:
        lines = [line.strip() for line in file if line.strip()]
    write(path, "\r\n".join(lines) + "\r\n\r\n", "w")
    return "tidied"


@tool(args={"name": {"type": "string"}}, need=("name",), readOnly=False, destructive=False, idempotent=True, openWorld=False)
def ensure_folder(name: str) -> str:
    """Make a folder, if it is not there."""
    os.makedirs(state(os.path.basename(name)), exist_ok=True)
    return "there"


def _count(name: str) -> None:
    path = f"{HOME}/.honest/usage.json"
    data = _loaded(path) or {"calls": 0, "by_tool": {}}
    data["calls"] += 1
    data["by_tool"][name] = data["by_tool"].get(name, 0) + 1
    data["last"] = time.time()
    write(path, json.dumps(data), "w")


if __name__ == "__main__":
    if "--bookkeeping" in sys.argv:
        BEFORE.append(_count)
    if "--late-bookkeeping" in sys.argv:
        BEFORE.append(lambda name: threading.Timer(0.3, _count, (name,)).start())
    database = sqlite3.connect(f"{WORK}/app.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.close()
    serve()

"""Runs inside a box, before the server and between it and the assay: `python inside.py --url URL --database KIND -- COMMAND`.

With a URL the server is one over Streamable HTTP: it is started, and the lines on standard input become requests to it, its
answers lines on standard output. With a database, a real one is started first from what is installed, its address is put into
the server's environment, and the request `dev.earnest/dump` is answered with all rows. Standard library alone, and nothing of
earnest's, because only this file is sure to be there.
"""

from __future__ import annotations

import glob
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

_LOCK = threading.Lock()
WAIT_S = 40.0


def main() -> int:
    """Start what is wanted, pass messages, end it all."""
    url, kind, command = sys.argv[2], sys.argv[4], sys.argv[6]
    env = dict(os.environ)
    database = _DATABASES[kind](env) if kind else None
    piped = not url
    server = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {command}"],
        stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
        stdout=subprocess.PIPE if piped else sys.stderr,
        env=env,
    )
    answer = database.rows if database is not None else dict
    try:
        return _pipe(server, answer) if piped else _http(server, url, answer)
    finally:
        server.terminate()
        try:
            server.wait(3)
        except subprocess.TimeoutExpired:
            server.kill()
        if database is not None:
            database.end()


def say(line: bytes) -> None:
    """One message to the assay."""
    with _LOCK:
        sys.stdout.buffer.write(line.rstrip(b"\n") + b"\n")
        sys.stdout.buffer.flush()


def _dumped(line: bytes, answer: Any) -> bool:
    if b"dev.earnest/dump" not in line:
        return False
    message = json.loads(line)
    try:
        result: dict[str, Any] = {"result": {"areas": answer()}}
    except Exception as error:
        result = {"error": {"code": -32000, "message": str(error)}}
    say(json.dumps({"jsonrpc": "2.0", "id": message["id"], **result}).encode())
    return True


def _pipe(server: subprocess.Popen[bytes], answer: Any) -> int:
    assert server.stdin is not None and server.stdout is not None

    def back() -> None:
        for line in server.stdout or ():
            say(line)

    reader = threading.Thread(target=back)
    reader.start()
    for line in sys.stdin.buffer:
        if not _dumped(line, answer):
            try:
                server.stdin.write(line)
                server.stdin.flush()
            except OSError:
                break
    server.stdin.close()
    try:
        server.wait(2)
    except subprocess.TimeoutExpired:
        server.terminate()
    reader.join(3)
    return server.returncode or 0


class _Client:
    """Streamable HTTP (MCP 2025-11-25, transports), as much of it as one client needs."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._path = parts.path or "/"
        self._session = ""
        self._version = ""

    def send(self, line: bytes) -> None:
        message = json.loads(line)
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self._session:
            headers["mcp-session-id"] = self._session
        if self._version:
            headers["mcp-protocol-version"] = self._version
        try:
            link = http.client.HTTPConnection(self._host, self._port, timeout=120)
            link.request("POST", self._path, line, headers)
            answer = link.getresponse()
            self._session = answer.getheader("mcp-session-id") or self._session
            kind = answer.getheader("content-type") or ""
            if answer.status >= 400 and "json" not in kind:
                raise OSError(f"HTTP status {answer.status}")
            if "event-stream" in kind:
                self._events(answer)
            else:
                body = answer.read().strip()
                if body:
                    self._heard(body)
            link.close()
        except (OSError, http.client.HTTPException) as error:
            if "id" in message and "method" in message:
                failed = {"code": -32000, "message": f"no answer over HTTP: {error}"}
                say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": failed}).encode())

    def _events(self, answer: http.client.HTTPResponse) -> None:
        data: list[bytes] = []
        for raw in answer:
            line = raw.rstrip(b"\r\n")
            if line.startswith(b"data:"):
                data.append(line[5:].lstrip(b" "))
            elif not line and data:
                self._heard(b"\n".join(data))
                data = []
        if data:
            self._heard(b"\n".join(data))

    def _heard(self, body: bytes) -> None:
        try:
            message = json.loads(body)
        except ValueError:
            return
        result = message.get("result") if isinstance(message, dict) else None
        if isinstance(result, dict) and isinstance(result.get("protocolVersion"), str):
            self._version = result["protocolVersion"]
        say(json.dumps(message).encode())


def _http(server: subprocess.Popen[bytes], url: str, answer: Any) -> int:
    parts = urlsplit(url)
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), timeout=1).close()
            break
        except OSError:
            if server.poll() is not None:
                print(f"the server ended with status {server.returncode} before it listened", file=sys.stderr)
                return 1
            time.sleep(0.1)
    else:
        print(f"nothing listens at {url}", file=sys.stderr)
        return 1
    client = _Client(url)
    threads: list[threading.Thread] = []
    for line in sys.stdin.buffer:
        if not line.strip() or _dumped(line, answer):
            continue
        if b'"initialize"' in line or b"notifications/" in line:
            client.send(line)  # in order: what follows stands on it
            continue
        threads.append(threading.Thread(target=client.send, args=(line,), daemon=True))
        threads[-1].start()
    return 0


class _Redis:
    def __init__(self, env: dict[str, str]) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            raise SystemExit("no redis-server is installed")
        folder = os.path.join(env["HOME"], ".redis-data")
        os.makedirs(folder, exist_ok=True)
        command = [program, "--port", "6379", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _await(6379)
        env.update(REDIS_URL="redis://127.0.0.1:6379/0", REDIS_HOST="127.0.0.1", REDIS_PORT="6379")
        for words in (
            ("SET", "alpha", "first"),
            ("HSET", "user:1", "name", "Ada"),
            ("RPUSH", "list", "a", "b"),
            ("SADD", "set", "x"),
        ):
            self._ask(*words)

    def _ask(self, *words: str) -> Any:
        with socket.create_connection(("127.0.0.1", 6379), timeout=5) as end, end.makefile("rb") as file:
            parts = [f"*{len(words)}\r\n".encode()]
            parts += [f"${len(word.encode())}\r\n{word}\r\n".encode() for word in words]
            end.sendall(b"".join(parts))
            return _reply(file)

    def rows(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        reads: dict[str, Any] = {
            "string": lambda k: [self._ask("GET", k)],
            "hash": lambda k: self._ask("HGETALL", k),
            "list": lambda k: self._ask("LRANGE", k, "0", "-1"),
            "set": lambda k: sorted(map(str, self._ask("SMEMBERS", k))),
            "zset": lambda k: self._ask("ZRANGE", k, "0", "-1", "WITHSCORES"),
        }
        for key in sorted(self._ask("KEYS", "*")):
            kind = self._ask("TYPE", key)
            value = reads[kind](key) if kind in reads else [self._ask("DUMP", key)]
            rows = [f"{a}={b}" for a, b in zip(value[::2], value[1::2], strict=False)] if kind in ("hash", "zset") else value
            found[f"key {key}"] = [str(row) for row in rows]
        return found

    def end(self) -> None:
        self._process.terminate()


def _reply(file: Any) -> Any:
    line = file.readline()[:-2].decode("utf-8", "replace")
    kind, rest = line[:1], line[1:]
    if kind in "+-:":
        return rest
    if kind == "$":
        size = int(rest)
        return None if size < 0 else file.read(size + 2)[:-2].decode("utf-8", "backslashreplace")
    return [_reply(file) for _ in range(int(rest))] if int(rest) >= 0 else []


class _Postgres:
    def __init__(self, env: dict[str, str]) -> None:
        found = [os.path.dirname(path) for path in sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))]
        here = shutil.which("initdb")
        self._bin = os.path.dirname(here) if here else (found[-1] if found else "")
        if not self._bin:
            raise SystemExit("no PostgreSQL server is installed")
        self._psql = shutil.which("psql") or f"{self._bin}/psql"
        self._data = os.path.join(env["HOME"], ".pg")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        plain = {**env, "LC_ALL": "C"}
        self._run = ["unshare", "--user", "--map-user=1000"] if os.geteuid() == 0 else []
        subprocess.run(
            [*self._run, f"{self._bin}/initdb", "-D", self._data, "-U", "ada", "-A", "trust", "--no-sync"],
            env=plain,
            check=True,
            **quiet,  # type: ignore[call-overload]
        )
        command = [
            f"{self._bin}/postgres",
            "-D",
            self._data,
            "-k",
            "/tmp",
            "-c",
            "fsync=off",
            "-c",
            "listen_addresses=127.0.0.1",
        ]
        self._process = subprocess.Popen([*self._run, *command], env=plain, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        _await(5432)
        self._sql("CREATE DATABASE sample", "postgres")
        self._sql(
            "CREATE TABLE notes (id serial PRIMARY KEY, title text, body text);"
            "INSERT INTO notes (title, body) VALUES ('alpha', 'the first note'), ('beta', 'the second note');"
            "CREATE TABLE people (id serial PRIMARY KEY, name text, email text);"
            "INSERT INTO people (name, email) VALUES ('Ada', 'ada@example.com')"
        )
        env.update(
            DATABASE_URL="postgresql://ada@127.0.0.1:5432/sample", DATABASE_URI="postgresql://ada@127.0.0.1:5432/sample",
            PGHOST="127.0.0.1", PGPORT="5432", PGUSER="ada", PGDATABASE="sample", POSTGRES_URL="postgresql://ada@127.0.0.1:5432/sample",
        )  # fmt: skip

    def _sql(self, text: str, database: str = "sample") -> str:
        command = [
            self._psql,
            "-h",
            "127.0.0.1",
            "-U",
            "ada",
            "-d",
            database,
            "-qAtX",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            text,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    def rows(self) -> dict[str, list[str]]:
        listed = self._sql(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        return {f"table {name}": self._sql(f"TABLE {name}").splitlines() for name in listed.split()}

    def end(self) -> None:
        self._process.send_signal(2)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()


_DATABASES: dict[str, Any] = {"redis": _Redis, "postgresql": _Postgres}


def _await(port: int) -> None:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"the database at port {port} did not start")


if __name__ == "__main__":
    sys.exit(main())

"""Runs inside a box, before the server and between it and the assay: `python inside.py --url URL --database KIND -- COMMAND`;
and once before all sessions, to make the database's files: `python inside.py --prepare KIND`.

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
    env = dict(os.environ)
    if sys.argv[1] == "--prepare":
        _DATABASES[sys.argv[2]](env).prepare()
        return 0
    url, kind, command = sys.argv[2], sys.argv[4], sys.argv[6]
    database = _DATABASES[kind](env) if kind else None
    if database is not None:
        database.start()
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


class _Database:
    """A database server whose files lie in a folder of the home. `prepare` makes them once, `start` begins with a copy."""

    port = 0
    programs: tuple[str, ...] = ()

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.data = os.path.join(env["HOME"], ".database")
        self.program = self.found(*self.programs)
        self._process: subprocess.Popen[bytes] | None = None

    def found(self, *names: str) -> str:
        """The first of these programs that is installed. Raises SystemExit where none is."""
        for name in names:
            for folder in (
                None,
                "/usr/sbin:/usr/local/sbin:/sbin",
                *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True),
            ):
                if path := shutil.which(name, path=folder):
                    return path
        raise SystemExit(f"{names[0]} is not installed, which a database beside the server needs")

    def begin(self, *command: str) -> None:
        """Run the server until `end`."""
        env = {**self.env, "LC_ALL": "C"}
        self._process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=sys.stderr
        )
        _await(self.port, self._process)

    def run(self, *command: str, asked: str = "") -> str:
        """What a program says."""
        done = subprocess.run(command, input=asked, env={**self.env, "LC_ALL": "C"}, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise SystemExit(f"{os.path.basename(command[0])}: {(done.stderr or done.stdout).strip()[-400:]}")
        return done.stdout

    def end(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(2 if isinstance(self, _Postgres) else 15)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def prepare(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def rows(self) -> dict[str, list[str]]:
        raise NotImplementedError


class _Redis(_Database):
    port = 6379
    programs = ("redis-server", "valkey-server")

    def prepare(self) -> None:
        os.makedirs(self.data)
        self.start()
        for line in ("SET alpha first", "HSET user:1 name Ada", "RPUSH list a b", "SADD set x", "ZADD scores 1 ada", "SAVE"):
            self._ask(*line.split())
        self.end()

    def start(self) -> None:
        words = ("--port", "6379", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.data)
        self.begin(self.program, *words)
        self.env.update(REDIS_URL="redis://127.0.0.1:6379/0", REDIS_HOST="127.0.0.1", REDIS_PORT="6379")

    def _ask(self, *words: str) -> Any:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as end, end.makefile("rb") as file:
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


def _reply(file: Any) -> Any:
    line = file.readline()[:-2].decode("utf-8", "replace")
    kind, rest = line[:1], line[1:]
    if kind in "+-:":
        return rest
    if kind == "$":
        size = int(rest)
        return None if size < 0 else file.read(size + 2)[:-2].decode("utf-8", "backslashreplace")
    return [_reply(file) for _ in range(int(rest))] if int(rest) >= 0 else []


_TABLES = (
    "CREATE TABLE notes (id {serial} PRIMARY KEY, title text, body text);"
    "INSERT INTO notes (title, body) VALUES ('alpha', 'the first note'), ('beta', 'the second note');"
    "CREATE TABLE people (id {serial} PRIMARY KEY, name text, email text);"
    "INSERT INTO people (name, email) VALUES ('Ada', 'ada@example.com');"
)


class _Postgres(_Database):
    port = 5432
    programs = ("postgres",)

    def prepare(self) -> None:
        small = ("--no-sync", "--no-locale", "-E", "UTF8", "--wal-segsize=1")
        self.run(self.found("initdb"), "-D", self.data, "-U", "ada", "-A", "trust", *small)
        self.start()
        self._sql("CREATE DATABASE sample", "postgres")
        self._sql(_TABLES.format(serial="serial"))
        self.end()

    def start(self) -> None:
        with_out = ("fsync=off", "listen_addresses=127.0.0.1", "autovacuum=off", "max_connections=20", "shared_buffers=8MB")
        self.begin(self.program, "-D", self.data, "-k", "/tmp", *(word for setting in with_out for word in ("-c", setting)))
        url = "postgresql://ada@127.0.0.1:5432/sample"
        self.env.update(DATABASE_URL=url, DATABASE_URI=url, POSTGRES_URL=url, POSTGRES_CONNECTION_STRING=url)
        self.env.update(PGHOST="127.0.0.1", PGPORT="5432", PGUSER="ada", PGDATABASE="sample")

    def _sql(self, text: str, database: str = "sample") -> str:
        where = ("-h", "127.0.0.1", "-U", "ada", "-d", database)
        return self.run(self.found("psql"), *where, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", text)

    def rows(self) -> dict[str, list[str]]:
        listed = self._sql(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        return {f"table {name}": self._sql(f"TABLE {name}").splitlines() for name in listed.splitlines()}


class _Mysql(_Database):
    port = 3306
    programs = ("mariadbd", "mysqld")

    def _settings(self) -> str:
        """A file of settings: small files, no waiting for the disk. What the system says of its own server is not read."""
        path = self.data + ".cnf"
        with open(path, "w") as file:
            file.write(
                f"[mysqld]\ndatadir={self.data}\nport=3306\nbind-address=127.0.0.1\nsocket=/tmp/mysql.sock\n"
                f"pid-file={self.data}/mysqld.pid\ninnodb_log_file_size=4M\ninnodb_buffer_pool_size=8M\nkey_buffer_size=1M\n"
                "innodb_flush_log_at_trx_commit=0\nskip-name-resolve\nperformance_schema=OFF\n"
            )
            file.write("user=root\n" if os.geteuid() == 0 else "")
        return f"--defaults-file={path}"

    def prepare(self) -> None:
        settings = self._settings()
        if self.program.endswith("mariadbd"):
            plain = ("--auth-root-authentication-method=normal", "--skip-test-db", f"--datadir={self.data}")
            self.run(self.found("mariadb-install-db", "mysql_install_db"), settings, *plain)
        else:
            self.run(self.program, settings, "--initialize-insecure")
        self.start()
        self._sql("CREATE DATABASE sample; CREATE USER 'ada'@'%' IDENTIFIED BY 'sample'; GRANT ALL ON sample.* TO 'ada'@'%'")
        self._sql("USE sample; " + _TABLES.format(serial="int AUTO_INCREMENT"))
        self.end()

    def start(self) -> None:
        self.begin(self.program, self._settings())
        names = {"HOST": "127.0.0.1", "PORT": "3306", "USER": "ada", "PASSWORD": "sample", "DATABASE": "sample"}
        self.env.update({f"{kind}_{name}": value for kind in ("MYSQL", "MARIADB", "DB") for name, value in names.items()})
        self.env.update(MYSQL_URL="mysql://ada:sample@127.0.0.1:3306/sample", MYSQL_PASS="sample", MYSQL_DB="sample")
        self.env.update(DATABASE_URL="mysql://ada:sample@127.0.0.1:3306/sample")

    def _sql(self, text: str) -> str:
        where = ("--no-defaults", "--socket=/tmp/mysql.sock", "-u", "root", "--default-character-set=utf8mb4")
        return self.run(self.found("mariadb", "mysql"), *where, "-N", "-B", asked=text)

    def rows(self) -> dict[str, list[str]]:
        listed = self._sql(
            "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables WHERE table_type = "
            "'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1"
        )
        names = listed.splitlines()
        return {f"table {name.replace('`', '')}": self._sql(f"SELECT * FROM {name}").splitlines() for name in names}


_DATABASES: dict[str, type[_Database]] = {"redis": _Redis, "postgresql": _Postgres, "mysql": _Mysql}


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None:
                raise SystemExit(f"the database ended with status {process.returncode} before it listened") from None
            time.sleep(0.02)
    raise SystemExit(f"the database at port {port} did not start")


if __name__ == "__main__":
    sys.exit(main())

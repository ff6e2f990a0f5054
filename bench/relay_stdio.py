"""What a call over pipes costs on its way: earnest (shim and daemon) beside a relay that only moves bytes, and no relay.

    python bench/relay_stdio.py [--calls 4000] [--rounds 3] [--bytes 200] [--spaced]

Each round runs every way once, at depth 1 and at depth 16, so that a machine whose speed drifts treats them alike. `cpu` is
user and system time in microseconds a call of what stands between client and server (the daemon, the shim and its threads; the
relay's process), without client and server; `p50` is the time of a round trip in microseconds at depth 1. Medians over rounds;
compare within one run alone. Nothing is checked here but that every answer is a result. Linux, since it reads /proc.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]

SERVER = """
import json, sys
read, write = sys.stdin.buffer.readline, sys.stdout.buffer.write
tool = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "openWorldHint": False}}
answers = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
    "tools/list": {"tools": [tool]},
    "tools/call": {"content": [{"type": "text", "text": "x" * SIZE}]},
}
raw = {name: json.dumps(value, separators=(",", ":")).encode() for name, value in answers.items()}
while line := read():
    asked = json.loads(line)
    if "id" in asked and asked.get("method") in raw:
        write(b'{"jsonrpc":"2.0","id":%b,"result":%b}\\n' % (json.dumps(asked["id"]).encode(), raw[asked["method"]]))
        sys.stdout.buffer.flush()
    elif "id" in asked:
        write(b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"no"}}\\n' % json.dumps(asked["id"]).encode())
        sys.stdout.buffer.flush()
"""

RELAY = """
import asyncio, os, subprocess, sys
import uvloop

class Pump(asyncio.Protocol):
    def connection_made(self, transport): pass
    def data_received(self, data): self.to.write(data)
    def connection_lost(self, error): os._exit(0)

async def main():
    loop = asyncio.get_running_loop()
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    down, up = Pump(), Pump()
    down.to, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, child.stdin)
    up.to, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    await loop.connect_read_pipe(lambda: down, sys.stdin)
    await loop.connect_read_pipe(lambda: up, child.stdout)
    await asyncio.Event().wait()

uvloop.run(main())
"""


class Way:
    """A client on some way to the server. `between`: the processes whose time counts."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: str, separators: tuple[str, str]) -> None:
        self._separators = separators
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout
        self.between: list[int] = []
        self._id = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._send(self._request("initialize", hello))
        self._answer()
        self._send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.run(200, 1)

    def _request(self, method: str, params: object) -> bytes:
        self._id += 1
        asked = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        return json.dumps(asked, separators=self._separators).encode() + b"\n"

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._in, data) :]

    def _answer(self) -> None:
        line = self._out.readline()
        if b'"result"' not in line or b'"isError":true' in line:
            raise SystemExit(f"no result: {line[:300]!r}")

    def run(self, calls: int, depth: int) -> list[float]:
        """So many calls, `depth` at a time; the time of each round trip in microseconds."""
        params = {"name": "look", "arguments": {"city": "Graz", "days": 3, "units": "metric"}}
        took = []
        for _ in range(calls // depth):
            batch = b"".join(self._request("tools/call", params) for _ in range(depth))
            start = time.perf_counter()
            self._send(batch)
            for _ in range(depth):
                self._answer()
            took.append((time.perf_counter() - start) * 1e6)
        return took

    def spent(self) -> float:
        """Microseconds of processor time of what stands between, so far, as its scheduler counts them: a clock of ten
        milliseconds is too coarse for a few thousand calls. Threads count while they live, as those of a daemon do."""
        threads = (thread for pid in self.between for thread in Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1000

    def close(self) -> None:
        """End it and what it started."""
        self.process.stdin.close()  # type: ignore[union-attr]
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()


@contextmanager
def ways(folder: str, size: int, spaced: bool) -> Iterator[dict[str, Way]]:
    """All ways, opened and warm."""
    separators = (", ", ": ") if spaced else (",", ":")
    at = Path(folder)
    (at / "server.py").write_text(SERVER.replace("SIZE", str(size)))
    (at / "relay.py").write_text(RELAY)
    server = [sys.executable, "-S", str(at / "server.py")]
    env = {"PATH": os.environ["PATH"], "HOME": folder, "EARNEST_HOME": f"{folder}/e", "PYTHONPATH": str(ROOT / "src")}
    config = at / ".config" / "earnest" / "earnest.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[servers.bench]\ncommand = {json.dumps(server)}\ntrust = "trusted"\n')
    found = {
        "direct": Way(server, env, folder, separators),
        "relay": Way([sys.executable, str(at / "relay.py"), *server], env, folder, separators),
        "earnest": Way([sys.executable, "-m", "earnest", "stdio", "bench"], env, folder, separators),
    }
    found["relay"].between = [found["relay"].process.pid]
    started = (at / "e" / "default" / "daemon.log").read_text()
    daemon = int(started.rpartition("process ")[2].split()[0]) if "process " in started else 0
    found["earnest"].between = [found["earnest"].process.pid, daemon]
    try:
        yield found
    finally:
        for way in found.values():
            way.close()
        subprocess.run([sys.executable, "-m", "earnest", "stop"], env=env, cwd=folder, stdout=subprocess.DEVNULL)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--spaced", action="store_true", help="requests with spaces after commas, as few clients write them")
    given = parser.parse_args()
    cpu: dict[str, dict[str, list[float]]] = {}
    p50: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="e-") as folder, ways(folder, given.bytes, given.spaced) as found:
        for _ in range(given.rounds):
            for depth in (1, 16):
                for name, way in found.items():
                    before = way.spent()
                    took = way.run(given.calls, depth)
                    cpu.setdefault(name, {}).setdefault(f"depth {depth}", []).append((way.spent() - before) / given.calls)
                    if depth == 1:
                        p50.setdefault(name, []).append(statistics.median(took))
    said = {
        name: {
            "cpu": {depth: round(statistics.median(values), 1) for depth, values in cpu[name].items()}
            if found[name].between
            else {},
            "p50": round(statistics.median(p50[name]), 1),
        }
        for name in found
    }
    print(json.dumps({"calls": given.calls, "rounds": given.rounds, "bytes": given.bytes, "unit": "us", **said}))


if __name__ == "__main__":
    main()

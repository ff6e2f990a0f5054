"""What a call costs through other gateways and bridges, beside earnest and nginx, in one run.

    python bench/peers.py [--rounds 2] [--seconds 3] [--connections 1,8] [--calls 1000] [--out FILE]

Three tables: HTTP to HTTP (nginx, earnest, mcp-airlock, fastmcp's proxy), HTTP to a server on pipes (earnest, supergateway,
npm's mcp-proxy), pipes to pipes (a bare relay, earnest, kairoseki in the mode that blocks nothing, fastmcp's proxy). Peers are
the versions of `peers.toml`, installed under .servers/peers by the first run, each with the libraries it looks for in vain
where it is installed alone. Each way is asked for one result before any load, and it must be the right one. Ways are
interleaved within each round. A peer is driven in the newest era it
answers in, a bridge to pipes in sessions; which era is in the findings.

`cpu_us` is user and system time of all processes of a way for each call: for HTTP to pipes the server on the pipes is one of
them, in every way alike. Figures of slow
peers come from few calls. Needs gcc, wrk, nginx, node with npm; Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import http.client
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import relay_http as http_bench
import relay_stdio as stdio_bench
from relay_http import ARGUMENTS, META, ROOT, VERSION, Way, free_ports, machine, running, spread, whole_seconds

PEERS = ROOT / ".servers" / "peers"
SIZE = 200
LEGACY = "2025-11-25"
FASTMCP = """
import sys
from fastmcp.server import create_proxy
way, to = sys.argv[1], sys.argv[2:]
if way == "stdio":
    create_proxy({"mcpServers": {"bench": {"command": to[0], "args": to[1:]}}}).run(show_banner=False)
else:
    create_proxy(to[0]).run(transport="http", host="127.0.0.1", port=int(way), show_banner=False)
"""
AIRLOCK = """
version: 1
environment: prod
tools:
  echo: {tiers: {prod: L0}}
"""
LOAD = """
local headers, body, at, bodies = HEADERS, BODY, 0, {}
function init(args)
  for n = 1, 1000 do bodies[n] = wrk.format("POST", nil, headers, '{"jsonrpc":"2.0","id":' .. n + 10 .. ',' .. body) end
end
function request() at = at % 1000 + 1 return bodies[at] end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\\nDONE {"calls":%d,"us":%d,"bad":%d,"p50_ms":%f,"p99_ms":%f}\\n', summary.requests, summary.duration,
    e.status + e.connect + e.read + e.write + e.timeout, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
"""


def installed() -> dict[str, Path]:
    """The folder of each peer, installing what is not there yet."""
    folders = {}
    for name, pin in tomllib.loads((ROOT / "bench" / "peers.toml").read_text()).items():
        folder = PEERS / name
        done = folder / ".installed"
        wanted = json.dumps(pin)
        if not done.exists() or done.read_text() != wanted:
            print(f"installing {pin.get('pypi') or pin.get('npm')} …", file=sys.stderr)
            folder.mkdir(parents=True, exist_ok=True)
            if "npm" in pin:
                quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
                subprocess.run(["npm", "install", *quiet, "--prefix", str(folder), pin["npm"]], check=True)
            else:
                subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
                pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
                subprocess.run([*pip, pin["pypi"], *pin.get("with", [])], check=True)
            done.write_text(wanted)
        folders[name] = folder
    return folders


class Driven:
    """A way over HTTP as `tools/call` reaches it: era, path and the headers each call needs."""

    def __init__(self, way: Way, extra: dict[str, str], eras: tuple[str, ...] = (VERSION, LEGACY)) -> None:
        self.way = way
        self.port, self.path = way.urls[SIZE]
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **extra}
        if way.token != "none":
            self.headers["Authorization"] = f"Bearer {way.token}"
        self.params: dict[str, Any] = {"name": "echo", "arguments": ARGUMENTS}
        for era in eras:
            self.era = era
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError, KeyError):
                self._open()
                if self.answers():
                    return
        raise SystemExit(f"{way.name}: no right answer to a call in either era")

    def _open(self) -> None:
        self.headers["MCP-Protocol-Version"] = self.era
        if self.era == VERSION:
            self.headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "echo"}
            self.params["_meta"] = META
            return
        for name in ("Mcp-Method", "Mcp-Name"):
            self.headers.pop(name, None)
        self.params.pop("_meta", None)
        client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        session = self._post({"id": 1, "method": "initialize", "params": client})[0].get("mcp-session-id")
        if session:
            self.headers["Mcp-Session-Id"] = session
        self._post({"method": "notifications/initialized"})

    def _post(self, message: dict[str, Any]) -> tuple[dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", self.path, json.dumps({"jsonrpc": "2.0", **message}), self.headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.getheader("content-type", "").startswith("text/event-stream"):
            datas = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
            text = next((data for data in datas if '"id"' in data), "null")
        return {name.lower(): value for name, value in answer.getheaders()}, json.loads(text or "null")

    def answers(self) -> bool:
        """Whether a call has the right result."""
        result = self._post({"id": 2, "method": "tools/call", "params": self.params})[1]["result"]
        return not result.get("isError") and result["content"][0]["text"] == "x" * SIZE

    def load(self, connections: int, seconds: int, folder: Path) -> dict[str, float]:
        """One load by wrk. Ends the run where an answer before, in or after it is wrong.

        A session belongs to the process that opened it, for earnest: so the process that becomes wrk opens the one it uses.
        """
        script, begun = folder / "peers.lua", folder / "begun"

        def prepare() -> None:
            self._open()
            assert self.answers()
            headers = ", ".join(f"[{json.dumps(name)}]={json.dumps(value)}" for name, value in self.headers.items())
            body = json.dumps({"method": "tools/call", "params": self.params}, separators=(",", ":"))[1:]
            script.write_text(LOAD.replace("HEADERS", f"{{{headers}}}").replace("BODY", f"[==[{body}]==]"))
            begun.write_text(str(self.way.spent()))

        url = f"http://127.0.0.1:{self.port}{self.path}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20", "-s", str(script), url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, preexec_fn=prepare)
        spent = self.way.spent() - float(begun.read_text())
        found = json.loads(done.stdout.rpartition("DONE ")[2])
        self._open()
        if not found["calls"] or found["bad"] or not self.answers():
            raise SystemExit(f"{self.way.name}, {connections} connections: wrong answers under load: {found}")
        rate = found["calls"] * 1e6 / found["us"]
        return {"cpu_us": spent / found["calls"], "rate": rate, "p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"]}


def over_http(stack: ExitStack, folder: Path, peers: dict[str, Path]) -> list[Driven]:
    """HTTP to HTTP, in front of the canned server."""
    up, air, fast = free_ports(3)
    stack.enter_context(running([str(folder / "upstream"), str(up), str(SIZE)], up))
    to, url = {SIZE: up}, f"http://127.0.0.1:{up}/mcp"
    (folder / "policy.yaml").write_text(AIRLOCK)
    (folder / "proxy.py").write_text(FASTMCP)
    airlock = [str(peers["mcp-airlock"] / "bin" / "mcp-airlock"), "--policy", str(folder / "policy.yaml"), "--upstream", url]
    airlock += ["--env", "prod", "--port", str(air), "--audit", str(folder / "audit.jsonl")]
    trusting = ["env", "AIRLOCK_TRUST_PRINCIPAL_HEADER=1", *airlock]
    proxy = [str(peers["fastmcp"] / "bin" / "python"), str(folder / "proxy.py"), str(fast), url]
    trust = {"X-Airlock-Principal": "bench"}
    return [
        Driven(http_bench.nginx(stack, folder, to), {}),
        Driven(http_bench.earnest(stack, folder, to), {}),
        Driven(Way("mcp-airlock", {SIZE: (air, "/mcp")}, [stack.enter_context(running(trusting, air))]), trust),
        Driven(Way("fastmcp proxy", {SIZE: (fast, "/mcp")}, [stack.enter_context(running(proxy, fast))]), {}),
    ]  # fmt: skip


def http_to_pipes(stack: ExitStack, folder: Path, peers: dict[str, Path]) -> list[Driven]:
    """HTTP to a server on pipes, in sessions: without one, a bridge starts a server for each call."""
    (folder / "server.py").write_text(stdio_bench.SERVER.replace("SIZE", str(SIZE)).replace('"look"', '"echo"'))
    server = [sys.executable, "-S", str(folder / "server.py")]
    gate, proxy = free_ports(2)
    line = " ".join(server)
    bin_of = {name: peers[name] / "node_modules" / ".bin" / name for name in ("supergateway", "mcp-proxy")}
    gateway = [str(bin_of["supergateway"]), "--stdio", line, "--outputTransport", "streamableHttp", "--stateful"]
    gateway += ["--port", str(gate), "--logLevel", "none"]
    bridge = [str(bin_of["mcp-proxy"]), "--host", "127.0.0.1", "--port", str(proxy), "--server", "stream", "--", *server]
    config = f'command = {json.dumps(server)}\ntrust = "trusted"\n'
    return [
        Driven(http_bench.earnest(stack, folder / "pipes", {SIZE: 0}, config), {}, (LEGACY,)),
        Driven(Way("supergateway", {SIZE: (gate, "/mcp")}, [stack.enter_context(running(gateway, gate))]), {}, (LEGACY,)),
        Driven(Way("mcp-proxy", {SIZE: (proxy, "/mcp")}, [stack.enter_context(running(bridge, proxy))]), {}, (LEGACY,)),
    ]


def loads(
    driven: list[Driven], connections: list[int], rounds: int, seconds: int, folder: Path, failed: dict[str, str]
) -> dict[str, Any]:
    """All ways at all numbers of connections, interleaved. A way that fails is left out from there on, and told in `failed`."""
    seen: dict[str, dict[str, list[dict[str, float]]]] = {}
    for turn in range(rounds):
        for count in connections:
            for at in range(len(driven)):
                one = driven[(at + turn) % len(driven)]
                if one.way.name in failed:
                    continue
                try:
                    took = one.load(count, seconds, folder)
                except (SystemExit, subprocess.SubprocessError) as error:
                    failed[one.way.name] = str(error)
                    seen.pop(one.way.name, None)
                    continue
                seen.setdefault(one.way.name, {}).setdefault(str(count), []).append(took)
    eras = {one.way.name: one.era for one in driven}
    return {
        name: {"era": eras[name], **{
            count: {key: spread([one[key] for one in many]) for key in ("cpu_us", "rate", "p50_ms", "p99_ms")}
            for count, many in cells.items()
        }}
        for name, cells in seen.items()
    }  # fmt: skip


def over_pipes(folder: Path, peers: dict[str, Path], rounds: int, calls: int) -> dict[str, Any]:
    """Pipes to pipes."""
    (folder / "proxy.py").write_text(FASTMCP)
    seen: dict[str, dict[str, list[float]]] = {}
    with stdio_bench.ways(str(folder), SIZE, False) as found:
        server = [sys.executable, "-S", str(folder / "server.py")]
        env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        commands = {
            "kairoseki": [str(peers["kairoseki"] / "bin" / "kairoseki"), "run", "--mode", "monitor", "--", *server],
            "fastmcp proxy": [str(peers["fastmcp"] / "bin" / "python"), str(folder / "proxy.py"), "stdio", *server],
        }
        for name, command in commands.items():
            way = stdio_bench.Way(command, env, str(folder), (",", ":"))
            way.between = [way.process.pid]
            found[name] = way
        del found["direct"]
        for _ in range(rounds):
            for depth in (1, 16):
                for name, way in found.items():
                    before = way.spent()
                    took = way.run(calls, depth)
                    seen.setdefault(name, {}).setdefault(f"depth {depth}", []).append((way.spent() - before) / calls)
                    if depth == 1:
                        seen[name].setdefault("p50_us", []).extend(took)
    return {name: {key: spread(values) for key, values in cells.items()} for name, cells in seen.items()}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=whole_seconds, default=3)
    parser.add_argument("--connections", default="1,8")
    parser.add_argument("--calls", type=int, default=1000, help="calls of one round over pipes")
    parser.add_argument("--out", type=Path, help="where to write the findings as JSON")
    given = parser.parse_args()
    peers = installed()
    counts = [int(one) for one in given.connections.split(",")]
    found: dict[str, Any] = {}
    failed: dict[str, dict[str, str]] = {}
    load_before = os.getloadavg()[0]
    for name, make in (("HTTP to HTTP", over_http), ("HTTP to pipes", http_to_pipes)):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="e-")))
            (folder / "pipes").mkdir()
            subprocess.run(["gcc", "-O2", "-o", str(folder / "upstream"), str(ROOT / "bench" / "upstream.c")], check=True)
            driven = make(stack, folder, peers)
            found[name] = loads(driven, counts, given.rounds, given.seconds, folder, failed.setdefault(name, {}))
    with tempfile.TemporaryDirectory(prefix="e-") as name:
        found["pipes to pipes"] = over_pipes(Path(name), peers, given.rounds, given.calls)
    result = {
        "bench": "peers",
        "date": str(datetime.date.today()),
        "machine": machine(),
        "load": {"before": round(load_before, 1), "after": round(os.getloadavg()[0], 1)},
        "pins": tomllib.loads((ROOT / "bench" / "peers.toml").read_text()),
        "inconclusive": load_before > http_bench.BUSY_LOAD,
        **found,
        "failed": [f"{way}, {name}: {why}" for name, ways in failed.items() for way, why in ways.items()],
    }
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()

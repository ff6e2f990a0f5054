"""What a call over HTTP costs on its way: earnest beside relays that judge nothing, in one run.

    python bench/relay_http.py [--rounds 3] [--seconds 2] [--connections 1,16,64] [--sizes 200,10000,1000000]
        [--kinds plain,stream,tls] [--out FILE]

Builds a canned server (`bench/upstream.c`), then loads it by wrk directly, through nginx, through haproxy in TCP mode where it
is installed, and through earnest with policy, labels and receipts on. Ways are interleaved within each round, so that a machine
whose speed drifts treats them alike. Before any load every way is asked for each kind of answer, and it must be the right one;
under load each answer's status counts, and their mean size must be that of the one that was looked at.

Two more cells have the first size and 16 connections: calls that the server answers by an event stream, and a server that is
reached by TLS (nginx before the canned one ends it, and is not counted). A listener of earnest has no TLS of its own.

`cpu_us` is user and system time of all processes of a way for each call, without wrk and the server; `ratio` is that by nginx's
in the same round, size and number of connections; `p50_ms` and `p99_ms` are wrk's. Medians over rounds, with the least and the
greatest. A run says `inconclusive` where the direct way's rates differ by more than a factor of 1.6 between rounds, or the
machine was busy at the start. Calls are of 2026-07-28. Bounded by rounds x seconds x connections x sizes x ways. `measure.py`
keeps what it finds and makes a page of it. Needs gcc, wrk and nginx; Linux, since it reads /proc.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")
NOISY = 1.6
BUSY_LOAD = 4.0
VERSION = "2026-07-28"
META = {
    f"io.modelcontextprotocol/{name}": value
    for name, value in {
        "protocolVersion": VERSION,
        "clientCapabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }.items()
}
ARGUMENTS = {"message": "hello world, this is a message of some length for the bench"}

LOAD = """
local bodies, at = {}, 0
function init(args)
  local headers = {["Content-Type"] = "application/json", ["Accept"] = "application/json, text/event-stream",
    ["Authorization"] = "Bearer TOKEN", ["MCP-Protocol-Version"] = "VERSION", ["Mcp-Method"] = "tools/call",
    ["Mcp-Name"] = "echo"}
  for n = 1, 1000 do bodies[n] = wrk.format("POST", nil, headers, '{"jsonrpc":"2.0","id":' .. n .. ',BODY') end
end
function request() at = at % 1000 + 1 return bodies[at] end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\\nDONE {"calls":%d,"bytes":%d,"us":%d,"bad":%d,"p50_ms":%f,"p99_ms":%f}\\n', summary.requests,
    summary.bytes, summary.duration, e.status + e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
"""

NGINX = """
worker_processes 1; daemon off; pid FOLDER/nginx.pid; error_log FOLDER/nginx.log;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path FOLDER/t1; proxy_temp_path FOLDER/t2; fastcgi_temp_path FOLDER/t3;
  uwsgi_temp_path FOLDER/t4; scgi_temp_path FOLDER/t5; keepalive_requests 1000000000;
  SERVERS }
"""
NGINX_SERVER = """
  upstream u{port} {{ server 127.0.0.1:{to}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port}; client_max_body_size 8m;
    location / {{ proxy_pass {scheme}://u{port}; proxy_http_version 1.1;
    proxy_set_header Connection ""; proxy_buffering off; }} }}
"""
TLS_SERVER = """
  upstream t{port} {{ server 127.0.0.1:{to}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    location / {{ proxy_pass http://t{port}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }} }}
"""
HAPROXY = """
global
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
"""

Cells = dict[str, dict[str, list[dict[str, float]]]]


class Way:
    """One way to the server: an address for each size, and the processes whose time counts."""

    def __init__(self, name: str, urls: dict[int, tuple[int, str]], pids: list[int], token: str = "none") -> None:
        self.name, self.urls, self.pids, self.token = name, urls, pids, token

    def spent(self) -> float:
        """Microseconds of processor time of the processes and all that descends from them, ended ones they waited for too."""
        parents: dict[int, int] = {}
        times: dict[int, float] = {}
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                parents[int(entry.name)] = int(fields[1])
                times[int(entry.name)] = sum(int(field) for field in fields[11:15]) * TICK_US
        total = 0.0
        for pid in times:
            above = pid
            while above and above not in self.pids:
                above = parents.get(above, 0)
            total += times[pid] if above else 0.0
        return total


def free_ports(count: int) -> list[int]:
    """Ports that are free at this moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def reachable(port: int) -> None:
    """Wait until something listens."""
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """A process of ours, once it listens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        reachable(port)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def behind_tls(stack: ExitStack, folder: Path, to: dict[int, int]) -> dict[int, int]:
    """Ports on which the servers are reached by TLS, with the certificate `cert.pem`."""
    folder.mkdir()
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bench -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*make.split(), "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)
    ports = dict(zip(to, free_ports(len(to)), strict=True))
    servers = "".join(TLS_SERVER.format(port=ports[size], to=to[size], folder=folder) for size in to)
    (folder / "nginx.conf").write_text(NGINX.replace("SERVERS", servers).replace("FOLDER", str(folder)))
    command = [shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    stack.enter_context(running(command, next(iter(ports.values()))))
    return ports


def nginx(stack: ExitStack, folder: Path, to: dict[int, int], scheme: str = "http") -> Way:
    """The relay that everyone knows."""
    ports = dict(zip(to, free_ports(len(to)), strict=True))
    servers = "".join(NGINX_SERVER.format(port=ports[size], to=to[size], scheme=scheme) for size in to)
    (folder / "nginx.conf").write_text(NGINX.replace("SERVERS", servers).replace("FOLDER", str(folder)))
    command = [shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    pid = stack.enter_context(running(command, next(iter(ports.values()))))
    return Way("nginx", {size: (port, "/mcp") for size, port in ports.items()}, [pid])


def haproxy(stack: ExitStack, folder: Path, to: dict[int, int]) -> Way:
    """A relay of bytes."""
    ports = dict(zip(to, free_ports(len(to)), strict=True))
    listens = "".join(f"listen l{s}\n  bind 127.0.0.1:{ports[s]}\n  server s 127.0.0.1:{to[s]}\n" for s in to)
    (folder / "haproxy.cfg").write_text(HAPROXY + listens)
    command = ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")]
    pid = stack.enter_context(running(command, next(iter(ports.values()))))
    return Way("haproxy-tcp", {size: (port, "/mcp") for size, port in ports.items()}, [pid])


def earnest(stack: ExitStack, folder: Path, to: dict[int, int], server: str = "") -> Way:
    """The daemon with what it does by default: policy, labels, receipts. Payloads are not kept. `server`: lines of a server's
    configuration in place of the canned one's."""
    home = folder / "home"
    config = home / ".config" / "earnest" / "earnest.toml"
    config.parent.mkdir(parents=True)
    lines = {size: server or f'url = "http://127.0.0.1:{port}/mcp"\ntrust = "trusted"\n' for size, port in to.items()}
    servers = "".join(f"[servers.s{size}]\n{line}" for size, line in lines.items())
    config.write_text(f"{servers}[receipts]\npayloads = false\n[listen]\nport = {free_ports(1)[0]}\n")
    config.chmod(0o600)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "EARNEST_HOME": f"{home}/e", "PYTHONPATH": str(ROOT / "src")}
    start = "import os; from earnest.gateway.process.control import connect_control as c; print(c(os.environ).call('listen'))"
    stop = [sys.executable, "-m", "earnest", "stop"]
    stack.callback(subprocess.run, stop, env=env, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-c", start], env=env, cwd=home, check=True, stdout=subprocess.DEVNULL)
    instance = home / "e" / "default"
    port = int(json.loads((instance / "http").read_text())["address"].rpartition(":")[2])
    pid = int((instance / "daemon.log").read_text().rpartition("process ")[2].split()[0])
    return Way("earnest", {s: (port, f"/s/s{s}/mcp") for s in to}, [pid], (instance / "token").read_text().strip())


def ask(way: Way, size: int, method: str, params: dict[str, Any], token: str = "") -> tuple[int, Any, int]:
    """One request: status, what its body says, bytes of the whole answer."""
    port, path = way.urls[size]
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": META}}, separators=(",", ":"))
    headers = {
        "Host": f"127.0.0.1:{port}",
        "Content-Length": str(len(body)),
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token or way.token}",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n{body}".encode())
        answer = connection.makefile("rb")
        status = answer.readline()
        size_of_head, size_of_body, chunked = len(status), 0, False
        while (line := answer.readline()) not in (b"\r\n", b""):
            size_of_head += len(line)
            if line.lower().startswith(b"content-length:"):
                size_of_body = int(line.partition(b":")[2])
            chunked = chunked or line.lower().startswith(b"transfer-encoding:")
        raw = answer.read(size_of_body)
        size_of_body = len(raw)
        while chunked and (size_of_chunk := int(line := answer.readline(), 16)):
            raw += (chunk := answer.read(size_of_chunk + 2))[:-2]
            size_of_body += len(line) + len(chunk)
    events = [line[6:] for line in raw.split(b"\n") if line.startswith(b"data: ")]
    return int(status.split()[1]), json.loads(events[0] if events else raw), size_of_head + 2 + size_of_body


def checked(way: Way, size: int) -> int:
    """Every kind of answer is the right one; the bytes of a call's. Ends the run where one is not."""
    call = {"name": "echo", "arguments": ARGUMENTS}
    listed = ask(way, size, "tools/list", {})[1]
    status, called, length = ask(way, size, "tools/call", call)
    result = called.get("result", {})
    right = {
        "discover": VERSION in ask(way, size, "server/discover", {})[1]["result"]["supportedVersions"],
        "list": [tool["name"] for tool in listed["result"]["tools"]] == ["echo"],
        "call": (status, called["id"], result.get("isError"), result.get("resultType")) == (200, 7, False, "complete"),
        "size": len(result["content"][0]["text"]) == size,
        "error": ask(way, size, "no/such", {})[1]["error"]["code"] == -32601,
    }
    if way.token != "none":
        right["token"] = ask(way, size, "tools/call", call, "x" * 43)[0] == 401
    wrong = [name for name, fine in right.items() if not fine]
    if wrong:
        raise SystemExit(f"{way.name}, {size} bytes: a wrong answer to {', '.join(wrong)}: {str(called)[:300]}")
    return length


def loaded(way: Way, size: int, connections: int, seconds: int, folder: Path, length: int) -> dict[str, float]:
    """One load: what wrk saw and what the way spent on it."""
    params = {"name": "echo", "arguments": ARGUMENTS, "_meta": META}
    tail = json.dumps({"method": "tools/call", "params": params}, separators=(",", ":"))
    script = folder / "load.lua"
    script.write_text(LOAD.replace("TOKEN", way.token).replace("VERSION", VERSION).replace("BODY", tail[1:]))
    port, path = way.urls[size]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20", "-s", str(script)]
    before = way.spent()
    done = subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, timeout=seconds + 60)
    spent = way.spent() - before
    try:
        found = json.loads(done.stdout.rpartition("DONE ")[2])
    except ValueError:
        raise SystemExit(f"wrk failed: {done.stdout[-500:]} {done.stderr[-500:]}") from None
    # What was under way at the end has come in part.
    most = 1.2 * length * (found["calls"] + connections)
    if not found["calls"] or found["bad"] or not 0.8 * length * found["calls"] < found["bytes"] < most:
        raise SystemExit(f"{way.name}, {size} bytes, {connections} connections: wrong answers under load: {found}")
    rate = found["calls"] * 1e6 / found["us"]
    return {"cpu_us": spent / found["calls"], "rate": rate, "p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"]}


def whole_seconds(text: str) -> int:
    """The value of `--seconds`. Raises `argparse.ArgumentTypeError` for what is no whole number above nothing."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds, 1 or more: wrk takes no other")
    return int(text)


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {"median": round(statistics.median(values), 3), "min": round(min(values), 3), "max": round(max(values), 3)}


def said(rounds: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """One size at one number of connections, over all rounds."""
    found: dict[str, Any] = {}
    for way, measured in rounds.items():
        cell: dict[str, Any] = {key: spread([one[key] for one in measured]) for key in ("rate", "p50_ms", "p99_ms")}
        if way != "direct":
            cell["cpu_us"] = spread([one["cpu_us"] for one in measured])
            pairs = zip(measured, rounds["nginx"], strict=True)
            ratios = [one["cpu_us"] / base["cpu_us"] for one, base in pairs if base["cpu_us"]]
            cell["ratio"] = spread(ratios) if ratios else {}
        found[way] = cell
    rates = found["direct"]["rate"]
    found["inconclusive"] = rates["max"] / rates["min"] > NOISY
    return found


def machine() -> dict[str, Any]:
    """What it ran on."""
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")), "")
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}


def measured(cells: Cells, kind: str, name: str, sizes: list[int], counts: list[int], rounds: int, seconds: int) -> None:
    """All ways to servers of one kind, into cells whose names end so."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="e-")))
        subprocess.run(["gcc", "-O2", "-o", str(folder / "upstream"), str(ROOT / "bench" / "upstream.c")], check=True)
        to = dict(zip(sizes, free_ports(len(sizes)), strict=True))
        for size, port in to.items():
            more = ["stream"] if kind == "stream" else []
            stack.enter_context(running([str(folder / "upstream"), str(port), str(size), *more], port))
        ways = [Way("direct", {size: (port, "/mcp") for size, port in to.items()}, [])]
        if kind == "tls":
            ports = behind_tls(stack, folder / "tls", to)
            server = f'url = "https://127.0.0.1:{ports[sizes[0]]}/mcp"\nca = "{folder}/tls/cert.pem"\ntrust = "trusted"\n'
            ways += [nginx(stack, folder, ports, "https"), earnest(stack, folder, ports, server)]
        else:
            ways.append(nginx(stack, folder, to))
            if shutil.which("haproxy") and kind == "plain":
                ways.append(haproxy(stack, folder, to))
            ways.append(earnest(stack, folder, to))
        lengths = {(way.name, size): checked(way, size) for way in ways for size in sizes}
        for way in ways:
            loaded(way, sizes[0], 16, 1, folder, lengths[way.name, sizes[0]])
        for turn in range(rounds):
            for size in sizes:
                for count in counts:
                    for at in range(len(ways)):
                        way = ways[(at + turn) % len(ways)]
                        one = loaded(way, size, count, seconds, folder, lengths[way.name, size])
                        cells.setdefault(f"{size} bytes, {count} connections{name}", {}).setdefault(way.name, []).append(one)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=whole_seconds, default=2)
    parser.add_argument("--connections", default="1,16,64")
    parser.add_argument("--sizes", default="200,10000,1000000")
    parser.add_argument("--kinds", default="plain,stream,tls")
    parser.add_argument("--out", type=Path, help="where to write the findings as JSON")
    given = parser.parse_args()
    sizes = [int(one) for one in given.sizes.split(",")]
    counts = [int(one) for one in given.connections.split(",")]
    load_before = os.getloadavg()[0]
    cells: Cells = {}
    for kind in given.kinds.split(","):
        if kind == "plain":
            measured(cells, kind, "", sizes, counts, given.rounds, given.seconds)
        else:
            name = {"stream": ", event stream", "tls": ", server by TLS"}[kind]
            measured(cells, kind, name, sizes[:1], [16], given.rounds, given.seconds)
    found = {name: said(rounds) for name, rounds in cells.items()}
    result = {
        "bench": "http",
        "date": str(datetime.date.today()),
        "machine": machine(),
        "load": {"before": round(load_before, 1), "after": round(os.getloadavg()[0], 1)},
        "rounds": given.rounds,
        "seconds": given.seconds,
        "inconclusive": load_before > BUSY_LOAD or any(cell["inconclusive"] for cell in found.values()),
        "cells": found,
    }
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    for name, cell in found.items():
        parts = [f"{way} {cell[way]['cpu_us']['median']:.0f} us ({cell[way]['ratio'].get('median', 0):.2f})" for way in cell
                 if way not in ("direct", "inconclusive")]  # fmt: skip
        print(f"{name}: {', '.join(parts)}{'  inconclusive' if cell['inconclusive'] else ''}")
    if result["inconclusive"]:
        print("inconclusive: the machine was busy, or its speed changed")


if __name__ == "__main__":
    main()

"""Loads the gateway as a crowd does, and counts at both ends.

    python bench/load.py [streams] [calls] [--streams 10000] [--rate 2000] [--seconds 60] [--percent 1] [--json] [--out FILE]

`streams`: that many clients each hold an idle event stream (`subscriptions/listen`) on one gateway; what one of them costs in
memory, and that a call goes through beside them. `calls`: so many calls a second for so long, by a compiled client, through the
gateway to a server that does a share of them wrong (reset, 500, slow, cut body). Each call has a number. To hold: none reaches
the server twice; each has one answer, its own result where the server did nothing wrong and an error where it did; each that
reached the server has one receipt with an outcome, and the receipts verify.

Ends with 1 where something does not hold. Builds bench/load.c and bench/faulty.c; needs gcc and Linux; loopback alone. Raises
the limit of open files as far as it may, and says so where that is not enough.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "src")]

from relay_http import Way, ask, earnest, free_ports, machine, reachable  # noqa: E402

from earnest.store.read import receipts  # noqa: E402

ANSWERS = {"result": "o", "error": "e", "none": "l", "wrong": "x"}
WRONGS = ("none", "reset", "500", "slow", "cut")


def wrong(n: int, percent: int) -> str:
    """What bench/faulty.c does wrong with a number."""
    h = n * 2654435761 & 0xFFFFFFFF
    return WRONGS[1 + (h >> 28) % 4] if (h >> 8) % 100 < percent else "none"


def open_files(wanted: int) -> None:
    """Raise the limit of open files, or end the run with what to do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        many = f"{wanted} open files are needed in one process and {hard} are allowed"
        raise SystemExit(f"{many}: raise `ulimit -Hn`, or ask for less")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def built(folder: Path, name: str) -> str:
    """A program of bench, compiled."""
    made = folder / name
    subprocess.run(["gcc", "-O2", "-o", str(made), str(ROOT / "bench" / f"{name}.c")], check=True)
    return str(made)


def resident(pid: int) -> int:
    """Bytes that a process holds in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def gateway(stack: ExitStack, folder: Path, port: int, **limits: int) -> Way:
    """A daemon of its own before the server, with these limits."""
    lines = "".join(f"{name} = {value}\n" for name, value in limits.items())
    server = f'url = "http://127.0.0.1:{port}/mcp"\ntrust = "trusted"\n[limits]\n{lines}'
    way = earnest(stack, folder, {1: port}, server)
    status, answer, _ = ask(way, 1, "tools/list", {})
    assert status == 200 and answer["result"]["tools"], answer
    return way


def server(stack: ExitStack, folder: Path, calls: int, percent: int) -> tuple[int, subprocess.Popen[str]]:
    """The counting server; it tells what it counted when its input is closed."""
    (port,) = free_ports(1)
    command = [built(folder, "faulty"), str(port), str(calls), str(percent)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.callback(process.kill)
    reachable(port)
    return port, process


def hold_streams(count: int) -> dict[str, Any]:
    """Hold so many idle streams."""
    open_files(count + 500)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="e-")))
        port, _ = server(stack, folder, 10, 0)
        way = gateway(stack, folder, port, connections=count + 100)
        for n in range(10):
            ask(way, 1, "tools/call", {"name": "echo", "arguments": {"n": n}})
        before = resident(way.pids[0])
        at, path = way.urls[1]
        command = [built(folder, "load"), "streams", str(at), path, way.token, str(count), "0", "0"]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(client.kill)
        assert client.stdin is not None and client.stdout is not None
        words = client.stdout.readline().split()
        if not words:
            raise SystemExit("the client ended before all streams were open")
        time.sleep(20)  # longer than the gateway is silent on a stream: each gets a comment
        after = resident(way.pids[0])
        began = time.monotonic()
        status, answer, _ = ask(way, 1, "tools/call", {"name": "echo", "arguments": {"n": 1}})
        took = time.monotonic() - began
        client.stdin.close()
        closed = int(client.stdout.readline().split()[1])
        return {
            "streams": int(words[1]),
            "refused": int(words[2]),
            "closed": closed - int(words[2]),
            "open_s": float(words[3]),
            "bytes_each": round((after - before) / count),
            "resident_mb": round(after / 1e6, 1),
            "a_call_beside_ms": round(took * 1000, 1),
            "holds": (int(words[1]), closed, status, "result" in answer) == (count, 0, 200, True),
        }


def digest(n: int) -> str:
    """What the receipt of a number says of its arguments."""
    return hashlib.sha256(b'{"n":%d}' % n).hexdigest()


def make_calls(rate: int, seconds: int, percent: int, connections: int) -> dict[str, Any]:
    """Make calls and count."""
    calls = rate * seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="e-")))
        port, counting = server(stack, folder, calls, percent)
        most = connections + 16
        way = gateway(stack, folder, port, in_flight_per_client=most, in_flight_per_server=most)
        at, path = way.urls[1]
        command = [built(folder, "load"), "calls", str(at), path, way.token, str(connections), str(calls), str(rate)]
        before = way.spent()
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 20 + 120)
        spent = way.spent() - before
        if done.returncode:
            raise SystemExit(f"the client failed: {done.stderr[-500:]}")
        letters, told = done.stdout[:calls], json.loads(done.stdout[calls:])
        time.sleep(1)
        came = counting.communicate()[0]
        instance = folder / "home" / "e" / "default"
        home = {"HOME": str(folder / "home"), "EARNEST_HOME": f"{folder}/home/e"}
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), **home}
        verify = [sys.executable, "-m", "earnest", "receipts", "verify"]
        verified = subprocess.run(verify, env=env, capture_output=True, text=True)
        found: Counter[str] = Counter()
        outcomes: Counter[str] = Counter()
        for one in receipts(str(instance / "receipts"), tool="echo", decision="allow"):
            found[one.arguments_sha256] += 1
            outcomes[one.outcome or "none"] += 1
    expected = {n: wrong(n, percent) for n in range(calls)}
    off = [
        n
        for n in range(calls)
        if came[n] != "1" or letters[n] != ("o" if expected[n] in ("none", "slow") else "e") or found[digest(n)] != 1
    ]
    return {
        "calls": calls,
        "rate": round(calls / told["seconds"], 1),
        "asked_rate": rate,
        "connections": connections,
        "done_wrong": dict(Counter(what for what in expected.values() if what != "none")),
        "answers": {word: letters.count(letter) for word, letter in ANSWERS.items()},
        "reached": {"once": came.count("1"), "never": came.count("0"), "more": calls - came.count("1") - came.count("0")},
        "receipts": sum(found.values()),
        "outcomes": dict(outcomes),
        "receipts_verify": verified.returncode == 0,
        "p50_ms": told["p50_ms"],
        "p99_ms": told["p99_ms"],
        "behind_s": told["behind_s"],
        "cpu_us_each": round(spent / calls, 1),
        "off": off[:10],
        "holds": not off and verified.returncode == 0 and "none" not in outcomes,
    }


def keep(out: Path, name: str, found: dict[str, Any]) -> None:
    """Put findings beside those of other commands in one file."""
    known = json.loads(out.read_text()) if out.exists() else {}
    known[name] = {"date": str(datetime.date.today()), "machine": machine(), "load": round(os.getloadavg()[0], 1), **found}
    out.write_text(json.dumps(known, indent=1) + "\n")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["streams", "calls", []], help="all of it unless named")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=2000, help="calls a second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--percent", type=int, default=1, help="calls that the server does wrong")
    parser.add_argument("--connections", type=int, default=48)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="a file of findings to put them into, such as bench/results/faults.json")
    given = parser.parse_args()
    result: dict[str, Any] = {}
    for name in given.what or ["streams", "calls"]:
        if not given.json:
            print(f"{name} …", file=sys.stderr)
        result[name] = (
            hold_streams(given.streams)
            if name == "streams"
            else make_calls(given.rate, given.seconds, given.percent, given.connections)
        )
        if given.out:
            keep(given.out, name, result[name])
    if given.json:
        print(json.dumps(result))
    else:
        for name, found in result.items():
            print("\n".join(f"{name:8} {key:18} {value}" for key, value in found.items()))
    return 0 if all(found["holds"] for found in result.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""What the daemon holds in memory: idle, for each open conversation, and over many calls.

    python bench/memory.py [--conversations 2000] [--calls 100000] [--out FILE]

`idle` is the daemon's resident memory, in bytes, once it listens with one server and has answered one call. A conversation is a
handle that a client minted and called with once, so that it has a key, labels and what it read. `calls` are one client's, over
16 connections; `growth` is what memory grew by from a tenth of the way to its end, in bytes a call: what stays below ten is
the allocator's. `client` is what a client leaves behind that came, called over 16 connections and went: each is a process,
and so a conversation of its own; of twenty in a row the last ten count. `idle` is the whole resident set, libraries included
(`Rss` of smaps_rollup); the others are what no file backs (`Anonymous`). Needs gcc and wrk; Linux. Bounded in conversations,
calls and time.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import json
import math
import subprocess
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import relay_http as bench
from relay_http import ARGUMENTS, META, ROOT, VERSION, Way, free_ports, machine, running

SIZE = 200
PARTS = 10
CLIENTS = 10
MOST_S = 60
HANDLE = "dev.earnest/conversation"


def held(pid: int, what: str = "Anonymous") -> int:
    """Bytes of one kind that a process holds."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith(" kB")}
    return sizes[what]


def call(connection: http.client.HTTPConnection, way: Way, handle: str) -> None:
    """One call of one conversation; ends the run where its answer is not a result."""
    params = {"name": "echo", "arguments": ARGUMENTS, "_meta": {**META, HANDLE: handle}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {way.token}",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "echo",
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    connection.request("POST", way.urls[SIZE][1], body, headers)
    answer = json.loads(connection.getresponse().read())
    if answer.get("result", {}).get("isError") is not False:
        raise SystemExit(f"no result: {str(answer)[:300]}")


def measured(way: Way, conversations: int, calls: int, folder: Path) -> dict[str, Any]:
    """All figures of one daemon."""
    pid = way.pids[0]
    length = bench.checked(way, SIZE)
    idle = held(pid, "Rss")
    connection = http.client.HTTPConnection("127.0.0.1", way.urls[SIZE][0], timeout=30)
    for number in range(200):  # what every path allocates once
        call(connection, way, f"warm-{number}")
    before = held(pid)
    for number in range(conversations):
        call(connection, way, f"bench-{number}")
    each = (held(pid) - before) / conversations
    connection.close()
    rate = bench.loaded(way, SIZE, 16, 1, folder, length)["rate"]
    seconds = min(MOST_S, math.ceil(calls / rate))
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(seconds / PARTS):
            seen.append(held(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    done = bench.loaded(way, SIZE, 16, seconds, folder, length)["rate"] * seconds
    over.set()
    watcher.join()
    grown = (held(pid) - seen[0]) / (done * (PARTS - 1) / PARTS)
    for number in range(2 * CLIENTS):  # the first of them find a heap that is still small
        if number == CLIENTS:
            before = held(pid)
        bench.loaded(way, SIZE, 16, 1, folder, length)
    client = (held(pid) - before) / CLIENTS
    return {
        "idle": idle, "conversation": round(each), "calls": round(done), "growth": round(grown, 2),
        "client": round(client), "after": held(pid, "Rss"),
    }  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--out", type=Path, help="where to write the findings as JSON")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="e-")))
        subprocess.run(["gcc", "-O2", "-o", str(folder / "upstream"), str(ROOT / "bench" / "upstream.c")], check=True)
        port = free_ports(1)[0]
        stack.enter_context(running([str(folder / "upstream"), str(port), str(SIZE)], port))
        found = measured(bench.earnest(stack, folder, {SIZE: port}), given.conversations, given.calls, folder)
    result = {"bench": "memory", "date": str(datetime.date.today()), "machine": machine(), **found}
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()

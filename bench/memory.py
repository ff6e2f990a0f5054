"""What the daemon holds in memory: idle, for each open conversation, and over many calls.

    python bench/memory.py [--conversations 2000] [--calls 100000] [--out FILE]

`idle` is the daemon's resident memory, in bytes, once it listens with one server and has answered one call. A conversation is a
handle that a client minted and called with once, so that it has a key, labels and what it read. `calls` go through in ten
parts of equal size; `growth` is what memory grew by from the first part's end to the last's, in bytes a call: what stays
below ten bytes is the allocator's. `idle` is the whole resident set, libraries included (`Rss` of smaps_rollup); the others
are what no file backs (`Anonymous`). Needs gcc and wrk; Linux. Bounded in conversations and calls.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import json
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import relay_http as bench
from relay_http import ARGUMENTS, META, ROOT, VERSION, Way, free_ports, machine, running

SIZE = 200
PARTS = 10
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
    seen = []
    done = 0
    while done < calls and len(seen) < 20 * PARTS:
        one = bench.loaded(way, SIZE, 16, 1, folder, length)
        done += int(one["rate"])
        seen.append((done, held(pid)))
    first = next((at for at, (count, _) in enumerate(seen) if count * PARTS >= calls), 0)
    grown = (seen[-1][1] - seen[first][1]) / max(1, seen[-1][0] - seen[first][0])
    return {"idle": idle, "conversation": round(each), "calls": done, "growth": round(grown, 2), "after": held(pid, "Rss")}


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

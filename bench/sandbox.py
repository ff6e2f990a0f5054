"""What a box costs: its start, a call, a look.

    python bench/sandbox.py [--starts 20] [--calls 2000]

Prints a table, then one line of JSON. `start`: milliseconds from starting the process to its first answer; `cpu`: processor
time of all of it for a start, a few calls and its end; `call`: microseconds of a line there and back, `write` of one that
appends to a file; `look`: microseconds of a look after 50 files were written. `bare` is the same command without a box.
Medians. Nothing is checked here; the figures to hold are a start within 300 ms and a call within 1 ms of the bare one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from earnest.sandbox import tiers  # noqa: E402
from earnest.sandbox.box import Plan, Reach  # noqa: E402

ECHO = ("/bin/cat",)
WRITER = ("/bin/sh", "-c", 'while read x; do echo "$x" >> "$HOME/file$x"; echo ok; done')
ENV = {"PATH": "/usr/bin:/bin"}


@contextlib.contextmanager
def started(tier: str, argv: tuple[str, ...], watch: bool, reach: Reach) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """A command in a box, or bare where `tier` is empty."""
    with tempfile.TemporaryDirectory(prefix="eb-") as folder:
        home = f"{folder}/inside"
        box = None
        env = {**ENV, "HOME": folder}
        if tier:
            plan = Plan(argv, ENV, home, home, (), reach, watch=watch)
            box = tiers.choose(tier).box(plan)
            argv, env = box.argv, dict(box.env)
        process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        try:
            yield process, box
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
            if box is not None:
                box.close()


def ask(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line)
    if not process.stdout.read(1):
        raise SystemExit("the box ended")
    while not process.stdout.read(65536).endswith(b"\n"):
        pass


def measured(tier: str, watch: bool, reach: Reach, starts: int, calls: int) -> dict[str, float]:
    begun: list[float] = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(starts):
        at = time.perf_counter()
        with started(tier, ECHO, watch, reach) as (process, _):
            ask(process, b"ping\n")
            begun.append(time.perf_counter() - at)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = {"start_ms": statistics.median(begun) * 1e3, "cpu_ms": cpu / starts * 1e3}
    with started(tier, ECHO, watch, reach) as (process, _):
        found["call_us"] = trips(process, [b"x" * 200 + b"\n"] * calls)
    with started(tier, WRITER, watch, reach) as (process, box):
        found["write_us"] = trips(process, [b"%d\n" % (number % 50) for number in range(max(calls // 10, 100))])
        if box is not None and watch:
            times = []
            for _ in range(20):
                at = time.perf_counter()
                box.look()
                times.append(time.perf_counter() - at)
            found["look_us"] = statistics.median(times) * 1e6
    return found


def trips(process: subprocess.Popen[bytes], lines: list[bytes]) -> float:
    times = []
    for line in lines:
        at = time.perf_counter()
        ask(process, line)
        times.append(time.perf_counter() - at)
    return statistics.median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    cells: list[tuple[str, bool, Reach]] = [("", False, "none")]
    for tier in ("namespaces", "confined"):
        cells += [(tier, False, "none"), (tier, True, "none"), (tier, True, "pretend")]
    rows = []
    print(f"{'box':34}{'start ms':>10}{'cpu ms':>10}{'call µs':>10}{'write µs':>10}{'look µs':>10}")
    for tier, watch, reach in cells:
        found = measured(tier, watch, reach, options.starts, options.calls)
        name = f"{tier}{', watched' if watch else ''}{', pretend' if reach == 'pretend' else ''}" if tier else "bare"
        figures = "".join(f"{found.get(key, 0):10.0f}" for key in ("start_ms", "cpu_ms", "call_us", "write_us", "look_us"))
        print(f"{name:34}{figures}", flush=True)
        rows.append({"box": name, **{key: round(value, 1) for key, value in found.items()}})
    print(json.dumps({"load": os.getloadavg()[0], "rows": rows}))


main()

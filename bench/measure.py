"""Run the measurements of the data path and make `docs/measurements.md` of them.

    python bench/measure.py [--rounds 3] [--seconds 3] [--without-peers] [--docs-only]

Runs `relay_http.py`, `relay_stdio.py`, `decide.py`, `memory.py`, `start.py` and `peers.py` one after another, writes what they
found to `bench/results/DATE.json`, and page and picture from the newest of those files. `--docs-only` only writes these.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import picture

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "measurements.md"
PICTURE = HERE.parent / "docs" / "img" / "measurements.svg"

HEAD = """# Measurements

What earnest costs beside relays that judge nothing. Made by `python bench/measure.py`; do not edit. Times are processor time
(user and system) of everything that stands between client and server, in microseconds a call; they differ from machine to
machine, ratios less so. Policy, labels and receipts are on; payloads are not kept.
"""

SHOWN = ("judge", "call", "flush", "first", "last", "along")

WHY = """
## What remains, and why

Calls over HTTP between modern sides go along tracks ([decision 0011](decisions/0011-known-calls-go-along-tracks.md)).
Of what such a call of 200 bytes costs, by samples of the running daemon (`perf record`), four tenths are the kernel's
(two reads, two writes, a share of one wait and of one write of receipts: what nginx does, and the last), three tenths
Python's and uvloop's way from the loop to the connection and back, objects and look-ups of attributes, one tenth
reading both messages, one tenth the four digests (arguments, result, two records). With few calls at a time the write
of receipts and the turn of the loop are shared by fewer.

A result of 1 MB costs its SHA-256 for the receipt: on a machine that does 1.3 GB in a second as much as all of nginx.
Without it the cell would hold. It stands in the receipt because payloads are found by it; it is not left out to be
faster.

Whatever a track does not carry (older sessions, several servers on one route, progress, pipes, streams of more than the
answer) takes the long way in Python: some hundred microseconds, many times a relay that reads nothing. On pipes, one
call at a time, the daemon is woken twice for each, with cold caches, and writes the call's id into the journal that survives
its death; at 16 at a time a call costs a third of that. TLS to a server is uvloop's, in Python's ssl module; a listener
has none, a proxy before it ends it.
"""


def run(script: str, *arguments: str) -> dict[str, Any]:
    """One measurement that prints its findings as a line of JSON."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    done = subprocess.run([sys.executable, str(HERE / script), *arguments], env=env, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measured(rounds: int, seconds: float, peers: bool) -> dict[str, Any]:
    """All of them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "http.json"
        given = ["--rounds", str(rounds), "--seconds", str(seconds), "--out", str(out)]
        subprocess.run([sys.executable, str(HERE / "relay_http.py"), *given], check=True)
        http = json.loads(out.read_text())
    return {
        "http": http,
        "stdio": run("relay_stdio.py", "--rounds", str(rounds)),
        "stdio, 10 kB": run("relay_stdio.py", "--rounds", str(rounds), "--bytes", "10000"),
        "decide": run("decide.py"),
        "memory": run("memory.py"),
        "start": run("start.py"),
        **({"peers": run("peers.py")} if peers else {}),
    }


def page(found: dict[str, Any]) -> str:
    """The page of one run."""
    http = found["http"]
    on = http["machine"]
    load = http["load"]
    lines = [HEAD]
    lines.append(
        f"Measured {http['date']} on {on['cores']} cores ({on['cpu']}), Linux {on['kernel']}, Python {on['python']}; load"
        f" average {load['before']} before and {load['after']} after, {http['rounds']} rounds of {http['seconds']:g} s a cell."
    )
    if http["inconclusive"]:
        lines.append(
            "\n**Inconclusive:** the machine was busy with other work, or its speed changed during the run. Only ratios within"
            " this run say something, and those under load say less."
        )
    lines.append("\n![Processor time of one call by way](img/measurements.svg)")
    lines.append("\n## HTTP to HTTP\n")
    lines.append("`ratio` is to nginx in the same round: median, least to greatest.\n")
    lines.append("| result and connections | way | µs a call | ratio | p50 ms | p99 ms | |\n|---|---|---|---|---|---|---|")
    for name, cell in http["cells"].items():
        for way, one in cell.items():
            if way == "inconclusive":
                continue
            ratio = one.get("ratio")
            told = f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})" if ratio else ""
            cpu = f"{one['cpu_us']['median']:.0f}" if "cpu_us" in one else ""
            noise = "noisy" if cell["inconclusive"] else ""
            p50, p99 = one["p50_ms"]["median"], one["p99_ms"]["median"]
            lines.append(f"| {name} | {way} | {cpu} | {told} | {p50:.2f} | {p99:.2f} | {noise} |")
    lines.append("\n## Pipes\n")
    lines.append("`relay` moves bytes and nothing else. Time of earnest is that of daemon and shim.\n")
    lines.append("| result | way | µs a call, one at a time | µs a call, 16 at a time | p50 µs |\n|---|---|---|---|---|")
    for name in ("stdio", "stdio, 10 kB"):
        for way in ("direct", "relay", "earnest"):
            one = found[name][way]
            each = " | ".join(f"{one['cpu'][depth]:.1f}" if one["cpu"] else "" for depth in ("depth 1", "depth 16"))
            lines.append(f"| {found[name]['bytes']} bytes | {way} | {each} | {one['p50']:.0f} |")
    lines.append("\n## Deciding\n")
    lines.append("`judge` is the verdict alone, `call` with labels and both records, `flush` one write for 16 calls.")
    lines.append("`first` and `last` are the first and the last tenth of one conversation, `along` is the verdict along a")
    lines.append("track, request read and decision recorded. The path is a file's that is there.\n")
    lines.append("| arguments | judge | call | flush | first | last | along |\n|---|---|---|---|---|---|---|")
    for name in ("plain", "path"):
        one = found["decide"][name]
        times = " | ".join(f"{one[key]:.1f}" if key in one else "" for key in SHOWN)
        lines.append(f"| {name} | {times} |")
    return "\n".join([*lines, *_others(found)]) + "\n" + WHY


def _others(found: dict[str, Any]) -> list[str]:
    """Memory, start and other gateways."""
    lines = []
    if memory := found.get("memory"):
        lines.append("\n## Memory\n")
        lines.append(f"- idle: {memory['idle'] / 1e6:.0f} MB resident, libraries included")
        lines.append(f"- a conversation: {memory['conversation'] / 1000:.1f} kB")
        lines.append(f"- over {memory['calls']:,} calls of one conversation: {memory['growth']:.0f} bytes a call")
    if start := found.get("start"):
        lines.append("\n## Start\n")
        lines.append(
            f"From a process's start to its answer to `initialize`: the server alone {start['direct']:.0f} ms, through"
            f" `earnest stdio` with a daemon that runs {start['warm']:.0f} ms ({start['added']:+.0f}), with none"
            f" {start['cold']:.0f} ms (the daemon: {start['daemon']:.0f})."
        )
    if peers := found.get("peers"):
        lines.append("\n## Other gateways and bridges\n")
        lines.append("Pinned in `bench/peers.toml`, in one run with earnest; each decides and records less, or nothing.")
        lines.append("Over HTTP to pipes the server's own time is in every figure.\n")
        lines.append("| from, to | way | era | µs a call, one at a time | µs a call, 8 at a time |\n|---|---|---|---|---|")
        for name in ("HTTP to HTTP", "HTTP to pipes"):
            for way, one in peers[name].items():
                each = " | ".join(f"{one[count]['cpu_us']['median']:,.0f}" for count in ("1", "8"))
                lines.append(f"| {name} | {way} | {one['era']} | {each} |")
        lines.append("\n| pipes to pipes | µs a call, one at a time | µs a call, 16 at a time |\n|---|---|---|")
        for way, one in peers["pipes to pipes"].items():
            lines.append(f"| {way} | {one['depth 1']['median']:,.0f} | {one['depth 16']['median']:,.0f} |")
    return lines


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--docs-only", action="store_true")
    given = parser.parse_args()
    if not given.docs_only:
        RESULTS.mkdir(exist_ok=True)
        out = RESULTS / f"{datetime.date.today()}.json"
        out.write_text(json.dumps(measured(given.rounds, given.seconds, not given.without_peers), indent=1) + "\n")
    found = json.loads(max(RESULTS.glob("2*.json")).read_text())
    PAGE.write_text(page(found))
    PICTURE.write_text(picture.svg(found))
    print(PAGE)


if __name__ == "__main__":
    main()

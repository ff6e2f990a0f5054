"""Run the measurements of the data path and make `docs/measurements.md` of them.

    python bench/measure.py [--rounds 3] [--seconds 3] [--docs-only]

Runs `relay_http.py`, `relay_stdio.py` and `decide.py` one after another, writes what they found to `bench/results/DATE.json`,
and the page from the newest of those files. `--docs-only` only writes the page.
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

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "measurements.md"

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
answer) takes the long way in Python: some hundred microseconds, five to ten times a relay that reads nothing. On pipes, one call
at a time, the daemon is woken twice for each, with cold caches, and writes the call's id into the journal that survives
its death; at 16 at a time a call costs a third of that. TLS to a server is uvloop's, in Python's ssl module; a listener
has none, a proxy before it ends it.
"""


def run(script: str, *arguments: str) -> dict[str, Any]:
    """One measurement that prints its findings as a line of JSON."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    done = subprocess.run([sys.executable, str(HERE / script), *arguments], env=env, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measured(rounds: int, seconds: float) -> dict[str, Any]:
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
    return "\n".join(lines) + "\n" + WHY


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--docs-only", action="store_true")
    given = parser.parse_args()
    if not given.docs_only:
        RESULTS.mkdir(exist_ok=True)
        out = RESULTS / f"{datetime.date.today()}.json"
        out.write_text(json.dumps(measured(given.rounds, given.seconds), indent=1) + "\n")
    newest = max(RESULTS.glob("*.json"))
    PAGE.write_text(page(json.loads(newest.read_text())))
    print(PAGE)


if __name__ == "__main__":
    main()

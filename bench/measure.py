"""Run the measurements of the data path and make `docs/measurements.md` of them.

    python bench/measure.py [--rounds 3] [--seconds 2] [--parts "http;stdio;stdio, 10 kB;decide;memory;start;peers"]
        [--docs-only]

Each part is a command of its own (`relay_http.py`, `relay_stdio.py`, `decide.py`, `memory.py`, `start.py`, `peers.py`); they
run one after another, some nine minutes in all. What each found is written at once to `bench/results/DATE.json`, and page
and picture from that: a part that fails costs only itself, stands in the page by name, and the command ends with 1.
`--parts` runs some again and keeps the day's others; `--docs-only` only writes page and picture, from the newest file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gates
import picture
from relay_http import BUSY_LOAD, machine, whole_seconds

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "measurements.md"
PICTURE = HERE.parent / "docs" / "img" / "measurements.svg"

HEAD = """# Measurements

What earnest costs beside relays that judge nothing. Made by `python bench/measure.py`; do not edit. Times are processor time
(user and system) of everything that stands between client and server, in microseconds a call; they differ from machine to
machine, ratios less so. Policy, labels and receipts are on; payloads are not kept.
"""

PART_S = 900
"""A part that takes longer has failed."""
SHOWN = ("judge", "call", "flush", "first", "last", "along", "kernel")

WHY = """
## What remains, and why

Calls over HTTP between modern sides go along tracks ([decision 0011](decisions/0011-known-calls-go-along-tracks.md)).
Of what such a call of 200 bytes costs, by samples of the running daemon (`perf record`), four tenths are the kernel's
(two reads, two writes, a share of one wait and of one write of receipts: what nginx does, and the last), three tenths
Python's and uvloop's way from the loop to the connection and back, objects and look-ups of attributes, one tenth
reading both messages, one tenth the four digests (arguments, result, two records). With few calls at a time the write
of receipts and the turn of the loop are shared by fewer.

A result of 1 MB costs its SHA-256 for the receipt: on a processor without instructions for it (1.3 GB in a second) as much
as all of nginx, on one that has them a fifth of that. It stands in the receipt because payloads are found by it; it is not
left out to be faster.

A verdict on arguments with a path asks the kernel at each call whether the path leads where it led: opened without following
links, looked at, closed. These three are `kernel` in the table, and what is left over the gate is them: neither a folder
exchanged for a link nor a second name of a file may be missed, and no single question of the kernel answers both.

What a client leaves behind is its conversation (labels and their causes, kept on disk as well), for as long as the operator
lets idle ones live. Calls and connections are freed by counting references; what a run of the first dozen clients adds beyond
that is the heap that they share from then on.

On pipes calls between sides of one era go along tracks too. Those that come at once share one write of records, one to
the server and one to the client; one call at a time more than half of it is the kernel's: the daemon is woken twice, as a
relay is, and besides writes the record of the decision, and each answer twice, into a pipe that the shim owns and from
there to the client, which is what lets a killed daemon's successor know whether it left. The rest is the loop's way to
the call and back, 35 grounds looked at, four digests, and the objects of one call.

Whatever a track does not carry (older sessions over HTTP, several servers on one route, a pipe on one side alone, progress
over HTTP, streams of more than the answer) takes the long way in Python: some hundred microseconds, many times a relay
that reads nothing. TLS to a server is uvloop's, in Python's ssl module; a listener has none, a proxy before it ends it.
"""


def commands(rounds: int, seconds: int) -> dict[str, list[str]]:
    """What is run for each part; each prints its findings as its last line, or writes them where `--out` says."""
    times = ["--rounds", str(rounds)]
    return {
        "http": ["relay_http.py", *times, "--seconds", str(seconds)],
        "stdio": ["relay_stdio.py", *times],
        "stdio, 10 kB": ["relay_stdio.py", *times, "--bytes", "10000"],
        "decide": ["decide.py"],
        "memory": ["memory.py"],
        "start": ["start.py"],
        "peers": ["peers.py", "--rounds", str(min(rounds, 2)), "--seconds", str(max(seconds, 3))],
    }


def run(command: list[str]) -> dict[str, Any]:
    """The findings of one part. Raises `PartFailed`, with the end of what it said, where it has none."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        words = [sys.executable, str(HERE / command[0]), *command[1:]]
        if command[0] == "relay_http.py":
            words += ["--out", str(out)]
        try:
            done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PART_S)
        except subprocess.TimeoutExpired:
            raise PartFailed(f"not done after {PART_S} seconds") from None
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        if done.returncode:
            raise PartFailed(said[-1][:300] if said else f"ended with {done.returncode}")
        found: dict[str, Any] = json.loads(out.read_text() if out.exists() else done.stdout.strip().splitlines()[-1])
        return found


class PartFailed(Exception):
    """A part has no findings."""


def written(found: dict[str, Any], out: Path) -> None:
    """Findings so far, page and picture."""
    out.write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(page(found))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture.svg(found))


def page(found: dict[str, Any]) -> str:
    """The page of one run."""
    lines = [HEAD]
    http, on, load = found.get("http"), found["machine"], found["load"]
    lines.append(
        f"Measured {found['date']} on {on['cores']} cores ({on['cpu']}), Linux {on['kernel']}, Python {on['python']}; load"
        f" average {load['before']} before" + (f" and {load['after']} after." if "after" in load else ".")
    )
    if load["before"] > BUSY_LOAD or (http and http["inconclusive"]):
        lines.append(
            "\n**Inconclusive:** the machine was busy with other work, or its speed changed during the run. Only ratios within"
            " this run say something, and those under load say less."
        )
    for name, why in found.get("failed", {}).items():
        lines.append(f"\n**Not measured:** {name}, since its command failed: `{why}`")
    lines.append("\n![Processor time of one call by way](img/measurements.svg)")
    lines += gates.table(found)
    if http:
        lines += _http(http)
    lines += [*_pipes(found), *_decide(found), *_others(found)]
    return "\n".join(lines) + "\n" + WHY


def _http(http: dict[str, Any]) -> list[str]:
    """Calls over HTTP, cell by cell."""
    lines = ["\n## HTTP to HTTP\n"]
    lines.append(f"`ratio` is to nginx in the same round: median, least to greatest of {http['rounds']} rounds of")
    lines.append(f"{http['seconds']} s. `noisy`: the rates of the way without a relay differ by more than a factor of 1.6.\n")
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
    return lines


def _pipes(found: dict[str, Any]) -> list[str]:
    """Calls over pipes."""
    measured = [found[name] for name in ("stdio", "stdio, 10 kB") if name in found]
    if not measured:
        return []
    lines = ["\n## Pipes\n"]
    lines.append("`relay` moves bytes and nothing else. Time of earnest is that of daemon and shim.\n")
    lines.append("| result | way | µs a call, one at a time | µs a call, 16 at a time | p50 µs |\n|---|---|---|---|---|")
    for size in measured:
        for way in ("direct", "relay", "earnest"):
            one = size[way]
            each = " | ".join(f"{one['cpu'][depth]:.1f}" if one["cpu"] else "" for depth in ("depth 1", "depth 16"))
            lines.append(f"| {size['bytes']} bytes | {way} | {each} | {one['p50']:.0f} |")
    return lines


def _decide(found: dict[str, Any]) -> list[str]:
    """What a verdict costs."""
    if "decide" not in found:
        return []
    lines = ["\n## Deciding\n"]
    lines.append("`judge` is the verdict alone, `call` with labels and both records, `flush` one write for 16 calls.")
    lines.append("`first` and `last` are the first and the last tenth of one conversation, `along` is the verdict along a")
    lines.append("track, request read and decision recorded. The path is a file's that is there; `kernel` is what it costs to")
    lines.append("ask whether it still leads to the same place (opened, looked at, closed), which is done each time.\n")
    lines.append("| arguments | judge | call | flush | first | last | along | kernel |\n|---|---|---|---|---|---|---|---|")
    for name in ("plain", "path"):
        one = found["decide"][name]
        times = " | ".join(f"{one[key]:.1f}" if key in one else "" for key in SHOWN)
        lines.append(f"| {name} | {times} |")
    return lines


def _others(found: dict[str, Any]) -> list[str]:
    """Memory, start and other gateways."""
    lines = []
    if memory := found.get("memory"):
        lines.append("\n## Memory\n")
        lines.append(f"- idle: {memory['idle'] / 1e6:.0f} MB resident, libraries included")
        lines.append(f"- a conversation: {memory['conversation'] / 1000:.1f} kB")
        lines.append(f"- over {memory['calls']:,} calls of one client: {memory['growth']:.1f} bytes a call")
        lines.append(f"- a client that came, called over 16 connections and went: {memory['client'] / 1000:.1f} kB")
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
        lines += [f"\nNot measured: {why}" for why in peers.get("failed", ())]
        lines.append("\n| pipes to pipes | µs a call, one at a time | µs a call, 16 at a time |\n|---|---|---|")
        for way, one in peers["pipes to pipes"].items():
            lines.append(f"| {way} | {one['depth 1']['median']:,.0f} | {one['depth 16']['median']:,.0f} |")
    return lines


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=whole_seconds, default=2)
    parser.add_argument("--parts", help="some of them, with semicolons between; all unless named")
    parser.add_argument("--docs-only", action="store_true")
    given = parser.parse_args()
    if given.docs_only:
        newest = max(RESULTS.glob("2*.json"))
        written(json.loads(newest.read_text()), newest)
        return 0
    every = commands(given.rounds, given.seconds)
    wanted = given.parts.split(";") if given.parts else list(every)
    if unknown := [name for name in wanted if name not in every]:
        parser.error(f"no part {'; '.join(unknown)}; there are {'; '.join(every)}")
    RESULTS.mkdir(exist_ok=True)
    out = RESULTS / f"{datetime.date.today()}.json"
    found = json.loads(out.read_text()) if given.parts and out.exists() else {}
    load = {"before": round(os.getloadavg()[0], 1)}
    found |= {"date": str(datetime.date.today()), "machine": machine(), "load": load}
    failed: dict[str, str] = found.setdefault("failed", {})
    for name in wanted:
        began = time.monotonic()
        found.pop(name, None)
        failed.pop(name, None)
        try:
            found[name] = run(every[name])
        except PartFailed as e:
            failed[name] = str(e)
        written(found, out)
        print(f"{name}: {failed.get(name) or 'measured'} ({time.monotonic() - began:.0f} s)", flush=True)
    load["after"] = round(os.getloadavg()[0], 1)
    written(found, out)
    print(PAGE)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

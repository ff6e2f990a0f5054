"""What it costs to contain a server: its start and a call, beside the same server without.

    python bench/contain.py [--rounds 7] [--calls 200] [--docs-only]

Each round starts every server bare and in an observe lane of each tier, one after the other in turn, and makes the same calls.
`start`: milliseconds until it has answered its opening, and processor time of a start and an end; `call`: milliseconds of one
call there and back, with what is looked at for violations. The best of all rounds, as other work on the machine only adds; of a
round's calls their median. The figures to hold: at most 300 ms a start and 1 ms a call more than bare. Writes
`bench/results/contain.json` and the table of `docs/containment.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "src"))

import msgspec  # noqa: E402

from earnest.core.lanes import Lane  # noqa: E402
from earnest.gateway import lanes  # noqa: E402
from earnest.gateway.contained import ContainedLink  # noqa: E402
from earnest.gateway.served import Grants, Launch  # noqa: E402
from earnest.upstream.opening import ClientHello  # noqa: E402
from earnest.upstream.stdio import StdioLink  # noqa: E402

RESULT = HERE / "results" / "contain.json"
PAGE = ROOT / "docs" / "containment.md"
OPEN, CLOSE = "<!-- made by `python bench/contain.py` -->", "<!-- /made -->"
TIERS = ("", "A", "B")
MOST_START_MS, MOST_CALL_MS = 300, 1


def servers(folder: str) -> dict[str, tuple[tuple[str, ...], str, dict[str, Any]]]:
    """Command, tool and arguments of each server that is measured."""
    file = f"{folder}/notes.txt"
    found: dict[str, tuple[tuple[str, ...], str, dict[str, Any]]] = {
        "a server of 150 lines of Python": (
            (sys.executable, str(ROOT / "tests" / "servers" / "lanes.py")), "look", {"do": "read", "path": file},
        )
    }  # fmt: skip
    published = ROOT / ".servers" / "npm" / "node_modules" / ".bin" / "mcp-server-filesystem"
    if published.exists():
        found["@modelcontextprotocol/server-filesystem"] = ((str(published), folder), "read_text_file", {"path": file})
    return found


async def one(
    argv: tuple[str, ...], tool: str, arguments: dict[str, Any], folder: str, tier: str, calls: int
) -> tuple[float, float, float]:
    """Milliseconds of a start and of a call, and processor time of all of it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    launch = Launch(argv=argv, env=env, cwd="/", grants=Grants(read=(folder,), tier=tier))
    hello = ClientHello(prefer_modern=False)
    link: StdioLink
    if tier:
        link = ContainedLink("server", launch, Lane.OBSERVE, client=hello, log=lambda text: None)
    else:
        link = StdioLink("server", argv, env=env, cwd="/", client=hello, log=lambda text: None)
    params = msgspec.json.encode({"name": tool, "arguments": arguments})
    begun = time.perf_counter()
    await link.open()
    start = time.perf_counter() - begun
    took = []
    try:
        for _ in range(calls):
            begun = time.perf_counter()
            reply = await link.ask("tools/call", params)
            took.append(time.perf_counter() - begun)
            if b"milk" not in reply.result:
                raise SystemExit(f"{argv[0]} answered {reply}")
    finally:
        await link.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return start * 1e3, statistics.median(took) * 1e3 if took else 0.0, used * 1e3


async def measured(folder: str, rounds: int, calls: int) -> dict[str, Any]:
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for tier in TIERS[1:]:
        lanes.tier_of(Grants(tier=tier))
    for _ in range(rounds):
        for name, (argv, tool, arguments) in servers(folder).items():
            for tier in TIERS:
                start, call, _ = await one(argv, tool, arguments, folder, tier, calls)
                again, _, used = await one(argv, tool, arguments, folder, tier, 0)
                figures = {"start_ms": min(start, again), "cpu_ms": used, "call_ms": call}
                found.setdefault(name, {}).setdefault(tier or "bare", []).append(figures)
    return {
        name: {tier: {key: min(one[key] for one in each) for key in each[0]} for tier, each in tiers.items()}
        for name, tiers in found.items()
    }


def page(result: dict[str, Any]) -> str:
    lines = [
        f"`python bench/contain.py` ({result['date']}, {result['cores']} cores, load {result['load']:.0f}), the best of "
        f"{result['rounds']} rounds:",
        "",
        "| server | | start, ms | more | its processor time, ms | more | a call, ms | more |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, tiers in result["servers"].items():
        bare = tiers["bare"]
        for tier, one in tiers.items():
            row = [name if tier == "bare" else "", "bare" if tier == "bare" else f"tier {tier}"]
            for key, digits in (("start_ms", 0), ("cpu_ms", 0), ("call_ms", 2)):
                more = f"{one[key] - bare[key]:+.{digits}f} ({one[key] / bare[key]:.2f}×)" if tier != "bare" else ""
                row += [f"{one[key]:.{digits}f}", more]
            lines.append("| " + " | ".join(row) + " |")
    worst_start, worst_cpu, worst_call = (
        max(one[key] - tiers["bare"][key] for tiers in result["servers"].values() for one in tiers.values())
        for key in ("start_ms", "cpu_ms", "call_ms")
    )
    held = worst_start <= MOST_START_MS and worst_call <= MOST_CALL_MS
    lines += [
        "",
        f"More than bare, at most: {worst_start:.0f} ms a start, of which {worst_cpu:.0f} ms are processor time and the rest "
        f"is waiting for one, and {worst_call:.2f} ms a call. The figures to hold are {MOST_START_MS} ms and "
        f"{MOST_CALL_MS} ms: {'held' if held else 'not held under this load'}.",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--docs-only", action="store_true", help="only write the page, from what was measured last")
    given = parser.parse_args()
    if not given.docs_only:
        with tempfile.TemporaryDirectory(prefix="ec-") as folder:
            Path(folder, "notes.txt").write_text("milk")
            found = asyncio.run(measured(folder, given.rounds, given.calls))
        result = {
            "date": datetime.date.today().isoformat(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "rounds": given.rounds,
            "servers": found,
        }
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    text = page(json.loads(RESULT.read_text()))
    print(text)
    before = PAGE.read_text()
    start, end = before.index(OPEN) + len(OPEN), before.index(CLOSE)
    PAGE.write_text(f"{before[:start]}\n{text}\n{before[end:]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a preview costs: from a call to its ask, with and without it, and from a yes to the answer. `python bench/preview.py`"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
os.environ["PYTHONPATH"] = f"{ROOT / 'src'}"

import pytest  # noqa: E402

from gateway.harness import Person  # noqa: E402
from gateway.live import Live, gateways  # noqa: E402

ROUNDS = 9
REAL = ROOT / ".servers/npm/node_modules/.bin/mcp-server-filesystem"
SERVERS = {
    "a server of 80 lines of Python": ([sys.executable, str(ROOT / "tests/servers/changes.py")], "do"),
    "@modelcontextprotocol/server-filesystem": (
        [str(ROOT / ".servers/npm/node_modules/.bin/mcp-server-filesystem")],
        "write_file",
    ),
}


async def rounds(live: Live, tool: str, folder: Path) -> tuple[list[float], list[float]]:
    """Milliseconds from each call to its ask, and from the yes to the answer."""
    client = await live.opened("/s/s/mcp")
    asks, answers = [], []
    for number in range(ROUNDS + 1):
        path = str(folder / f"f{number}")
        arguments = {"acts": [["write", path, "x"]]} if tool == "do" else {"path": path, "content": "x"}
        began = time.perf_counter()
        call = asyncio.ensure_future(client.call(tool, arguments))
        while not (rows := live.app.approvals.listed()):  # noqa: ASYNC110
            await asyncio.sleep(0.0005)
        asked = time.perf_counter()
        await live.app.ops["approve"]({"id": rows[0].id, "answer": "once"}, Person())
        answer = await call
        assert not answer["result"].get("isError"), answer
        if number:  # the first opens lanes
            asks.append((asked - began) * 1000)
            answers.append((time.perf_counter() - asked) * 1000)
    return asks, answers


async def main() -> None:
    print(f"{ROUNDS} rounds, the median (the best); load {os.getloadavg()[0]:.0f}\n")
    print("| server | | call to ask, ms | yes to answer, ms |\n|---|---|---|---|")
    for name, (command, tool) in SERVERS.items():
        for preview in (False, True):
            with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
                folder = Path(made) / "granted"
                folder.mkdir()
                words = [*command, *([str(folder)] if tool != "do" else [])]
                table = {"command": words, "contain": {"write": [str(folder)], "preview": preview}}
                async with gateways(Path(made), patch) as start:
                    live = await start({"s": table}, "cautious")
                    found = await rounds(live, tool, folder)
            shown = [f"{statistics.median(times):.0f} ({min(times):.0f})" for times in found]
            print(f"| {name} | {'previewed' if preview else 'as ever'} | {shown[0]} | {shown[1]} |")


asyncio.run(main())

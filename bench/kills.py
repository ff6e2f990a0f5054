"""Kills the daemon again and again in the middle of load, and counts what became of every call, approval and receipt.

    python bench/kills.py [KILLS] [--seed 1] [--json] [--out FILE]

Clients over HTTP and on pipes call through one daemon to a server that outlives it and counts each call by its number
(bench/faulty.c); a person approves calls that ask. The daemon gets SIGKILL each 0.2 to 0.7 s. After each restart the chains of
receipts must verify. At the end must hold: no call reached the server twice; each that reached it has its decision on record; a
result was told only of a call that reached it; on a pipe each call was answered, and once; no approval served two calls.

Ends with 1 where something does not hold. Needs gcc and Linux; loopback alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "src")]

from load import built, keep  # noqa: E402
from relay_http import free_ports, reachable  # noqa: E402

from attacks.rig import Rig, refused, rigged  # noqa: E402
from faults.wire.client import Ground, Wire  # noqa: E402
from servers.client import StdioClient  # noqa: E402

NUMBERS = 1_000_000
ASKING = NUMBERS // 2
"""Numbers from here on are of calls that ask."""


@dataclass(frozen=True)
class Home:
    """A home of this run's own."""

    path: Path
    env: dict[str, str]

    @property
    def earnest(self) -> Path:
        """Where the daemon keeps its things."""
        return self.path / "e"

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.path / ".config" / "earnest" / "earnest.toml"


class Storm:
    """One run; its counters."""

    def __init__(self, rig: Rig, port: int, chance: random.Random) -> None:
        self.rig = rig
        self.port = port
        self.chance = chance
        self.going = True
        self.kills = 0
        self.verified = 0
        self.next = 0
        self.became: dict[int, str] = {}
        self.pipes: list[StdioClient] = []
        self.approved: set[int] = set()
        self.asks = 0

    def number(self) -> int:
        """A number that no call had."""
        self.next += 1
        return self.next

    async def over_http(self) -> None:
        """One kept connection, dialled anew when it breaks."""
        token = (self.rig.instance / "token").read_text().strip()
        ground = Ground(self.port, token, True, "/s/up/mcp")
        wire: Wire | None = None
        while self.going:
            n = self.number()
            try:
                wire = wire or await Wire.open(self.port)
                await wire.send(ground.honest(b'{"n":%d}' % n, b"%d" % n))
                answer = await wire.answer()
            except OSError:
                answer = None
            if answer is None:
                self.became[n] = "lost"
                wire = None
                await asyncio.sleep(0.05)
                continue
            message = answer.message
            assert answer.status == 200 and message["id"] == n, answer
            self.became[n] = "error" if refused(message) else "result"

    async def on_a_pipe(self, era: str) -> None:
        """One shim with four calls under way."""
        client = await self.rig.stdio("up", era=era)
        self.pipes.append(client)

        async def one() -> None:
            while self.going:
                n = self.number()
                self.became[n] = "unanswered"
                self.became[n] = "error" if refused(await client.call("echo", {"n": n}, timeout=90)) else "result"

        await asyncio.gather(*(one() for _ in range(4)))

    async def asking(self) -> None:
        """Calls that need a yes: approved once, then made until they ran, and once more."""
        client = await self.rig.stdio("up", client="asking")
        self.pipes.append(client)
        while self.going:
            self.asks += 1
            n = ASKING + self.asks
            await client.call("wipe", {"n": n}, timeout=90)
            if not await self.say_yes(n):
                continue
            self.approved.add(n)
            for _ in range(4):
                ran = not refused(await client.call("wipe", {"n": n}, timeout=90))
                self.became[n] = "result" if ran or self.became.get(n) == "result" else "error"

    async def say_yes(self, n: int) -> bool:
        """A person's yes to the call of this number; whether the daemon took it."""
        for _ in range(40):
            with contextlib.suppress(Exception):
                for ask in await self.rig.person("approvals"):
                    if str(n) in json.dumps(ask):
                        await self.rig.person("approve", id=ask["id"], answer="once")
                        return True
            await asyncio.sleep(0.05)
        return False

    async def kill(self, kills: int) -> None:
        """Kill, bring the listener back, verify; again and again."""
        while self.kills < kills:
            await asyncio.sleep(self.chance.uniform(0.2, 0.7))
            if await self.listening() is None:
                continue
            os.kill(await self.rig.daemon(), signal.SIGKILL)
            self.kills += 1
            end = time.monotonic() + 60
            while await self.listening() is None:
                assert time.monotonic() < end, f"no daemon came after kill {self.kills}: {self.rig.log()}"
                await asyncio.sleep(0.02)
            self.rig.verify()
            self.verified += 1
            if sys.stderr.isatty():
                print(f"\r{self.kills} of {kills}", end="", file=sys.stderr)
        await asyncio.sleep(1)
        self.going = False

    async def listening(self) -> str | None:
        """The listener's address, opened if need be; None while there is no daemon to ask."""
        try:
            return str((await self.rig.person("listen", port=self.port))["address"])
        except Exception:
            return None


def end_all(home: Path) -> None:
    """End what was started with this home and is still there: daemon, person."""
    mark = b"HOME=" + os.fsencode(home)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)


async def run(kills: int, seed: int) -> dict[str, Any]:
    """One storm."""
    folder = Path(tempfile.mkdtemp(prefix="e-"))
    began = time.monotonic()
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "EARNEST_HOME": str(folder / "e"), "PYTHONPATH": str(ROOT / "src")}
    (folder / ".config" / "earnest").mkdir(parents=True)
    port, listen = free_ports(2)
    command = [built(folder, "faulty"), str(port), str(NUMBERS), "0"]
    counting = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    try:
        reachable(port)
        async with rigged(Home(folder, env), folder) as rig:
            rig.asking = "hold_s = 0.2"
            rig.add(f'[servers.up]\nurl = "http://127.0.0.1:{port}/mcp"\ntrust = "trusted"\n')
            first = await rig.stdio("up")
            await first.list_all()
            storm = Storm(rig, listen, random.Random(seed))
            assert await storm.listening() is not None
            pipes = [storm.on_a_pipe("modern"), storm.on_a_pipe("legacy"), storm.asking()]
            async with asyncio.TaskGroup() as group:
                for one in (*(storm.over_http() for _ in range(4)), *pipes, storm.kill(kills)):
                    group.create_task(one)
            await asyncio.sleep(0.5)
            rig.verify()
            second = sum(len(client.orphans) for client in storm.pipes)
            decided = Counter(r.arguments_sha256 for r in rig.receipts(server="up", decision="allow"))
            decided += Counter(r.arguments_sha256 for r in rig.receipts(server="up", decision="ask") if r.approval)
            await rig.kill(signal.SIGTERM)
        came = counting.communicate()[0]
    finally:
        counting.kill()
        end_all(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def recorded(n: int) -> int:
        return decided[hashlib.sha256(b'{"n":%d}' % n).hexdigest()]

    plain = [n for n in storm.became if n < ASKING]
    asked = range(ASKING, ASKING + storm.asks + 1)
    found: dict[str, Any] = {
        "kills": storm.kills,
        "verified": storm.verified,
        "calls": len(plain),
        "became": dict(Counter(storm.became[n] for n in plain)),
        "reached": sum(came[n] != "0" for n in plain),
        "twice": sum(came[n] > "1" for n in plain),
        "without_a_decision": sum(came[n] != "0" and not recorded(n) for n in storm.became),
        "result_of_none": sum(came[n] == "0" and storm.became[n] == "result" for n in storm.became),
        "unanswered": sum(became == "unanswered" for became in storm.became.values()),
        "second_answers": second,
        "approved": len(storm.approved),
        "approved_ran": sum(came[n] != "0" for n in storm.approved),
        "ran_twice": sum(came[n] > "1" for n in asked),
        "ran_unapproved": sum(came[n] != "0" and n not in storm.approved for n in asked),
        "seconds": round(time.monotonic() - began, 1),
        "seed": seed,
    }
    bad = ("twice", "without_a_decision", "result_of_none", "unanswered", "second_answers", "ran_twice", "ran_unapproved")
    found["holds"] = found["verified"] == kills and not any(found[name] for name in bad)
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="a file of findings to put them into, such as bench/results/faults.json")
    given = parser.parse_args()
    found = asyncio.run(run(given.kills, given.seed))
    if given.out:
        keep(given.out, "kills", found)
    print(json.dumps(found) if given.json else "\n".join(f"{name:20} {value}" for name, value in found.items()))
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""The daemon is killed again and again under clients on pipes whose calls go along tracks, sixteen at a time."""

import asyncio
import collections
import signal

import pytest

from attacks.rig import READ, Rig, refused, tool
from gateway.harness import until

KILLS = 4
SCRIPT = {"tools": [tool("peek", **READ)], "calls": {}}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_killed_at_any_moment_no_call_runs_twice_and_each_is_answered_once(rig: Rig, era: str) -> None:
    record = rig.server("notes", {**SCRIPT, "era": era}, trust="trusted")
    client = await rig.stdio("notes", era=era)
    became: dict[int, str] = {}
    number, going = 0, True

    async def work() -> None:
        nonlocal number
        while going:
            number += 1
            n = number
            became[n] = "unanswered"
            became[n] = "error" if refused(await client.call("peek", {"n": n}, timeout=60)) else "result"

    load = [asyncio.create_task(work()) for _ in range(16)]
    for _ in range(KILLS):
        began = number
        await until(lambda: number >= began + 200)  # noqa: B023 (past the calls that lay a track)
        await rig.kill(signal.SIGKILL)
    going = False
    await asyncio.gather(*load)
    assert not client.orphans and not client.garbage, "no second answer, no half line"
    ran = collections.Counter(event["arguments"]["n"] for event in record.calls("peek"))
    assert set(ran.values()) == {1}
    found = collections.Counter(became.values())
    assert set(found) == {"result", "error"} and found["error"] <= 16 * KILLS
    assert all(n in ran for n, word in became.items() if word == "result")
    decided = collections.Counter(one.arguments_sha256 for one in rig.receipts(tool="peek"))
    assert sum(decided.values()) >= len(ran) and max(decided.values()) == 1
    rig.verify()

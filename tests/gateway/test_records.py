"""Each call leaves a decision, written before the call goes out, and one outcome; no call is sent twice."""

from pathlib import Path

import pytest

from earnest.core.errors import EarnestError
from gateway.harness import ScriptedServer, bench, reads, settle, tool, until

DISK = EarnestError("E1410", "the disk is full")


async def test_a_call_goes_out_after_its_decision_was_written_and_ends_in_one_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, server, trust={"s": "trusted"}) as b:
        client = await b.client()
        assert await client.call("read").said() == "done"
        await settle()
        names = [entry[0] for entry in b.log]
        start = names.index("decision")
        assert names[start : start + 4] == ["decision", "flushed", "dispatched", "outcome"]
        assert b.outcomes() == ["ok"]

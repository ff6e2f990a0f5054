"""Command lines in the foreground: the address is there as long as one of them holds it."""

import asyncio
from pathlib import Path

import pytest

from gateway.harness import Person, ScriptedServer, bench, reads, settle


async def test_who_leaves_is_no_holder_though_its_hold_ends_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, ScriptedServer("s", [reads("read")])) as b:
        one, two = Person(), Person()
        two.pid = one.pid + 1
        await b.op("listen", host="127.0.0.1", port=0)
        holds = [asyncio.create_task(b.op("hold", person)) for person in (one, two)]
        await settle()
        left = await b.op("unlisten", one)
        assert (left["holders"], left["listening"]) == (1, True)
        holds[0].cancel()
        await settle()
        left = await b.op("unlisten", two)
        assert (left["holders"], left["listening"]) == (0, False)
        holds[1].cancel()
        await asyncio.gather(*holds, return_exceptions=True)
        assert not b.app.waiting_ops

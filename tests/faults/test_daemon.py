"""The daemon ends, dies, loses its disk or its store in the middle of a call: nothing hangs, is lost or runs twice."""

import asyncio
import json
import os
import resource
import signal
import sqlite3
import subprocess

import pytest

from attacks.rig import READ, Rig, gone, refused, text_of, tool
from earnest.core.errors import EarnestError

TOOLS = [tool("peek", **READ), tool("slow", **READ), tool("wipe", destructiveHint=True)]
SCRIPT = {"tools": TOOLS, "calls": {"slow": [{"sleep": 1.0}, {"text": "done"}]}}
WAITING = {"tools": TOOLS, "calls": {"slow": [{"wait_cancel": 60}, {"text": "done"}]}}


async def test_a_kill_in_a_call_answers_it_and_sends_it_once(rig: Rig):
    record = rig.server("notes", WAITING, trust="trusted")
    client = await rig.stdio("notes")
    call = await client.begin("tools/call", {"name": "slow", "arguments": {}})
    (event,) = await record.wait("call")
    old = await rig.kill(signal.SIGKILL)
    answer = await client.answer(call)
    assert refused(answer)
    await gone(event["pid"])
    assert text_of(await client.call("peek", {"a": 1})) == '{"a":1}'
    assert await rig.daemon() != old
    assert len(record.calls("slow")) == 1 and len(record.calls("peek")) == 1
    await rig.settled(("slow", "allow", None), ("peek", "allow", "ok"))
    assert rig.verify() >= 3


async def test_a_sigterm_lets_the_call_finish_and_tells_the_client(rig: Rig):
    record = rig.server("notes", SCRIPT, trust="trusted")
    client = await rig.stdio("notes")
    call = await client.begin("tools/call", {"name": "slow", "arguments": {}})
    (event,) = await record.wait("call")
    await rig.kill(signal.SIGTERM)
    assert text_of(await client.answer(call)) == "done"
    assert await client.wait() == 0
    assert b"stopped" in client.stderr
    await gone(event["pid"])
    await rig.settled(("slow", "allow", "ok"))
    assert rig.verify() == 2
    again = await rig.stdio("notes")
    assert text_of(await again.call("peek", {"a": 1})) == '{"a":1}'
    assert len(record.calls("slow")) == 1


async def test_an_ask_survives_a_kill_and_a_later_yes_serves_the_retry_once(rig: Rig):
    rig.asking = "hold_s = 20"
    record = rig.server("notes", SCRIPT)
    client = await rig.stdio("notes")
    call = await client.begin("tools/call", {"name": "wipe", "arguments": {"n": 1}})
    (ask,) = await rig.asked()
    await rig.kill(signal.SIGKILL)
    assert refused(await client.answer(call))
    await client.request("ping")
    (same,) = await rig.asked()
    assert same["id"] == ask["id"] and same["text"] == ask["text"]
    await rig.person("approve", id=ask["id"], answer="once")
    assert text_of(await client.call("wipe", {"n": 1})) == '{"n":1}'
    assert len(record.calls("wipe")) == 1
    rig.verify()


async def test_labels_survive_a_kill(rig: Rig):
    record = rig.server("notes", SCRIPT, trust="trusted")
    client = await rig.stdio("notes")
    await client.call("peek", {})
    before = (await rig.person("conversations"))[-1]["labels"]
    await rig.kill(signal.SIGKILL)
    await client.request("ping")
    await client.call("peek", {})
    rig.verify()
    first, second = rig.receipts(tool="peek")
    assert first.labels_after == second.labels_before == before != []
    assert len(record.calls("peek")) == 2


def limit_files(pid: int, size: int) -> None:
    """The daemon's files grow no further than so many bytes: a full disk, to it alone."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def test_without_room_for_a_receipt_no_call_runs_and_with_room_all_goes_on(rig: Rig):
    record = rig.server("notes", SCRIPT, trust="trusted")
    client = await rig.stdio("notes")
    assert not refused(await client.call("peek", {"n": 0}))
    await rig.settled(("peek", "allow", "ok"))
    daemon = await rig.daemon()
    size = next((rig.instance / "receipts").glob("*.jsonl")).stat().st_size
    limit_files(daemon, size)
    for n in (1, 2):
        answer = await client.call("peek", {"n": n})
        assert refused(answer) and "receipt" in text_of(answer)
    assert len(record.calls("peek")) == 1
    limit_files(daemon, resource.RLIM_INFINITY)
    assert text_of(await client.call("peek", {"n": 3})) == '{"n":3}'
    assert await rig.daemon() == daemon
    assert [call["arguments"]["n"] for call in record.calls("peek")] == [0, 3]
    outcomes = ("peek", "allow", "ok"), ("peek", "allow", "not-sent"), ("peek", "allow", "not-sent"), ("peek", "allow", "ok")
    await rig.settled(*outcomes)
    rig.verify()


async def test_a_really_full_disk_is_told_and_got_over(rig: Rig):
    """A tmpfs of a few hundred kB under the state folder, filled to the brim."""
    if os.geteuid() != 0:
        pytest.skip("mounting takes root")
    rig.home.earnest.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", str(rig.home.earnest)]
    mounted = subprocess.run(mount, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no mounts here: {mounted.stderr.decode()}")
    try:
        record = rig.server("notes", SCRIPT, trust="trusted")
        client = await rig.stdio("notes")
        assert not refused(await client.call("peek", {"n": 0}))
        filler = rig.home.earnest / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        told = []
        for n in range(1, 40):  # the last page of the receipts has room for some more
            answer = await client.call("peek", {"n": n})
            if refused(answer):
                told.append(text_of(answer))
        assert told and all("full" in text for text in told)
        ran = len(record.calls("peek"))
        assert ran == 40 - len(told)
        filler.unlink()
        assert not refused(await client.call("peek", {"n": 99}))
        assert len(record.calls("peek")) == ran + 1
        await asyncio.sleep(0.1)
        rig.verify()
        await rig.kill(signal.SIGTERM)
        await rig.close()
    finally:
        subprocess.run(["umount", "-l", str(rig.home.earnest)], check=True)


async def test_a_store_locked_by_another_lets_nothing_through_that_it_had_to_keep(rig: Rig):
    rig.asking = "hold_s = 1"
    record = rig.server("notes", SCRIPT, trust="trusted")
    client = await rig.stdio("notes")
    await client.list_all()
    other = sqlite3.connect(rig.instance / "store.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        asks = await client.call("wipe", {"n": 1})  # an ask must be kept before anyone is asked
        reads = await client.call("peek", {"n": 1})  # a label must be kept before the call goes out
        assert refused(asks) and refused(reads)
        assert record.calls() == []
    finally:
        other.close()
    assert text_of(await client.call("peek", {"n": 2})) == '{"n":2}'
    assert "waiting" in text_of(await client.call("wipe", {"n": 2}))
    assert len(record.calls()) == 1
    status = await rig.person("status")
    assert status["calls"] == 0
    rig.verify()


async def test_a_yes_while_the_store_is_locked_neither_hangs_the_call_nor_is_lost(rig: Rig):
    rig.asking = "hold_s = 20"
    record = rig.server("notes", SCRIPT)
    client = await rig.stdio("notes")
    call = await client.begin("tools/call", {"name": "wipe", "arguments": {}})
    (ask,) = await rig.asked()
    other = sqlite3.connect(rig.instance / "store.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(EarnestError) as caught:
            await rig.person("approve", id=ask["id"], answer="once")
        assert caught.value.code.startswith("E14")
    finally:
        other.close()
    await rig.person("approve", id=ask["id"], answer="once")
    assert not refused(await client.answer(call))
    assert len(record.calls("wipe")) == 1


async def test_a_store_of_a_newer_earnest_is_left_alone(rig: Rig):
    rig.server("notes", SCRIPT, trust="trusted")
    client = await rig.stdio("notes")
    await client.close()
    await rig.kill(signal.SIGTERM)
    db = sqlite3.connect(rig.instance / "store.db")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    assert version > 0
    db.execute(f"PRAGMA user_version = {version + 1000}")
    db.commit()
    db.close()
    shim = await rig.shim("notes")
    assert await shim.wait() != 0
    assert b"newer" in shim.stderr and b"Traceback" not in shim.stderr
    db = sqlite3.connect(rig.instance / "store.db")
    assert db.execute("PRAGMA user_version").fetchone()[0] == version + 1000
    db.close()


async def test_a_receipts_folder_that_cannot_be_written_stops_the_start_in_words(rig: Rig):
    rig.server("notes", SCRIPT, trust="trusted")
    client = await rig.stdio("notes")
    await client.call("peek")
    await client.close()
    await rig.kill(signal.SIGTERM)
    folder = rig.instance / "receipts"
    folder.rename(rig.instance / "moved")
    folder.write_text("not a folder")  # root writes anywhere, so a mode would stop nobody
    shim = await rig.shim("notes")
    assert await shim.wait() != 0
    assert b"E14" in shim.stderr and b"receipts" in shim.stderr and b"Traceback" not in shim.stderr
    folder.unlink()
    (rig.instance / "moved").rename(folder)
    # The daemon that failed tells those who still knock the same, for a moment.
    while not (again := await rig.shim("notes")).ended.is_set():
        opened = asyncio.ensure_future(again.open("legacy"))
        ended = asyncio.ensure_future(again.ended.wait())
        await asyncio.wait({opened, ended}, return_when=asyncio.FIRST_COMPLETED)
        if opened.done():
            ended.cancel()
            break
        opened.cancel()
    assert not refused(await again.call("peek"))
    rig.verify()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
async def test_many_calls_in_flight_at_the_end_are_each_answered_once(rig: Rig, number: signal.Signals):
    record = rig.server("notes", {"tools": TOOLS, "calls": {"slow": [{"wait_cancel": 30}]}}, trust="trusted")
    client = await rig.stdio("notes")
    calls = [await client.begin("tools/call", {"name": "slow", "arguments": {"n": n}}) for n in range(20)]
    await record.wait("call", 20)
    os.kill(await rig.daemon(), number)
    answers = await asyncio.gather(*(client.answer(call) for call in calls))
    assert all(refused(answer) and "may" in json.dumps(answer) for answer in answers)
    assert len(record.calls()) == 20 and client.orphans == []
    assert sorted(call["arguments"]["n"] for call in record.calls()) == list(range(20))
    if number is signal.SIGKILL:
        assert text_of(await client.call("peek", {"a": 1})) == '{"a":1}'
    else:
        await client.wait()
        await client.ended.wait()
        assert client.orphans == []
    rig.verify()
    assert json.dumps(rig.decided()).count("slow") == 20

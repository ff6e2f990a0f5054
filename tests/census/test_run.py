"""A run: everything asked once, kept on disk as it comes, taken up again after any end; on this machine or on a cluster."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from census_kit import FAST, Told, tool
from earnest.census import record as keeping
from earnest.census.record import Record, filename
from earnest.census.recordings import recorded
from earnest.census.run import run
from earnest.census.schedule import Dask, Local, schedule
from earnest.census.spec import Listing, Recording
from earnest.core.errors import EarnestError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a sandbox is needed")


def go(listing, out, workers, **more):
    told = Told()
    with workers:
        summary = run(listing, out, workers, FAST, told, jobs=more.pop("jobs", 2), every_s=0.0, **more)
    return summary, told


def names(out):
    return sorted(one.name for one in keeping.records(out / "records"))


def test_every_server_gets_one_record_failures_too_and_is_not_asked_again(scripted_spec, tmp_path):
    listing = Listing(
        (
            scripted_spec("good", {"tools": [tool()]}),
            scripted_spec("bad", {"methods": {"initialize": {"exit": 1}}, "era": "legacy"}),
        )
    )
    out = tmp_path / "out"
    summary, told = go(listing, out, Local(2))
    assert (summary.asked, summary.answered, summary.failed) == (2, 1, 1) and names(out) == ["bad", "good"]
    assert {one.name: one.failure is None for one in told.finished} == {"good": True, "bad": False}
    summary, told = go(listing, out, Local(2))
    assert (summary.asked, summary.kept, told.begun) == (0, 2, [])
    summary, told = go(listing, out, Local(2), retry_failed=True)
    assert told.begun == ["bad"]
    other = msgspec.structs.replace(listing.servers[0], env={"NEW": "dummy"})
    summary, told = go(Listing((other,)), out, Local(1))
    assert told.begun == ["good"], "a changed entry is asked again"


def test_two_runs_do_not_share_a_folder(tmp_path):
    out = tmp_path / "out"

    class Nested(Told):
        def kept(self, count):
            with pytest.raises(EarnestError, match="at work") as caught:
                go(Listing(), out, Local(1))
            assert caught.value.code == "E1903"

    with Local(1) as workers:
        run(Listing(), out, workers, FAST, Nested(), jobs=1)


def test_a_killed_run_is_taken_up_where_it_was(scripted_spec, tmp_path, earnest_cmd, home, run_bounded):
    script = {"tools": [tool()]}
    specs = [scripted_spec(f"s{number}", script) for number in range(4)]
    lines = ['cohort = "test"']
    for spec in specs:
        lines += [f"[servers.{spec.name}]", f"command = {json.dumps([spec.program, *spec.args])}"]
        lines += [f"folders = {json.dumps(list(spec.folders))}"]
    (tmp_path / "list.toml").write_text("\n".join(lines))
    out = tmp_path / "out"
    command = [*earnest_cmd, "census", "run", str(tmp_path / "list.toml"), "--out", str(out), "--jobs", "1"]
    process = subprocess.Popen(command, env=home.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((out / "records").glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {path.name: path.stat().st_mtime_ns for path in (out / "records").glob("*.json")}
    assert 1 <= len(before) < 4
    assert not (out / "dataset").exists()
    done = run_bounded(command, home.env)
    assert done.code == 0, done.err
    after = {path.name: path.stat().st_mtime_ns for path in (out / "records").glob("*.json")}
    assert len(after) == 4 and all(after[name] == when for name, when in before.items())
    assert len((out / "dataset" / "servers.jsonl").read_text().splitlines()) == 4
    assert "already" in done.err and not (out / "work").exists()
    deadline = time.monotonic() + 20
    while (left := _with(str(tmp_path))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == [], "a killed run leaves no server behind"


def _with(text):
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if text.encode() in (process / "cmdline").read_bytes():
                    found.append(process.name)
            except OSError:
                continue
    return found


def test_a_broken_record_is_made_anew(scripted_spec, tmp_path):
    spec, out = scripted_spec("one", {"tools": [tool()]}), tmp_path / "out"
    (out / "records").mkdir(parents=True)
    (out / "records" / filename(spec.cohort, spec.name)).write_text('{"format": 1, "spec"')
    _, told = go(Listing((spec,)), out, Local(1))
    assert told.begun == ["one"] and names(out) == ["one"]


def test_a_server_whose_box_could_not_be_made_is_asked_again(scripted_spec, tmp_path):
    spec, out = scripted_spec("one", {"tools": [tool()]}), tmp_path / "out"
    said = "echo 'earnest: the box could not be made: no room' >&2; exit 125"
    broken = msgspec.structs.replace(spec, program="/bin/sh", args=("-c", said))
    _, told = go(Listing((broken,)), out, Local(1))
    assert told.finished[0].failure.step == "contain"
    _, told = go(Listing((broken,)), out, Local(1))
    assert told.begun == ["one"], "this machine failed, not the server"


def test_an_interrupt_ends_what_is_under_way(scripted_spec, tmp_path):
    listing = Listing((scripted_spec("hangs", {"methods": {"initialize": {"never": True}}, "era": "legacy"}),))

    class Interrupts(Told):
        def begins(self, name):
            super().begins(name)
            deadline = time.monotonic() + 30
            while not _with(str(tmp_path / "scripts")) and time.monotonic() < deadline:
                time.sleep(0.02)
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Local(1) as workers:
        run(listing, tmp_path / "out", workers, FAST, Interrupts(), jobs=1, every_s=0.0)
    assert time.monotonic() - begun < FAST.timeouts.open_s and not list((tmp_path / "out" / "records").iterdir())


def test_recordings_become_records_of_their_cohort(tmp_path):
    (tmp_path / "dump.jsonl").write_text(
        json.dumps({"server": "a/b c", "tools": [tool()], "package": "p@1"})
        + "\n"
        + json.dumps({"server": "d", "tools": [tool(), tool("t")]})
        + "\n"
        + json.dumps({"server": "d", "tools": [tool("other")]})
    )
    out = tmp_path / "out"
    recording = Recording(path=str(tmp_path / "dump.jsonl"), cohort="dump-2025", licence="MIT")
    summary, _ = go(Listing(recordings=(recording,)), out, Local(1))
    found = {one.name: one for one in keeping.records(out / "records")}
    assert summary.recordings == 3 and set(found) == {"a/b c", "d", "d (2)"}
    assert {(one.cohort, one.licence, one.source) for one in found.values()} == {("dump-2025", "MIT", "file")}
    (tmp_path / "dump.jsonl").write_text(json.dumps({"server": "d", "tools": [tool()]}))
    go(Listing(recordings=(recording,)), out, Local(1))
    assert names(out) == ["d"], "what its recording no longer has is not counted"


@pytest.mark.parametrize(
    "line, words",
    [
        ('{"server": "torn", "tools": [{"na', "line 2"),
        ('{"server": "deep", "tools": [{"name": "x", "a": ' + "[" * 200 + "]" * 200 + "}]}", "nests deeper"),
    ],
)
def test_a_recording_that_cannot_be_read_whole_is_told(tmp_path, line, words):
    path = tmp_path / "dump.jsonl"
    path.write_text(json.dumps({"server": "a", "tools": [tool()]}) + "\n" + line)
    with pytest.raises(EarnestError, match=words) as caught:
        list(recorded(Recording(path=str(path), cohort="x")))
    assert caught.value.code == "E1020"


def test_a_cluster_loses_nothing_and_doubles_nothing_when_a_worker_is_killed(scripted_spec, tmp_path):
    late = {"tools": [tool()], "methods": {"tools/list": [{"sleep": 1.0}, {"result": {"tools": [tool()]}}]}}
    listing = Listing(tuple(scripted_spec(f"s{number}", late) for number in range(5)))
    out = tmp_path / "out"
    made: list[Record] = []

    class Kills(Told):
        victim = 0

        def done(self, record):
            made.append(record)
            if self.victim == 0:
                busy = {name for name, tasks in workers.client.processing().items() if tasks}
                self.victim = next(w.pid for w in _workers(workers) if w.worker_address in busy)
                os.kill(self.victim, signal.SIGKILL)

    told = Kills()
    with schedule("dask", 3) as workers:
        assert isinstance(workers, Dask) and len({w.pid for w in _workers(workers)}) == 3
        summary = run(listing, out, workers, FAST, told, jobs=5, every_s=0.0)
    assert told.victim and (summary.asked, summary.answered) == (5, 5)
    assert sorted(one.name for one in made) == names(out) == [f"s{n}" for n in range(5)]


def _workers(dask):
    return list(dask._cluster.workers.values())


def test_a_scheduler_that_is_not_there_is_told():
    with pytest.raises(EarnestError, match="moon") as caught:
        schedule("moon", 1)
    assert caught.value.code == "E1018"


def test_workers_elsewhere_are_reached_by_address_and_use_their_own_disk(scripted_spec, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        address = cluster.scheduler_address
        with schedule("dask", 1, address) as workers:
            listing = Listing((scripted_spec("far", {"tools": [tool()]}),))
            summary = run(listing, tmp_path / "out", workers, FAST, Told(), jobs=1, every_s=0.0)
            assert summary.answered == 1 and not workers.here and not (tmp_path / "out" / "work").exists()
    with pytest.raises(EarnestError, match=r"tcp://127\.0\.0\.1:1") as caught:
        Dask(1, "tcp://127.0.0.1:1", patience_s=0.2)
    assert caught.value.code == "E1914"

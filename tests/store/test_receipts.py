"""The log of receipts: on disk before the call goes out, mended in the open, whole or shown not to be."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.core.receipt import Checkpoint, Decision, Event, Outcome, Record, Repair
from earnest.store import segments
from earnest.store.read import events, labels, receipts, stamp, verify_all
from earnest.store.receipts import ReceiptLog
from earnest.store.signing import Signer, check


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def decision(tool: str = "read", verdict: Any = "allow", time: float = 5.0) -> Decision:
    return Decision(time, "c", ("me",), "files", "stdio:x", "tools/call", tool, verdict, labels_before=1)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "receipts")


def opened(folder: str, writer: str = "w", signer: Signer | None = None, **how: Any) -> ReceiptLog:
    return ReceiptLog(folder, writer, signer, Clock(), **how)


def write(folder: str, *records: Record, **how: Any) -> list[str]:
    log = opened(folder, **how)
    ids = [log.append(record) for record in records]
    log.close()
    return ids


def test_records_are_on_disk_after_flush_and_not_before(folder: str) -> None:
    log = opened(folder)
    id = log.append(decision())
    assert id == "w.1" and list(receipts(folder)) == []
    log.flush()
    assert [receipt.id for receipt in receipts(folder)] == ["w.1"]
    path = segments.segments(folder, "w")[0]
    assert os.stat(path).st_mode & 0o777 == 0o600 and os.stat(folder).st_mode & 0o777 == 0o700
    log.close()


def test_one_flush_is_one_write(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(folder)
    sizes: list[int] = []
    real = os.write

    def count(fd: int, data: bytes) -> int:
        sizes.append(len(data))
        return real(fd, data)

    monkeypatch.setattr(os, "write", count)
    for _ in range(50):
        log.append(decision())
    log.flush()
    log.flush()
    assert len(sizes) == 1
    log.close()


def test_strict_mode_waits_for_the_disk(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from earnest.store import receipts as subject

    calls: list[int] = []
    monkeypatch.setattr(subject, "_sync", calls.append)
    lax, strict = opened(folder), opened(folder, "s", strict=True)
    for log in (lax, strict):
        log.append(decision())
        log.flush()
    assert len(calls) == 1
    lax.close()
    strict.close()


def test_the_chain_goes_on_after_a_restart(folder: str) -> None:
    assert write(folder, decision(), decision()) == ["w.1", "w.2"]
    assert write(folder, decision()) == ["w.3"]
    (report,) = verify_all(folder)
    assert report.intact and report.records == 3 and report.repairs == ()


def test_one_log_has_one_writer(folder: str) -> None:
    log = opened(folder)
    with pytest.raises(EarnestError) as caught:
        opened(folder)
    assert caught.value.code == "E1412"
    opened(folder, "other").close()
    log.close()
    opened(folder).close()


@pytest.mark.parametrize(
    "torn", [b'{"seq":3,"id":"w.3","prev', b"\0" * 4096, b"half\nand more\nhal", b"x" * 200_000]
)
def test_a_torn_tail_is_set_aside_and_said(folder: str, torn: bytes) -> None:
    write(folder, decision(), decision())
    path = segments.segments(folder, "w")[0]
    with open(path, "ab") as file:
        file.write(torn)
    assert write(folder, decision()) == ["w.4"]
    (report,) = verify_all(folder)
    assert report.intact and report.records == 4
    (repair,) = report.repairs
    assert repair.lost_bytes == len(torn)
    assert Path(folder, repair.kept).read_bytes() == torn
    assert [record for _, record in events(folder)] == [repair]


def test_a_segment_with_nothing_whole_in_it_continues_the_one_before(folder: str) -> None:
    write(folder, decision(), decision(), segment_bytes=1)
    assert len(segments.segments(folder, "w")) == 1
    assert write(folder, decision(), segment_bytes=1) == ["w.3"]
    _, second = segments.segments(folder, "w")
    os.truncate(second, 20)
    assert write(folder, decision()) == ["w.4"]
    (report,) = verify_all(folder)
    assert report.intact and isinstance(report.repairs[0], Repair)


def test_a_long_log_is_spread_over_segments(folder: str) -> None:
    log = opened(folder, segment_bytes=2000)
    for _ in range(20):
        log.append(decision())
        log.flush()
    log.close()
    assert len(segments.segments(folder, "w")) > 3
    (report,) = verify_all(folder)
    assert report.intact and report.records == 20
    os.unlink(segments.segments(folder, "w")[1])
    (report,) = verify_all(folder)
    assert [finding.kind for finding in report.findings] == ["loss"]


def test_a_full_disk_stops_the_call_and_loses_nothing(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(folder)
    log.append(decision("first"))
    log.flush()
    real, room = os.write, [30]

    def full(fd: int, data: bytes) -> int:
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = real(fd, bytes(data)[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", full)
    log.append(decision("second"))
    for _ in range(2):
        with pytest.raises(EarnestError) as caught:
            log.flush()
        assert caught.value.code == "E1410"
        assert [receipt.tool for receipt in receipts(folder)] == ["first"]
        assert os.path.getsize(segments.segments(folder, "w")[0]) == log._size
    monkeypatch.setattr(os, "write", real)
    log.append(decision("third"))
    log.flush()
    assert [receipt.tool for receipt in receipts(folder)] == ["first", "second", "third"]
    log.close()
    assert verify_all(folder)[0].intact


def test_what_cannot_be_written_is_not_held_without_end(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from earnest.store import receipts as subject

    log = opened(folder)
    monkeypatch.setattr(subject, "HELD_BYTES", 1000)

    def broken(fd: int, data: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", broken)
        log.append(decision())
        with pytest.raises(EarnestError) as caught:
            log.flush()
        assert caught.value.code == "E1411"
        with pytest.raises(EarnestError):
            for _ in range(20):
                log.append(decision())
    log.close()
    assert verify_all(folder)[0].intact


def test_kill_in_mid_flight_loses_nothing_that_was_flushed(folder: str) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys, time
        from earnest.core.receipt import Event
        from earnest.store.receipts import ReceiptLog
        log = ReceiptLog(sys.argv[1], "w", None, time.time)
        for n in range(10):
            log.append(Event(1.0, "n", str(n)))
            log.flush()
        log.append(Event(1.0, "n", "never"))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script, folder], env=env, timeout=60, check=False)
    assert done.returncode == -9
    assert [record.text for _, record in events(folder)] == [str(n) for n in range(10)]
    assert write(folder, Event(2.0, "n", "10")) == ["w.11"]
    assert verify_all(folder)[0].intact


# Checkpoints


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(str(tmp_path / "signing.key"))


def test_the_key_is_made_once_and_is_private(tmp_path: Path, signer: Signer) -> None:
    path = tmp_path / "signing.key"
    assert len(signer.kid) == 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert Signer(str(path)).kid == signer.kid and "d" not in signer.public
    signed = signer.sign(b"x")
    assert check(signed, [signer.public]) == b"x"
    assert check(signed, [Signer(str(tmp_path / "other.key")).public]) is None
    assert check("garbage", [signer.public]) is None
    assert sorted(os.listdir(tmp_path)) == ["other.key", "signing.key"]
    path.chmod(0o644)
    with pytest.raises(EarnestError) as caught:
        Signer(str(path)).sign(b"x")
    assert caught.value.code == "E1413"
    path.chmod(0o600)
    path.write_text("{}")
    with pytest.raises(EarnestError) as caught:
        Signer(str(path)).kid  # noqa: B018
    assert caught.value.code == "E1413"


def test_a_key_is_published_once_and_before_it_signs(tmp_path: Path) -> None:
    keys: list[dict[str, str]] = []
    signer = Signer(str(tmp_path / "signing.key"), keys.append)
    assert not keys
    for _ in range(2):
        assert check(signer.sign(b"x"), keys) == b"x"
        signer.publish()
    assert keys == [signer.public]


def test_a_key_that_cannot_be_published_signs_nothing(folder: str, tmp_path: Path) -> None:
    def full(key: dict[str, str]) -> None:
        raise EarnestError("E1404", "the disk is full")

    write(folder, decision("a"), signer=Signer(str(tmp_path / "signing.key"), full))
    assert list(receipts(folder)) and not os.path.exists(segments.checkpoints(folder, "w"))


def test_nothing_is_signed_before_the_first_checkpoint(folder: str, tmp_path: Path) -> None:
    log = opened(folder, signer=Signer(str(tmp_path / "later.key")))
    assert not (tmp_path / "later.key").exists()
    log.append(decision())
    log.close()
    assert (tmp_path / "later.key").exists()


def test_checkpoints_are_made_every_so_often_and_at_the_end(folder: str, signer: Signer) -> None:
    noted: list[tuple[Checkpoint, str]] = []

    def note(made: Checkpoint, signature: str) -> None:
        noted.append((made, signature))

    log = opened(folder, signer=signer, on_checkpoint=note, checkpoint_records=3)
    for _ in range(7):
        log.append(decision())
        log.flush()
    assert [made.seq for made, _ in noted] == [3, 6]
    log.close()
    log.close()
    assert [made.seq for made, _ in noted] == [3, 6, 7]
    (report,) = verify_all(folder, keys=[signer.public])
    assert report.intact and report.covered == 7


def rewrite(folder: str, old: bytes, new: bytes) -> None:
    path = segments.segments(folder, "w")[0]
    data = Path(path).read_bytes()
    assert old in data
    Path(path).write_bytes(data.replace(old, new, 1))


def test_change_and_truncation_show_by_the_signed_checkpoint(folder: str, signer: Signer) -> None:
    write(folder, decision("a"), decision("b"), decision("c"), signer=signer)
    path = segments.segments(folder, "w")[0]
    whole = Path(path).read_bytes()
    rewrite(folder, b'"tool":"c"', b'"tool":"x"')
    (report,) = verify_all(folder, keys=[signer.public])
    assert [(finding.kind, finding.first) for finding in report.findings] == [("change", 3)]
    Path(path).write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    (report,) = verify_all(folder, keys=[signer.public])
    assert [(finding.kind, finding.first) for finding in report.findings] == [("truncation", 3)]


def test_a_checkpoint_signed_by_somebody_else_does_not_count(
    folder: str, signer: Signer, tmp_path: Path
) -> None:
    write(folder, decision("a"), signer=Signer(str(tmp_path / "theirs.key")))
    (report,) = verify_all(folder, keys=[signer.public])
    assert [finding.kind for finding in report.findings] == ["change"] and report.covered == 0
    assert "not signed" in report.findings[0].text


def test_a_folder_that_is_gone_shows_by_the_head_in_the_store(folder: str) -> None:
    head = Checkpoint("w", 5, "aa" * 32, 1.0)
    (report,) = verify_all(folder, [head])
    assert [(f.kind, f.first, f.last) for f in report.findings] == [("truncation", 1, 5)]


def test_a_log_that_lost_its_end_goes_on_from_the_known_head(folder: str) -> None:
    log = opened(folder)
    for _ in range(3):
        log.append(decision())
    log.flush()
    head = Checkpoint("w", log.seq, log.head, 1.0)
    log.close()
    path = Path(segments.segments(folder, "w")[0])
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert write(folder, decision(), known=head) == ["w.5"]
    (report,) = verify_all(folder, [head])
    assert [(f.kind, f.first, f.last) for f in report.findings] == [("loss", 2, 3)]
    assert [(repair.first, repair.last) for repair in report.repairs] == [(2, 3)]


def test_a_checkpoint_that_fails_is_told_and_tried_again(folder: str, signer: Signer) -> None:
    fail = [True]

    def note(made: Checkpoint, signature: str) -> None:
        if fail[0]:
            raise EarnestError("E1406", "another process holds the store")

    log = opened(folder, signer=signer, on_checkpoint=note, checkpoint_records=1)
    log.append(decision())
    log.flush()
    assert log.problem is not None and log.problem.code == "E1406"
    fail[0] = False
    log.append(decision())
    log.flush()
    assert log.problem is None
    log.close()


# Reading


def test_both_records_are_joined(folder: str) -> None:
    done = Outcome(6.5, "w.1", "ok", 3, 12.5, "ab", 9, "fine")
    write(folder, decision("a"), decision("b", "deny", 7.0), done)
    first, second = receipts(folder)
    assert (first.id, first.outcome, first.labels_before, first.labels_after) == (
        "w.1",
        "ok",
        ["private"],
        ["private", "untrusted"],
    )
    assert (first.time, first.outcome_time) == ("1970-01-01T00:00:05.000Z", "1970-01-01T00:00:06.500Z")
    assert (second.id, second.decision, second.outcome, second.labels_after) == ("w.2", "deny", None, None)


def test_receipts_are_filtered_and_ordered_over_writers(folder: str) -> None:
    write(folder, decision("read", time=5.0), decision("write", "ask", 9.0))
    write(folder, decision("read_all", time=7.0), writer="v")

    def ids(**how: Any) -> list[str]:
        return [receipt.id for receipt in receipts(folder, **how)]

    assert ids() == ["w.1", "v.1", "w.2"]
    assert ids(tool="read*") == ["w.1", "v.1"] and ids(tool="read") == ["w.1"]
    assert ids(decision="ask") == ["w.2"] and ids(since=7.0) == ["v.1", "w.2"]
    assert ids(server="nope") == [] and ids(server="fil*", id="v.1") == ["v.1"]
    assert list(receipts(folder + "/none")) == []


def test_labels_and_times_read_well() -> None:
    assert labels(0) == [] and labels(3) == ["private", "untrusted"] and labels(9) == ["private", "8"]
    assert stamp(0.0004) == "1970-01-01T00:00:00.000Z"


def test_records_written_long_enough_for_a_checkpoint_and_without_one_are_a_finding(folder: str, signer: Signer) -> None:
    write(folder, *(decision(time=60.0 * n) for n in range(20)), signer=signer)
    (report,) = verify_all(folder, keys=[signer.public])
    assert report.intact
    os.unlink(segments.checkpoints(folder, "w"))
    path = Path(segments.segments(folder, "w")[0])
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:15]))
    (report,) = verify_all(folder, keys=[signer.public])
    assert [(f.kind, f.first, f.last) for f in report.findings] == [("loss", 1, 15)]


def test_records_of_a_moment_need_no_checkpoint_yet(folder: str) -> None:
    write(folder, *(decision(time=1.0 * n) for n in range(20)))
    (report,) = verify_all(folder)
    assert report.intact


def test_more_records_than_are_written_between_checkpoints_are_a_finding(folder: str) -> None:
    log = opened(folder)
    for _ in range(11_000):
        log.append(decision())
    log.close()
    (report,) = verify_all(folder)
    assert [finding.kind for finding in report.findings] == ["loss"]


def test_nul_bytes_at_the_end_are_a_finding_and_half_a_line_is_none(folder: str) -> None:
    write(folder, decision())
    path = Path(segments.segments(folder, "w")[0])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":2,"id"')
    assert verify_all(folder)[0].intact
    path.write_bytes(whole + b"\0" * 10)
    (report,) = verify_all(folder)
    assert [(finding.kind, "10 NUL" in finding.text) for finding in report.findings] == [("change", True)]

"""Receipts: a chain that shows change, loss, reordering, truncation and rewriting, and says where."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.profile import Basis, Profile, Value
from earnest.core.receipt import (
    Checkpoint,
    Decision,
    Event,
    Outcome,
    Record,
    Repair,
    chain,
    compact,
    expand,
    genesis,
    line,
    read_line,
    verify,
)
from earnest.core.verdict import Reason, Verdict
from properties import examples

WRITER = "w1"


def decision(tool: str = "read") -> Decision:
    return Decision(
        time=1.5,
        client="c",
        conversation=("me", "host", "h1"),
        server="files",
        identity="stdio:files",
        method="tools/call",
        tool=tool,
        decision="allow",
        reasons=(Reason("preset/balanced", "reads are allowed", Verdict.ALLOW),),
        arguments_sha256="ab" * 32,
    )


@dataclass
class Log:
    lines: list[bytes]
    heads: list[str]

    def at(self, seq: int) -> Checkpoint:
        return Checkpoint(WRITER, seq, self.heads[seq - 1], 2.0)


def log(count: int, salt: str = "") -> Log:
    lines, heads, prev = [], [], genesis(WRITER)
    for seq in range(1, count + 1):
        record: Record = (
            decision(f"t{salt}{seq}") if seq % 2 else Outcome(2.0, f"{WRITER}.{seq - 1}", "ok", 3)
        )
        lines.append(line(WRITER, seq, prev, record))
        prev = chain(lines[-1])
        heads.append(prev)
    return Log(lines, heads)


def kinds(lines: list[bytes], *checkpoints: Checkpoint) -> list[tuple[str, int, int]]:
    return [(f.kind, f.first, f.last) for f in verify(WRITER, lines, checkpoints).findings]


def test_an_untouched_chain_is_intact() -> None:
    whole = log(6)
    report = verify(WRITER, whole.lines, [whole.at(3), whole.at(6)])
    assert report.intact and (report.records, report.seq, report.covered) == (6, 6, 6)
    assert report.head == whole.heads[-1]
    assert verify(WRITER, []).intact


@pytest.mark.parametrize("seq", range(1, 6))
def test_a_changed_record_is_named(seq: int) -> None:
    whole = log(6)
    whole.lines[seq - 1] = whole.lines[seq - 1].replace(b'"time":', b'"time":1')
    assert kinds(whole.lines) == [("change", seq, seq)]


def test_a_changed_last_record_shows_by_its_checkpoint() -> None:
    whole = log(6)
    changed = [*whole.lines[:5], whole.lines[5].replace(b"ok", b"no")]
    assert kinds(changed) == []
    assert kinds(changed, whole.at(6)) == [("change", 6, 6)]


@pytest.mark.parametrize("seq", range(1, 6))
def test_a_lost_record_is_named(seq: int) -> None:
    whole = log(6)
    del whole.lines[seq - 1]
    assert kinds(whole.lines) == [("loss", seq, seq)]
    assert f"record {seq} is missing before line {seq}" in verify(WRITER, whole.lines).findings[0].text


def test_a_stretch_that_is_lost_is_one_finding() -> None:
    whole = log(9)
    assert kinds(whole.lines[:2] + whole.lines[6:]) == [("loss", 3, 6)]


def test_a_moved_record_is_named() -> None:
    lines = log(6).lines
    assert kinds([lines[0], lines[2], lines[1], *lines[3:]]) == [("reordering", 2, 2)]
    assert kinds([lines[i] for i in (0, 4, 2, 1, 3, 5)]) == [("reordering", n, n) for n in (2, 3, 4)]


def test_a_record_that_stands_twice_is_named() -> None:
    lines = log(4).lines
    assert kinds([*lines, lines[1]]) == [("change", 2, 2)]


def test_a_cut_tail_shows_by_the_checkpoint() -> None:
    whole = log(6)
    assert kinds(whole.lines[:4], whole.at(6)) == [("truncation", 5, 6)]
    assert kinds([], whole.at(6)) == [("truncation", 1, 6)]


def test_a_chain_written_anew_shows_by_the_checkpoint() -> None:
    assert kinds(log(6, "forged").lines, log(6).at(4)) == [("change", 4, 4)]


def test_what_is_no_receipt_is_named() -> None:
    whole = log(4)
    whole.lines[1] = b"garbage"
    assert kinds(whole.lines) == [("change", 2, 2)]


def test_a_chain_cannot_pass_for_another_writers() -> None:
    lines = log(3).lines
    assert [f.kind for f in verify("w2", lines).findings].count("change") >= 3
    renamed = [data.replace(b'"id":"w1.', b'"id":"w2.') for data in lines]
    assert not verify("w2", renamed).intact


def test_checkpoints_of_other_writers_say_nothing() -> None:
    whole = log(3)
    assert verify(WRITER, whole.lines, [Checkpoint("other", 9, "00", 1.0)]).intact


def test_repairs_are_told() -> None:
    mended = Repair(3.0, "torn tail", 12, "aa", "w1.torn")
    data = line(WRITER, 1, genesis(WRITER), mended)
    report = verify(WRITER, [data])
    assert report.intact and report.repairs == (mended,)


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_any_edit_before_the_checkpoint_shows(data: st.DataObject) -> None:
    whole = log(8)
    lines = list(whole.lines)
    edit = data.draw(st.sampled_from(["byte", "drop", "swap", "cut", "again"]))
    at = data.draw(st.integers(0, 7))
    if edit == "byte":
        spot = data.draw(st.integers(0, len(lines[at]) - 1))
        lines[at] = lines[at][:spot] + bytes([lines[at][spot] ^ 1]) + lines[at][spot + 1 :]
    elif edit == "drop":
        del lines[at]
    elif edit == "swap":
        other = data.draw(st.integers(0, 7).filter(lambda n: n != at))
        lines[at], lines[other] = lines[other], lines[at]
    elif edit == "cut":
        del lines[at:]
    else:
        lines.insert(data.draw(st.integers(0, 7)), lines[at])
    assert not verify(WRITER, lines, [whole.at(8)]).intact


def test_records_come_back_as_they_were() -> None:
    records: list[Record] = [
        decision(),
        Outcome(2.0, "w1.1", "error", 3, 12.5, "cd" * 32, 99, "boom"),
        Event(3.0, "trust", "files is trusted", facts={"from": "untrusted"}),
        Repair(4.0, "gone", first=2, last=3),
    ]
    for record in records:
        back = read_line(line(WRITER, 7, "0" * 64, record))
        assert back.record == record and (back.seq, back.id) == (7, "w1.7")
    with pytest.raises(msgspec.DecodeError):
        read_line(b"{}")


def test_a_profile_fits_in_a_line() -> None:
    yes, no = Value(True, Basis.CLAIMED), Value(False, Basis.DEFAULT, "elsewhere")
    text = compact(Profile(yes, no, no, yes, yes, yes, no))
    assert text.startswith("read_only=true/claimed destructive=false/default ")
    assert expand(text)["can_exfiltrate"] == {"value": False, "basis": "default"} and len(expand(text)) == 7
    assert expand("") == {}

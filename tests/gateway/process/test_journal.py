"""The journal: whatever moment a kill falls into, no byte is lost and no id forgotten."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.gateway.process import journal as module
from earnest.gateway.process.journal import ID_SLOTS, LINE_BYTES, Journal, Stage
from earnest.shim.handover import JOURNAL_BYTES, PROGRESS_AT, new_journal
from properties import examples


class Memory:
    """What the shim owns; each `adopt` is a fresh daemon."""

    def __init__(self) -> None:
        self.fd = new_journal(-1)

    def adopt(self) -> Journal:
        return Journal(os.dup(self.fd))


@pytest.fixture
def memory():
    one = Memory()
    yield one
    os.close(one.fd)


def _put(journal: Journal, data: bytes) -> None:
    while data:
        with journal.space() as space:
            count = min(len(space), len(data))
            assert count
            space[:count] = data[:count]
        assert journal.landed(count)
        data = data[count:]


def test_ids_survive_and_are_forgotten_only_when_finished(memory):
    one = memory.adopt()
    for id in (b"1", b'"two"', b"3"):
        one.begin(id)
    one.finish(b"1")
    two = memory.adopt()
    assert set(two.in_flight) == {b'"two"', b"3"} and (one.epoch, two.epoch) == (1, 2)
    assert b"3" in two and b"1" not in two


def test_limits_are_named(memory):
    journal = memory.adopt()
    for n in range(ID_SLOTS):
        journal.begin(b"%d" % n)
    journal.begin(b"0")  # again takes no slot
    with pytest.raises(EarnestError, match="1024 calls") as e:
        journal.begin(b"more")
    assert e.value.code == "E1701"
    journal.finish(b"7")
    journal.begin(b"more")
    with pytest.raises(EarnestError) as e:
        journal.begin(b"x" * 125)
    assert e.value.code == "E1702"
    with pytest.raises(EarnestError):
        journal.opening = b"x" * (module.OPENING_BYTES + 1)


def test_opening_stage_half_and_progress_survive(memory):
    one = memory.adopt()
    one.opening, one.stage, one.half = b'{"id":1}', Stage.OPENED, True
    one.delivered()
    two = memory.adopt()
    assert (two.opening, two.stage, two.half) == (b'{"id":1}', Stage.OPENED, True)
    assert int.from_bytes(os.pread(memory.fd, 4, PROGRESS_AT), "little") == 1


def test_the_memory_cannot_be_cut_under_the_daemon(memory):
    memory.adopt()
    with pytest.raises(PermissionError):
        os.ftruncate(memory.fd, 0)


@pytest.mark.parametrize("size", [0, 4096, JOURNAL_BYTES * 2])
def test_other_sizes_are_refused(size):
    fd = os.memfd_create("x", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    with pytest.raises(EarnestError, match="another size"):
        Journal(fd)


def test_what_is_no_journal_is_refused(tmp_path):
    with open(tmp_path / "file", "wb") as f:
        f.truncate(JOURNAL_BYTES)
        with pytest.raises(EarnestError, match="sealed"):
            Journal(os.dup(f.fileno()))


_LINES = st.lists(st.integers(0, 40) | st.sampled_from([65535, 65536, 65537, 1_500_000, 3_900_000]), max_size=14)


@settings(max_examples=examples(12), deadline=None)
@given(_LINES, st.randoms(use_true_random=False))
def test_every_line_comes_out_once_and_in_order(lengths, chance):
    """Reads of any size, daemons that end between any two steps, against a list."""
    memory = Memory()
    lines = [b"%d:" % n + b"x" * length for n, length in enumerate(lengths)]
    data = b"".join(line + b"\n" for line in lines)
    journal = memory.adopt()
    out: list[bytes] = []
    while data or len(out) < len(lines):
        step = chance.random()
        if step < 0.1:
            journal.close()
            journal = memory.adopt()
        elif step < 0.7 and data:
            with journal.space() as space:
                if len(space):
                    count = min(len(space), len(data), chance.choice([1, 100, 65536, 65536, 65536]))
                    space[:count] = data[:count]
                    data = data[count:]
                else:
                    count = 0
            journal.landed(count)
        elif (line := journal.line()) is not None:
            out.append(line)
            journal.consume()
    assert out == lines and journal.rest() == b""
    journal.close()
    os.close(memory.fd)


class Killed(Exception):
    """The moment of the kill."""


STEP = 256 << 10


class Clock:
    """Counts the steps of clearing, and dies at one of them."""

    def __init__(self, moment: int) -> None:
        self.steps = 0
        self.moment = moment

    def zero(self, journal: Journal, start: int, end: int) -> None:
        while True:
            if self.steps == self.moment:
                raise Killed
            self.steps += 1
            if start >= end:
                return
            _zero(journal, start, min(end, start + STEP))
            start += STEP


_zero = Journal._zero


def _move_under(memory: Memory, monkeypatch, moment: int) -> int:
    """A line is handed on, then one so long follows that the rest must move to the front; dies at that moment."""
    journal = memory.adopt()
    partial = b"p" * (LINE_BYTES - 100)
    _put(journal, b"".join(b"%06d" % n + b"f" * 60_000 + b"\n" for n in range(200)))
    while (last := journal.line()) is not None and not last.startswith(b"000199"):
        journal.consume()
    assert last is not None
    clock = Clock(moment)
    monkeypatch.setattr(Journal, "_zero", lambda j, a, b: clock.zero(j, a, b))
    taken, sent = False, 0
    try:
        for at in range(0, len(partial), 50_000):
            part = partial[at : at + 50_000]
            with journal.space() as space:
                space[: len(part)] = part
            journal.landed(len(part))
            sent += len(part)
            if at == 0:
                journal.consume()
                taken = True
    except Killed:
        pass
    monkeypatch.setattr(Journal, "_zero", _zero)
    journal = memory.adopt()
    if not taken:
        assert journal.line() == last
        journal.consume()
    _put(journal, partial[sent:] + b"\n")
    assert journal.line() == partial
    journal.consume()
    assert journal.line() is None and journal.rest() == b""
    return clock.steps


def test_the_rest_moves_in_many_steps(memory, monkeypatch):
    assert 30 < _move_under(memory, monkeypatch, -1) < 100


@pytest.mark.parametrize("moment", range(0, 72))
def test_a_kill_within_the_move_loses_nothing(memory, monkeypatch, moment):
    _move_under(memory, monkeypatch, moment)

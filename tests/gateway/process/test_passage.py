"""Between an answer's leaving and the note that it left there is no moment: killed anywhere, the next daemon knows."""

import os
import socket
from collections.abc import Callable

import pytest

from earnest.gateway.process.descriptors import Kind, Sink, Writer
from earnest.gateway.process.journal import Journal
from earnest.gateway.process.passage import MOST_BYTES, Passage
from earnest.net.tracks import AVAILABLE, PipePort, compiled
from earnest.shim.handover import new_journal

LINE = b'{"jsonrpc":"2.0","id":7,"result":{}}\n'


class Client:
    """A client's shim: the journal and the pipe that it owns, and its end of the output."""

    def __init__(self, kind: str) -> None:
        self.folder = os.open("/tmp", os.O_RDONLY)
        self.memory = new_journal(self.folder)
        self.read, self.write = os.pipe()
        if kind == "pipe":
            self.end, self.out = os.pipe()
        else:
            ours, theirs = socket.socketpair()
            self.end, self.out = ours.detach(), theirs.detach()

    def daemon(self) -> tuple[Journal, Passage]:
        """A fresh daemon's hold on them."""
        journal = Journal(os.dup(self.memory))
        sink = Sink(None, os.dup(self.out))  # type: ignore[arg-type]
        return journal, Passage(os.dup(self.read), os.dup(self.write), sink, journal)

    def got(self) -> bytes:
        """What the client was sent."""
        os.set_blocking(self.end, False)
        found = b""
        try:
            while part := os.read(self.end, 1 << 20):
                found += part
        except BlockingIOError:
            pass
        return found


@pytest.fixture(params=["pipe", "socket"])
def client(request: pytest.FixtureRequest) -> Client:
    return Client(request.param)


STEPS: list[tuple[str, Callable[[Journal, Passage], object]]] = [
    ("begun", lambda journal, passage: journal.begin(b"7")),
    ("noted", lambda journal, passage: journal.stage_answer(b"7")),
    ("half filled", lambda journal, passage: os.write(passage._in, LINE[:9])),
    ("filled", lambda journal, passage: os.write(passage._in, LINE[9:])),
    ("noted full", lambda journal, passage: journal.answer_staged()),
    ("moved", lambda journal, passage: passage.move()),
    ("taken out", lambda journal, passage: journal.finish(b"7")),
    ("forgotten", lambda journal, passage: passage.forget()),
]


@pytest.mark.parametrize("last", range(len(STEPS)), ids=[name for name, _ in STEPS])
def test_killed_behind_any_step_the_answer_leaves_once_or_is_owed(client: Client, last: int) -> None:
    first = client.daemon()
    for _, step in STEPS[: last + 1]:
        step(*first)
    journal, passage = client.daemon()
    if ids := passage.left_over():
        assert ids == (b"7",) and passage.move()
        journal.finish(b"7")
        passage.forget()
    got = client.got()
    owed = b"7" in journal
    assert got == (b"" if owed else LINE), "it left in whole, or is owed and nothing of it left"
    assert owed == (last < 4)
    # And the next answer finds the way free.
    journal.begin(b"8")
    passage.fill(b"8", memoryview(LINE))
    assert passage.move() and client.got() == LINE


def test_several_answers_of_one_moment_are_moved_on_or_owed_together(client: Client) -> None:
    lines = [b'{"id":%d}\n' % n for n in range(5)]
    for whole in (False, True):
        journal, passage = client.daemon()
        for n in range(5):
            journal.begin(b"%d" % n)
            journal.stage_answer(b"%d" % n)
        os.write(passage._in, b"".join(lines) if whole else lines[0])
        if whole:
            journal.answer_staged()
            os.splice(passage._out, passage._sink.fileno(), 13)
        journal, passage = client.daemon()
        ids = passage.left_over()
        assert set(ids) == ({b"0", b"1", b"2", b"3", b"4"} if whole else set())
        assert passage.move() and client.got() == (b"".join(lines) if whole else b"")
        assert set(journal) == {b"0", b"1", b"2", b"3", b"4"}
        journal.finish(b"0")  # a kill among the ids that are taken out
        journal, passage = client.daemon()
        assert set(passage.left_over()) == ({b"1", b"2", b"3", b"4"} if whole else set())
        for id in journal:
            journal.finish(id)
        journal, passage = client.daemon()
        assert not passage.left_over() and not passage.waiting()


class Compiled(PipePort):
    """What of `StdioPeer` the compiled piece needs."""

    def __init__(self, journal: Journal, passage: Passage) -> None:
        super().__init__()
        self._journal, self._unsent = journal, []
        self.moved: list[bytes] = []
        socket_too = passage._sink.kind is Kind.SOCKET
        self._pass_by(*passage.ends(), passage._sink.fileno(), socket_too, MOST_BYTES)

    def _move_on(self, ids: list[bytes]) -> None:
        self.moved += ids


@pytest.mark.skipif(not AVAILABLE, reason="earnest was installed without its compiled piece")
def test_the_compiled_way_leaves_what_the_next_daemon_goes_on_from(client: Client) -> None:
    journal, passage = client.daemon()
    port = Compiled(journal, passage)
    line = b"x" * 14_999 + b"\n"
    sent = got = 0
    while not port.moved:
        ids = [b"%d" % (sent + n) for n in range(2)]
        for id in ids:
            journal.begin(id)
        compiled.give(port, [(id, line) for id in ids])
        sent += 2
        assert sent < 1000
        assert set(journal) == (set(ids) if port.moved else set())
    assert set(port.moved) == {b"%d" % (sent - 2), b"%d" % (sent - 1)}
    journal, passage = client.daemon()
    assert set(passage.left_over()) == set(port.moved)
    while not passage.move():
        got += len(client.got())
    assert got + len(client.got()) == sent * len(line)


def test_a_client_that_does_not_read_gets_the_rest_from_the_next_daemon(client: Client) -> None:
    journal, passage = client.daemon()
    line = b"x" * (MOST_BYTES - 1) + b"\n"
    sent = 0
    while True:
        journal.begin(b"%d" % sent)
        passage.fill(b"%d" % sent, memoryview(line))
        sent += 1
        if not passage.move():
            break
        journal.finish(b"%d" % (sent - 1))
        passage.forget()
    got = client.got()
    _, next_passage = client.daemon()
    assert next_passage.left_over() == (b"%d" % (sent - 1),)
    while not next_passage.move():
        got += client.got()
    got += client.got()
    assert got == line * sent, "no byte twice and none lost"


def test_of_a_long_line_the_end_goes_this_way_and_what_is_not_owed_does_not(client: Client) -> None:
    journal, passage = client.daemon()
    assert passage.before(b"7", memoryview(LINE)) == len(LINE)
    journal.begin(b"7")
    assert passage.before(b"7", memoryview(LINE)) == 0
    assert passage.before(b"7", memoryview(b"x" * (MOST_BYTES + 9))) == 9


def test_a_long_line_leaves_whole_and_its_note_of_being_torn_goes_with_it(client: Client) -> None:
    journal, passage = client.daemon()
    torn: list[bool] = []
    left: list[int] = []
    failed: list[str] = []
    writer = Writer(passage._sink, tearing=torn.append, on_pressure=left.append, on_failed=failed.append, passage=passage)
    line = b"y" * (MOST_BYTES + 20_000) + b"\n"
    journal.begin(b"7")

    def gone() -> None:
        left.append(7)
        journal.finish(b"7")

    writer.send(line, gone, b"7")
    assert client.got() == line and (torn, left, failed) == ([True, False], [7], [])
    assert journal.staged == ((), False)

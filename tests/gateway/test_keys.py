"""Keys of host processes: what was found for one stays, in whatever order hosts come and go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.gateway.keys import HostKeys
from earnest.gateway.process.peers import Process
from earnest.pdp.conversations import Conversations
from earnest.pdp.persist import KeptLabels
from earnest.store.sqlite import open_store

CAUSE = Cause("r-1", "notes", "read", "default")
OUTER, INNER = (Process(pid, pid, 1, f"p{pid}", (f"p{pid}",)) for pid in (10, 20))


class Rig:
    def __init__(self, folder: Path) -> None:
        self.store = open_store(str(folder / "store.db"))
        self.conversations = Conversations(KeptLabels(self.store), lambda: 1.0)
        self.hosts: set[tuple[int, int]] = set()
        self.servers: set[tuple[int, int]] = set()
        self.keys = HostKeys(self.conversations, lambda: frozenset(self.hosts), lambda: frozenset(self.servers))

    def client(self, *chain: Process) -> tuple[str, ...]:
        key = self.keys.of("user:1", chain)
        self.conversations.open(key, minted=True)
        return key


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.store.close()


def test_without_a_process_it_is_the_principal(rig: Rig):
    assert rig.client() == ("user:1",)


def test_a_client_over_http_is_known_by_its_conversation(rig: Rig):
    assert rig.client(OUTER) == ("user:1", "process:10.10")
    assert rig.client(INNER, OUTER) == ("user:1", "process:10.10", "process:20.20")


def test_below_a_host_that_has_ended_it_stays_below(rig: Rig):
    rig.hosts.add(OUTER.key)
    below = rig.client(INNER, OUTER)
    rig.hosts.clear()
    assert rig.client(INNER) == below


def test_what_has_a_key_before_its_starter_is_known_is_one_conversation_under_both(rig: Rig):
    alone = rig.client(INNER, OUTER)
    rig.conversations.raise_(alone, PRIVATE, CAUSE)
    outer = rig.client(OUTER)
    below = rig.client(INNER, OUTER)
    assert (len(alone), len(below)) == (2, 3)
    assert rig.conversations.labels(below) == rig.conversations.labels(outer) == PRIVATE
    rig.conversations.raise_((*below, "handle:x"), UNTRUSTED, CAUSE)
    assert rig.conversations.labels(alone) == PRIVATE | UNTRUSTED
    again = Conversations(KeptLabels(rig.store), lambda: 1.0)
    assert [again.labels(key) for key in (alone, below, outer)] == [PRIVATE | UNTRUSTED] * 3


def test_below_a_server_it_starts_with_what_anybody_has_seen(rig: Rig):
    rig.conversations.raise_(rig.client(INNER), PRIVATE, CAUSE)
    rig.servers.add(OUTER.key)
    rig.hosts.add(OUTER.key)
    other = Process(30, 30, 10, "p30", ("p30",))
    assert rig.conversations.labels(rig.client(other, OUTER)) == PRIVATE


def test_a_label_that_is_counted_only_is_still_at_every_key(rig: Rig):
    rig.client(OUTER)
    below = rig.client(INNER, OUTER)
    for _ in range(10):
        rig.conversations.raise_(below, PRIVATE, CAUSE)
    assert rig.conversations.count(below, PRIVATE)
    rig.conversations.end(below[:2], {below, below[:2]})
    assert rig.conversations.labels(below) == 0
    assert not rig.conversations.count(below, PRIVATE)

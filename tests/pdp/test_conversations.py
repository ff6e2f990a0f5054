"""Labels of conversations: kept as they rise, owed when they could not be, gone by a person's word or a named idle time."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.core.flow import PRIVATE, UNTRUSTED, Cause
from earnest.pdp import conversations
from earnest.pdp.conversations import Conversations, SavedLabels
from earnest.pdp.persist import KeptLabels
from earnest.store.sqlite import SqliteStore, open_store
from properties import examples

USER = ("user:1",)
HOST = (*USER, "process:7.1")
SIBLING = (*USER, "process:8.1")
CAUSE = Cause("r-1", "notes", "read", "default")


class Wall:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Flaky(KeptLabels):
    """The real store, out of order when told."""

    broken = False

    def save_labels(self, saved: SavedLabels) -> None:
        if self.broken:
            raise EarnestError("E1402", "the store is locked")
        super().save_labels(saved)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = open_store(str(tmp_path / "store.db"))
    yield made
    made.close()


def test_a_label_is_in_the_store_before_raising_returns(store: SqliteStore) -> None:
    first = Conversations(KeptLabels(store), Wall())
    first.open(HOST, minted=True)
    assert first.raise_(HOST, PRIVATE, CAUSE) == PRIVATE
    again = Conversations(KeptLabels(store), Wall())
    assert again.labels(HOST) == PRIVATE
    assert again.labels(SIBLING) == PRIVATE, "a key that nobody minted starts with what its parent sees"
    again.open((*USER, "process:9.1"), minted=True)
    assert again.labels((*USER, "process:9.1")) == 0
    assert again.causes(HOST)[PRIVATE].first == (CAUSE,)


def test_a_label_that_could_not_be_kept_is_owed_by_the_next_call(store: SqliteStore) -> None:
    kept = Flaky(store)
    known = Conversations(kept, Wall())
    known.open(HOST, minted=True)
    kept.broken = True
    with pytest.raises(EarnestError):
        known.raise_(HOST, PRIVATE, CAUSE)
    assert known.labels(HOST) == PRIVATE, "it counts at once, kept or not"
    with pytest.raises(EarnestError):
        known.raise_(HOST, PRIVATE, CAUSE)
    kept.broken = False
    assert known.raise_(HOST, PRIVATE, CAUSE) == 0
    assert Conversations(kept, Wall()).labels(HOST) == PRIVATE


def test_what_a_made_up_handle_inherits_is_kept_or_owed(store: SqliteStore) -> None:
    kept = Flaky(store)
    known = Conversations(kept, Wall())
    known.open(HOST, minted=True)
    known.raise_(HOST, UNTRUSTED, CAUSE)
    handle = (*HOST, "handle:x")
    kept.broken = True
    with pytest.raises(EarnestError):
        known.open(handle, minted=False)
    assert known.labels(handle) == UNTRUSTED
    kept.broken = False
    assert known.raise_(handle, UNTRUSTED, CAUSE) == 0
    assert store.flow('["user:1","process:7.1","handle:x"]') is not None


def test_ending_a_conversation_forgets_it_and_what_is_below_but_not_what_is_above(store: SqliteStore) -> None:
    known = Conversations(KeptLabels(store), Wall())
    handle = (*HOST, "handle:x")
    known.open(HOST, minted=True)
    known.open(handle, minted=False)
    known.raise_(handle, PRIVATE, CAUSE)
    known.raise_(HOST, UNTRUSTED, CAUSE)
    assert set(known.end(handle)) == {handle}
    assert known.labels(HOST) == UNTRUSTED
    assert set(known.end(HOST, connected={HOST})) == {HOST}
    assert HOST in known and known.labels(HOST) == 0
    assert Conversations(KeptLabels(store), Wall()).labels(HOST) == 0


def test_an_idle_conversation_ends_after_the_named_time_and_a_used_one_does_not(store: SqliteStore) -> None:
    wall = Wall()
    known = Conversations(KeptLabels(store), wall)
    known.open(HOST, minted=True, idle_s=60)
    known.raise_(HOST, PRIVATE, CAUSE)
    for _ in range(5):
        wall.now += 50
        known.touch(HOST)
        assert known.expire() == ()
    wall.now += 50
    known.touch((*HOST, "handle:x"))
    wall.now += 50
    assert known.expire() == (), "a handle below it was used"
    wall.now += 60
    assert known.expire(busy=[(*HOST, "handle:x")]) == (), "a call is still in flight"
    assert HOST in known.expire(connected=[HOST])
    assert known.labels(HOST) == 0


def test_the_idle_time_holds_again_after_it_has_ended_a_conversation_once(store: SqliteStore) -> None:
    wall = Wall()
    known = Conversations(KeptLabels(store), wall)
    known.open(HOST, minted=True, idle_s=60)
    for _ in range(3):
        known.raise_(HOST, PRIVATE, CAUSE)
        wall.now += 61
        assert known.expire(connected=[HOST]) == (HOST,)
        assert known.labels(HOST) == 0
    wall.now += 61
    assert known.expire(connected=[HOST]) == (), "one that had no labels leaves no record"
    known.end(HOST, connected=[HOST])
    known.raise_(HOST, PRIVATE, CAUSE)
    wall.now += 61
    assert known.expire() == (HOST,), "also after a person's word"


KEYS = [USER, HOST, SIBLING, (*HOST, "handle:a"), (*HOST, "handle:b"), (*SIBLING, "handle:a")]
STEPS = st.lists(
    st.tuples(st.sampled_from(["open", "made-up", "raise", "fail"]), st.sampled_from(KEYS), st.sampled_from([1, 2, 3])),
    max_size=12,
)


@settings(max_examples=examples(40), deadline=None)
@given(STEPS)
def test_whatever_happens_labels_only_grow_and_a_restart_forgets_none_that_was_answered_for(
    steps: list[tuple[str, tuple[str, ...], int]],
) -> None:
    with TemporaryDirectory() as folder:
        store = open_store(f"{folder}/store.db")
        kept = Flaky(store)
        known = Conversations(kept, Wall())
        answered: dict[tuple[str, ...], int] = {}
        before: dict[tuple[str, ...], int] = {}
        for what, key, bits in steps:
            kept.broken = what == "fail"
            try:
                if what == "open":
                    known.open(key, minted=True)
                elif what == "made-up":
                    known.open(key, minted=False)
                else:
                    known.raise_(key, bits, CAUSE)
                    answered[key] = answered.get(key, 0) | bits
            except EarnestError:
                pass
            for k in list(before):
                assert known.labels(k) & before[k] == before[k]
            for k in KEYS:
                if k in known:
                    before[k] = known.labels(k)
        kept.broken = False
        again = Conversations(kept, Wall())
        for k, bits in answered.items():
            assert again.labels(k) & bits == bits
        store.close()


def test_handles_past_the_limit_are_no_conversations_of_their_own_and_never_clean(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MAX_HANDLES", 3)
    known = Conversations(KeptLabels(store), Wall())
    known.open(HOST, minted=True)
    handles = [known.narrowed(HOST, f"h{n}") for n in range(3)]
    assert len(set(handles)) == 3 and all(known.labels(key) == 0 for key in handles)
    known.raise_(handles[0], PRIVATE, CAUSE)
    known.raise_(handles[1], UNTRUSTED, CAUSE)
    count = len(known.keys())
    for n in range(100):
        key = known.narrowed(HOST, f"further {n}")
        assert key == HOST and known.labels(key) == PRIVATE | UNTRUSTED
    assert len(known.keys()) == count
    assert known.narrowed(HOST, "h2") == handles[2] and known.labels(handles[2]) == 0, "one that is known stays its own"
    assert known.narrowed(SIBLING, "other") == SIBLING, "the limit is the principal's, whatever its processes are"
    assert known.narrowed(("user:2", "process:1.1"), "h") == ("user:2", "process:1.1", "handle:h")


def test_ended_handles_make_room_and_a_restart_counts_those_that_are_kept(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MAX_HANDLES", 1)
    first = Conversations(KeptLabels(store), Wall())
    first.open(HOST, minted=True)
    first.raise_(first.narrowed(HOST, "h"), PRIVATE, CAUSE)
    again = Conversations(KeptLabels(store), Wall())
    again.open(HOST, minted=True)
    assert again.narrowed(HOST, "new") == HOST
    again.end((*HOST, "handle:h"))
    assert again.narrowed(HOST, "new") == (*HOST, "handle:new")

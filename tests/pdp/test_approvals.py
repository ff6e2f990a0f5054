"""One yes fits one lock and is used once (law 7)."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.pdp.approvals import PENDING_S, Approvals
from earnest.pdp.ids import Ids
from earnest.store.base import Lock
from earnest.store.sqlite import SqliteStore, open_store
from properties import examples

LOCK = Lock(
    principal="user:1",
    identity="exec:/bin/notes#1",
    conversation=("user:1", "process:7.1"),
    tool="delete",
    pin="v1:aa",
    arguments_sha256="00" * 32,
    labels=0,
    policy_sha256="11" * 32,
)
OTHER: dict[str, object] = {
    "principal": "user:2",
    "identity": "exec:/bin/notes#2",
    "conversation": ("user:1", "process:8.1"),
    "tool": "delete_all",
    "pin": "v1:ab",
    "arguments_sha256": "01" * 32,
    "labels": 1,
    "policy_sha256": "12" * 32,
    "change": "13" * 32,
}


class Wall:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = open_store(str(tmp_path / "store.db"))
    yield made
    made.close()


@pytest.fixture
def wall() -> Wall:
    return Wall()


def of(store: SqliteStore, wall: Wall) -> Approvals:
    return Approvals(store, wall, Ids(wall, lambda n: b"\1" * n).new)


def test_every_member_of_a_lock_is_one_that_this_file_changes() -> None:
    assert set(OTHER) == set(Lock.__struct_fields__)


@settings(max_examples=examples(80), deadline=None)
@given(st.sets(st.sampled_from(sorted(OTHER))))
def test_a_yes_fits_no_lock_that_differs_in_any_member(changed: set[str]) -> None:
    with TemporaryDirectory() as folder:
        store, wall = open_store(f"{folder}/store.db"), Wall()
        known = of(store, wall)
        asked = known.ask(LOCK, "{}")
        assert known.decide(asked.id, True, channel="terminal", valid_s=600)
        taken = known.take(msgspec.structs.replace(LOCK, **{name: OTHER[name] for name in changed}))
        assert (taken is not None) is (not changed)
        store.close()


def test_a_yes_is_used_once(store: SqliteStore, wall: Wall) -> None:
    known = of(store, wall)
    asked = known.ask(LOCK, "{}")
    known.decide(asked.id, True, channel="terminal", valid_s=600)
    taken = known.take(LOCK)
    assert taken is not None and taken.id == asked.id
    assert known.take(LOCK) is None


def test_the_same_call_is_asked_about_once_while_it_waits_and_anew_after(store: SqliteStore, wall: Wall) -> None:
    known = of(store, wall)
    first = known.ask(LOCK, "{}")
    assert known.ask(LOCK, "{}").id == first.id
    assert of(store, wall).ask(LOCK, "{}").id == first.id, "also for another daemon on the same store"
    known.decide(first.id, False, channel="terminal", valid_s=600)
    assert known.ask(LOCK, "{}").id != first.id
    wall.now += PENDING_S + 1
    late = known.listed()
    assert late == []


def test_a_yes_runs_out(store: SqliteStore, wall: Wall) -> None:
    known = of(store, wall)
    asked = known.ask(LOCK, "{}")
    known.decide(asked.id, True, channel="terminal", valid_s=600)
    wall.now += 601
    assert known.take(LOCK) is None


def test_an_ask_that_ran_out_cannot_be_answered_and_is_told(store: SqliteStore, wall: Wall) -> None:
    known = of(store, wall)
    asked = known.ask(LOCK, "{}")
    heard: list[str] = []
    known.on_decision(asked.id, heard.append)
    wall.now += PENDING_S
    assert not known.decide(asked.id, True, channel="terminal", valid_s=600)
    assert heard == []
    known.expire()
    assert heard == ["expired"]
    assert known.take(LOCK) is None


def test_a_withdrawn_ask_and_a_withdrawn_yes_run_nothing(store: SqliteStore, wall: Wall) -> None:
    known = of(store, wall)
    asked = known.ask(LOCK, "{}")
    known.withdraw(asked.id)
    assert not known.decide(asked.id, True, channel="terminal", valid_s=600)
    again = known.ask(LOCK, "{}")
    known.decide(again.id, True, channel="terminal", valid_s=600)
    known.withdraw(again.id)
    assert known.take(LOCK) is None
    row = known.get(again.id)
    assert row is not None and row.state == "withdrawn"


def test_the_first_answer_counts(store: SqliteStore, wall: Wall) -> None:
    known = of(store, wall)
    asked = known.ask(LOCK, "{}")
    heard: list[str] = []
    known.on_decision(asked.id, heard.append)
    assert known.decide(asked.id, False, channel="terminal", valid_s=600)
    assert not known.decide(asked.id, True, channel="in-band", valid_s=600)
    assert heard == ["denied"]
    assert known.take(LOCK) is None


def test_who_stopped_listening_hears_nothing(store: SqliteStore, wall: Wall) -> None:
    known = of(store, wall)
    asked = known.ask(LOCK, "{}")
    first: list[str] = []
    second: list[str] = []
    stop = known.on_decision(asked.id, first.append)
    known.on_decision(asked.id, second.append)
    stop()
    assert known.waited_for(asked.id)
    known.decide(asked.id, True, channel="terminal", valid_s=600)
    assert (first, second) == ([], ["approved"])
    assert not known.waited_for(asked.id)

"""The store: rows come back, approvals are used once, labels only grow, and what is wrong is told in plain words."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from earnest.core.errors import EarnestError
from earnest.store import base
from earnest.store.base import Approval, Lock, Store, lock_text
from earnest.store.connection import migrations, statements
from earnest.store.sqlite import SqliteStore, open_store

LOCK = Lock("me", "stdio:x", ("me", "h"), "delete", "v1:aa", "ab" * 32, 1, "cd" * 32)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    opened = open_store(path)
    yield opened
    opened.close()


def code(path: str, **how: bool) -> str:
    with pytest.raises(EarnestError) as caught:
        open_store(path, **how)
    assert "Traceback" not in str(caught.value)
    return caught.value.code


def ask(store: Store, id: str = "a1", lock: Lock = LOCK, expires: float = 100.0) -> None:
    store.ask(Approval(id, "pending", lock_text(lock), "{}", created=1.0, expires=expires))


def test_a_new_store_is_private_and_has_an_epoch(store: SqliteStore, path: str) -> None:
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert len(store.epoch) == 32
    assert store.all("PRAGMA journal_mode")[0][0] == "wal"
    again = open_store(path, read_only=True)
    assert again.epoch == store.epoch
    again.close()


def test_every_row_comes_back(store: SqliteStore, path: str) -> None:
    typed: Store = store
    server = base.Server("stdio:x", "files", "trusted", 5.0, "sha", '{"command":["x"]}', 6.0)
    pin = base.PinRow("stdio:x", "", "read", "accepted", "v1:a", b"{}", 1, 2.0, "v1:b", b"[]", 3.0)
    text = base.InstructionsRow("stdio:x", "", "accepted", "v1:a", "hi", 2.0)
    label = base.OperatorLabel("stdio:x", "read", "v1:a", '{"read_only":true}', "terminal", 4.0)
    seen = base.Evidence("stdio:x", "read", "read_only", "v1:a", "sha", "violated", "{}", 9.0)
    yes = base.Endorsement("e1", '["me"]', "destinations", '["a@b"]', 1.0, 50.0, "w.3")
    policy = base.SavedPolicy("policy", "preset = 'cautious'", "aa", 1.0, "me")
    head = base.Head("w", 7, "hh", 1.0, "jws")
    for _ in range(2):
        typed.put_server(server)
        typed.put_pin(pin)
        typed.put_instructions(text)
        typed.put_operator_label(label)
        typed.put_evidence(seen)
        typed.put_endorsement(yes)
        typed.put_policy(policy)
        typed.put_head(head)
    typed.add_noise("stdio:x", "^/tmp/", 1.0)
    typed.approve_config("/c", "aa", 1.0)
    typed.set_meta("signing", "k1")
    reader: Store = open_store(path, read_only=True)
    assert reader.server("stdio:x") == server and reader.servers() == [server]
    assert reader.pin("stdio:x", "", "read") == pin and reader.pins("stdio:x") == [pin]
    assert reader.pins("stdio:x", "other") == [] and reader.pin("stdio:x", "", "none") is None
    assert reader.instructions("stdio:x", "") == text
    assert reader.operator_label("stdio:x", "read") == label and reader.operator_labels() == [label]
    assert reader.evidence("stdio:x") == [seen] and reader.evidence("stdio:x", "other") == []
    assert reader.endorsements('["me"]', 49.0) == [yes] and reader.endorsements('["me"]', 50.0) == []
    assert reader.policy() == policy and reader.head("w") == head and reader.heads() == [head]
    assert reader.noise("stdio:x") == ["^/tmp/"] and reader.approved_config("/c") == "aa"
    assert reader.approved_config("/d") == "" and reader.meta("signing") == "k1" and reader.meta("x") == ""
    reader.close()


def test_rows_can_be_dropped(store: SqliteStore) -> None:
    store.put_operator_label(base.OperatorLabel("i", "t", "p", "{}", "s"))
    store.put_evidence(base.Evidence("i", "t", "read_only", "p", "a", "supported"))
    store.put_pin(base.PinRow("i", "", "t", "accepted"))
    store.put_policy(base.SavedPolicy("policy", "", ""))
    store.put_endorsement(base.Endorsement("e", "c", "k", "[]", expires=9.0))
    store.add_noise("i", "x", 1.0)
    store.drop_pin("i", "", "t")
    assert store.pins("i") == []
    assert store.drop_operator_label("i", "t") and not store.drop_operator_label("i", "t")
    assert store.drop_evidence("i") == 1 and store.evidence("i") == []
    assert store.drop_policy() and not store.drop_policy()
    assert store.drop_endorsement("e") and not store.drop_endorsement("e")
    assert store.drop_noise("i", "x") and not store.drop_noise("i", "x")


def test_labels_only_grow(store: SqliteStore) -> None:
    store.put_flow(base.FlowRow('["me"]', 1, '{"1":[]}', 1, 0, 5.0))
    store.put_flow(base.FlowRow('["me"]', 2, '{"2":[]}', 0, 1, 4.0))
    row = store.flow('["me"]')
    assert row == base.FlowRow('["me"]', 3, '{"2":[]}', 1, 1, 5.0)
    assert store.flows() == [row]
    assert store.drop_flow('["me"]') and store.flow('["me"]') is None


def test_an_approval_is_used_exactly_once(store: SqliteStore) -> None:
    ask(store)
    assert not store.take("a1", 2.0)
    assert store.settle("a1", "approved", 2.0, expires=50.0, channel="queue", by="me")
    assert not store.take("a1", 50.0)
    assert store.take("a1", 49.0)
    assert not store.take("a1", 49.0)
    row = store.approval("a1")
    assert row is not None and (row.state, row.channel, row.by, row.decided) == ("used", "queue", "me", 2.0)


def test_an_approval_fits_one_lock(store: SqliteStore) -> None:
    ask(store)
    store.settle("a1", "approved", 2.0, expires=50.0)
    others = [
        msgspec.structs.replace(LOCK, principal="you"),
        msgspec.structs.replace(LOCK, conversation=("me", "h", "other")),
        msgspec.structs.replace(LOCK, arguments_sha256="00" * 32),
        msgspec.structs.replace(LOCK, labels=3),
        msgspec.structs.replace(LOCK, pin="v1:bb"),
    ]
    assert [store.take_for(lock, 3.0) for lock in others] == [None] * 5
    taken = store.take_for(LOCK, 3.0)
    assert taken is not None and (taken.id, taken.state) == ("a1", "used")
    assert store.take_for(LOCK, 3.0) is None


def test_only_a_pending_question_can_be_answered(store: SqliteStore) -> None:
    ask(store)
    ask(store, "a2")
    ask(store, "late", expires=10.0)
    assert store.settle("a1", "denied", 2.0) and not store.settle("a1", "approved", 3.0)
    assert store.settle("a2", "approved", 2.0) and store.settle("a2", "withdrawn", 3.0)
    assert not store.take("a2", 4.0)
    assert not store.settle("late", "approved", 10.0) and not store.settle("none", "approved", 1.0)
    assert store.expire_approvals(10.0) == ["late"] and store.expire_approvals(10.0) == []
    assert [row.id for row in store.approvals("expired")] == ["late"] and len(store.approvals()) == 3
    with pytest.raises(EarnestError) as caught:
        ask(store)
    assert caught.value.code == "E1409"


def test_two_that_take_at_once_do_not_both_get_it(store: SqliteStore, path: str) -> None:
    ask(store)
    store.settle("a1", "approved", 2.0, expires=50.0)
    got: list[bool] = []

    def take() -> None:
        other = open_store(path)
        got.append(other.take("a1", 3.0))
        other.close()

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 5 + [True]


def test_a_name_once_given_stays(store: SqliteStore) -> None:
    store.add_alias(base.Alias("/mcp", "i", "read", "files_read"))
    for other in (base.Alias("/mcp", "i", "read", "x"), base.Alias("/mcp", "j", "read", "files_read")):
        with pytest.raises(EarnestError) as caught:
            store.add_alias(other)
        assert caught.value.code == "E1409"
    store.add_alias(base.Alias("/v/a", "j", "read", "files_read"))
    assert [row.alias for row in store.aliases("/mcp")] == ["files_read"]


def test_a_transaction_is_all_or_nothing(store: SqliteStore) -> None:
    with pytest.raises(ValueError), store.transaction():
        store.set_meta("a", "1")
        with store.transaction():
            store.set_meta("b", "1")
        raise ValueError
    assert store.meta("a") == store.meta("b") == ""
    with store.transaction():
        store.set_meta("a", "2")
    assert store.meta("a") == "2"


def test_a_newer_store_is_refused_and_left_alone(path: str) -> None:
    open_store(path).close()
    newest = migrations()[-1][0]
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={newest + 1}")
    db.close()
    assert code(path) == code(path, read_only=True) == "E1403"


def test_a_foreign_or_broken_file_is_refused(tmp_path: Path) -> None:
    foreign = str(tmp_path / "foreign.db")
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    assert code(foreign) == "E1404"
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, whatever its name says" * 100)
    assert code(str(broken)) == "E1407"
    assert code(str(tmp_path / "none" / "store.db")) == "E1401"
    assert code(str(tmp_path / "none.db"), read_only=True) == "E1402"


def test_a_locked_store_says_so(store: SqliteStore, path: str) -> None:
    other = open_store(path, busy_s=0.05)
    with store.transaction():
        store.set_meta("a", "1")
        with pytest.raises(EarnestError) as caught:
            other.set_meta("a", "2")
        assert caught.value.code == "E1406"
        assert other.meta("a") == ""
    other.set_meta("a", "2")
    other.close()
    assert store.meta("a") == "2"


def test_a_full_store_says_so_and_keeps_what_it_had(store: SqliteStore) -> None:
    store.set_meta("kept", "1")
    pages = store.all("PRAGMA page_count")[0][0]
    store.run(f"PRAGMA max_page_count={pages}")
    with pytest.raises(EarnestError) as caught, store.transaction():
        store.set_meta("kept", "2")
        store.set_meta("big", "x" * 200_000)
    assert caught.value.code == "E1405"
    assert store.meta("kept") == "1"


def test_a_reader_may_not_write(store: SqliteStore, path: str) -> None:
    reader = open_store(path, read_only=True)
    with pytest.raises(EarnestError) as caught:
        reader.set_meta("a", "1")
    assert caught.value.code == "E1408"
    store.set_meta("a", "2")
    assert reader.meta("a") == "2"
    reader.close()


def test_many_that_open_at_once_make_one_store(path: str) -> None:
    program = "import sys; from earnest.store.sqlite import open_store; print(open_store(sys.argv[1], busy_s=10.0).epoch)"
    many = [subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) for _ in range(4)]
    epochs = [one.communicate(timeout=60)[0] for one in many]
    assert epochs[0] and len(set(epochs)) == 1


def test_a_script_is_cut_into_its_statements() -> None:
    parts = list(
        statements("-- a; b\nCREATE TABLE a (x);\n\nCREATE TRIGGER t AFTER INSERT ON a BEGIN\n DELETE FROM a;\nEND;\n")
    )
    assert len(parts) == 2 and "END;" in parts[1]


def test_steps_are_numbered_without_a_gap() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))

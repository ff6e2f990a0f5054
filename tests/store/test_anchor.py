"""The file that holds the store to what it kept: what it finds, and that it is never ahead of an honest store."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from earnest.core.errors import EarnestError
from earnest.gateway.loss import hold_store
from earnest.store.anchor import Anchor, loss_of, note_loss
from earnest.store.base import Approval, Endorsement, FlowRow, PinRow, Server
from earnest.store.sqlite import SqliteStore

KEY = '["user:1"]'


def held(folder: Path, at: float = 5.0) -> tuple[SqliteStore, Anchor]:
    return hold_store(str(folder), lambda: at)


def lost(folder: Path) -> str:
    """What a fresh start finds; the loss is noted by it."""
    store, _ = held(folder)
    loss = loss_of(store)
    store.close()
    return loss.text if loss is not None else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An instance whose daemon was killed after a few changes: the log of the store is not folded in."""
    live = tmp_path / "live"
    live.mkdir()
    store, _ = held(live)
    store.put_flow(FlowRow(KEY, 1))
    store.put_server(Server("i", "notes", "trusted", 1.0))
    store.put_pin(PinRow("i", "", "read", "accepted", "p", b"{}"))
    store.ask(Approval("a", "pending", "{}", "{}", expires=1e12))
    with store.transaction():
        store.put_flow(FlowRow(KEY, 2))
        store.put_endorsement(Endorsement("e", KEY, "call", "{}"))
    killed = tmp_path / "killed"
    shutil.copytree(live, killed)
    store.close()
    (killed / "receipts").mkdir()
    (killed / "receipts" / "gateway-00000001.jsonl").touch()
    return killed


def test_a_store_that_is_whole_has_lost_nothing(folder: Path):
    for _ in range(3):
        assert lost(folder) == ""
    assert (folder / "epoch").stat().st_mode & 0o777 == 0o600


def test_the_file_follows_each_change_and_nothing_else(folder: Path):
    store, anchor = held(folder)
    assert Anchor(anchor.path).count == store.changes == anchor.count
    for change in (
        lambda: store.put_flow(FlowRow('["user:2"]', 1)),
        lambda: store.settle("a", "approved", 1.0, expires=1e12),
        lambda: store.take("a", 2.0),
        lambda: store.drop_endorsement("e"),
        lambda: store.put_server(Server("i", "notes")),
        lambda: store.drop_pin("i", "", "read"),
    ):
        before = Anchor(anchor.path).count
        change()
        assert Anchor(anchor.path).count == store.changes > before
    before = store.changes
    store.set_meta("x", "y")
    assert store.flows() and store.changes == before
    with pytest.raises(EarnestError), store.transaction():
        store.put_flow(FlowRow('["user:3"]', 1))
        raise EarnestError("E1400", "no")
    assert Anchor(anchor.path).count == store.changes == before
    store.close()


@pytest.mark.parametrize("what", ["store", "log", "empty", "file of an old day"])
def test_what_was_kept_and_is_gone_is_found_and_stays_found(folder: Path, what: str, tmp_path: Path):
    if what == "file of an old day":
        store, _ = held(folder)
        store.fold()
        shutil.copy(folder / "store.db", tmp_path / "old")
        store.put_flow(FlowRow('["user:4"]', 3))
        store.close()
        shutil.copy(tmp_path / "old", folder / "store.db")
    for name in ("store.db-wal", "store.db-shm", *(("store.db",) if what == "store" else ())):
        (folder / name).unlink(missing_ok=True)
    if what == "empty":
        (folder / "store.db").write_bytes(b"")
    assert lost(folder)
    assert lost(folder), "the next start knows it too"


def test_without_the_file_its_proof_is_gone_too(folder: Path):
    (folder / "epoch").unlink()
    assert "epoch" in lost(folder)


@pytest.mark.parametrize("text", [b"", b"earnest 1", b"\0" * 200])
def test_a_damaged_file_is_no_proof(folder: Path, text: bytes):
    (folder / "epoch").write_bytes(text)
    assert "epoch" in lost(folder)


def test_with_both_gone_the_receipts_tell(folder: Path):
    for name in ("epoch", "store.db", "store.db-wal", "store.db-shm"):
        (folder / name).unlink(missing_ok=True)
    assert "receipts" in lost(folder)


def test_a_new_instance_has_lost_nothing(tmp_path: Path):
    assert lost(tmp_path) == ""


def test_a_store_of_before_the_file_is_taken_as_it_is(folder: Path):
    lost(folder)
    with sqlite3.connect(folder / "store.db") as db:
        db.execute("DELETE FROM meta WHERE key = 'anchored'")
    (folder / "epoch").unlink()
    assert lost(folder) == ""
    (folder / "epoch").unlink()
    assert lost(folder)


def test_a_file_that_lags_is_no_loss(folder: Path):
    """A kill falls between the commit and the file."""
    text = (folder / "epoch").read_bytes()
    store, _ = held(folder)
    store.put_flow(FlowRow('["user:5"]', 1))
    store.close()
    (folder / "epoch").write_bytes(text)
    assert lost(folder) == ""


def test_no_yes_of_an_old_copy_is_used(folder: Path, tmp_path: Path):
    store, _ = held(folder)
    store.settle("a", "approved", 1.0, expires=1e12)
    store.fold()
    shutil.copy(folder / "store.db", tmp_path / "old")
    assert store.take("a", 2.0)
    store.close()
    for name in ("store.db-wal", "store.db-shm"):
        (folder / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "old", folder / "store.db")
    store, _ = held(folder)
    assert loss_of(store) is not None
    assert not store.take("a", 3.0) and store.endorsements(KEY, 0.0) == []
    note_loss(store, None)
    store.close()
    assert lost(folder) == "", "understood is understood"


def test_the_last_signed_head_stays_when_the_store_goes(folder: Path):
    store, anchor = held(folder)
    anchor.signed(7, "ab" * 32)
    store.put_flow(FlowRow('["user:6"]', 1))
    store.close()
    (folder / "store.db").unlink()
    lost(folder)
    head = Anchor(f"{folder}/epoch").checkpoint()
    assert head is not None and (head.seq, head.head) == (7, "ab" * 32)

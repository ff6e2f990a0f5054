"""What the pdp keeps comes back as it was."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from earnest.core import pin
from earnest.core.flow import Cause, Causes
from earnest.pdp.catalog import INSTRUCTIONS, SavedPin
from earnest.pdp.conversations import SavedLabels
from earnest.pdp.persist import CallValues, KeptEndorsements, KeptLabels, KeptPins, key_text
from earnest.store.base import Endorsement
from earnest.store.sqlite import SqliteStore, open_store

TOOL = b'{"name":"read","inputSchema":{"type":"object"}}'
KEY = ("user:1", "process:7.1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = open_store(str(tmp_path / "store.db"))
    yield made
    made.close()


def test_labels_with_their_causes(store: SqliteStore) -> None:
    causes = {1: Causes((Cause("r-1", "s", "t", "pack", "line 3"),), 4)}
    saved = SavedLabels(KEY, 3, causes, True, 5.0)
    KeptLabels(store).save_labels(saved)
    assert list(KeptLabels(store).load_labels()) == [saved]
    KeptLabels(store).delete_labels([KEY])
    assert list(KeptLabels(store).load_labels()) == []


def test_pins_with_what_waits_and_instructions_apart_for_each_authorization(store: SqliteStore) -> None:
    book = KeptPins(store)
    pins = [
        SavedPin("new", "", b"", TOOL, 2.0),
        SavedPin("read", pin.pin(TOOL), TOOL, b"", 1.0),
        SavedPin(INSTRUCTIONS, pin.text_pin("be kind"), b"be kind", b"be rude", 1.0),
    ]
    book.save_pins("id", pins)
    assert {p.tool: p for p in book.pins("id")} == {p.tool: p for p in pins}
    assert KeptPins(store, "other").pins("id") == []


def test_pins_are_written_whole_or_not_at_all(store: SqliteStore) -> None:
    broken = SavedPin("bad", "not a pin", TOOL, b"", 1.0)
    with pytest.raises(Exception):  # noqa: B017
        KeptPins(store).save_pins("id", [SavedPin("read", pin.pin(TOOL), TOOL, b"", 1.0), broken])
    assert KeptPins(store).pins("id") == []


def endorsement(id: str, key: tuple[str, ...], expires: float = 0.0) -> Endorsement:
    values = CallValues("id", "send", "v1:a", "digest", "to=me")
    return Endorsement(id, key_text(key), "call", msgspec.json.encode(values).decode(), 1.0, expires, "r-9")


def test_an_endorsement_covers_its_conversation_and_what_is_below_and_nothing_else(store: SqliteStore) -> None:
    now = [10.0]
    kept = KeptEndorsements(store, lambda: now[0])
    wanted = ("id", "send", "v1:a", "digest")
    assert not kept.any(KEY) and kept.covering(KEY, *wanted) is None
    kept.add(endorsement("e-1", KEY))
    for key in (KEY, (*KEY, "handle:a")):
        found = kept.covering(key, *wanted)
        assert found is not None and found.receipt == "r-9"
    for other_key in (KEY[:1], ("user:1", "process:8.1")):
        assert kept.covering(other_key, *wanted) is None
    for place in range(4):
        other = tuple("x" if i == place else word for i, word in enumerate(wanted))
        assert kept.covering(KEY, *other) is None
    assert KeptEndorsements(store, lambda: now[0]).covering(KEY, *wanted) is not None
    kept.end([KEY])
    assert kept.covering(KEY, *wanted) is None and not kept.any(KEY)


def test_an_endorsement_with_an_end_ends(store: SqliteStore) -> None:
    now = [10.0]
    kept = KeptEndorsements(store, lambda: now[0])
    kept.add(endorsement("e-1", KEY, expires=20.0))
    assert kept.covering(KEY, "id", "send", "v1:a", "digest") is not None
    now[0] = 20.0
    assert kept.covering(KEY, "id", "send", "v1:a", "digest") is None

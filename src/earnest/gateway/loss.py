"""What the gateway does about a store that lost something (`store/anchor.py`), until a person says that it is understood.

Every conversation counts as having read private data and untrusted content, definitions count as seen by nobody, trust and
words that came from the store before do not count, and no approval or endorsement of before is used. Nothing is taken from what
conversations see meanwhile, so that understanding ends the loss and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.flow import Cause
from earnest.store import segments
from earnest.store.anchor import ANCHORED, Anchor, Loss, loss_of, note_loss
from earnest.store.sqlite import SqliteStore, open_store

if TYPE_CHECKING:
    from earnest.gateway.records import Records

REMEDY: Final = "`earnest doctor --store-lost-understood` ends this, at a terminal; `earnest pins` shows what to look at again."
_EVER: Final = 1e18


def hold_store(instance: str, wall: Callable[[], float]) -> tuple[SqliteStore, Anchor]:
    """The store of an instance, and the file that holds it to what it kept. A loss is noted in the store (`loss_of`). Raises
    E14xx."""
    anchor = Anchor(f"{instance}/epoch")
    store = open_store(f"{instance}/store.db")
    try:
        folder = f"{instance}/receipts"
        text = anchor.compare(
            store.epoch,
            store.changes,
            made=store.made,
            anchored=bool(store.meta(ANCHORED)),
            receipts=bool(segments.writers(folder)),
        )
        if text:
            note_loss(store, Loss(wall(), text))
            # An old copy may hold a yes that was used since, or one that was taken back.
            store.expire_approvals(_EVER)
            store.drop_endorsements()
        if text or not anchor.epoch:
            store.set_meta(ANCHORED, "1")
            store.fold()
            anchor.follow(store.epoch, store.changes)
        else:
            anchor.kept(store.changes)
    except OSError as error:
        store.close()
        raise EarnestError("E1401", f"{error.filename or anchor.path} cannot be written: {error.strerror}") from None
    except BaseException:
        store.close()
        raise
    store.on_change = anchor.kept
    return store, anchor


def tell_loss(store: SqliteStore, records: Records, log: logging.Logger) -> Cause | None:
    """Say loudly that something is lost, and put it on record once; what every conversation then has as a cause of its labels.
    None where nothing is lost. Raises E14xx."""
    loss = loss_of(store)
    if loss is None:
        return None
    if not loss.receipt:
        loss = msgspec.structs.replace(loss, receipt=records.event("store-lost", loss.text, at=os.path.dirname(store.path)))
        note_loss(store, loss)
    log.error("E1416: %s: every conversation counts as private and untrusted. %s", loss.text, REMEDY)
    return Cause(loss.receipt, "earnest", "the store was lost", "lost", loss.text)

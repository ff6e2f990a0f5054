"""What the pdp keeps, in the store's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from earnest.core import pin
from earnest.core.decide import Endorsement
from earnest.core.flow import Causes, Key
from earnest.core.storage import Mark
from earnest.pdp.catalog import INSTRUCTIONS, SavedPin
from earnest.pdp.conversations import SavedLabels
from earnest.store.anchor import loss_of
from earnest.store.base import Endorsement as EndorsementRow
from earnest.store.base import FlowRow, InstructionsRow, PinRow, Store

_encode = msgspec.json.Encoder().encode


def key_text(key: Key) -> str:
    """A conversation key as the store's text."""
    return _encode(key).decode()


class KeptLabels:
    """`conversations.LabelStore` on the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load_labels(self) -> Iterable[SavedLabels]:
        for row in self._store.flows():
            causes = msgspec.json.decode(row.causes, type=dict[int, Causes])
            key = msgspec.json.decode(row.key, type=tuple[str, ...])
            yield SavedLabels(key, row.bits, causes, bool(row.minted), row.touched_at)

    def save_labels(self, saved: SavedLabels) -> None:
        self._store.put_flow(
            FlowRow(
                key=key_text(saved.key),
                bits=saved.bits,
                causes=_encode(saved.causes).decode(),
                minted=int(saved.minted),
                touched_at=saved.touched_at,
                parent=key_text(saved.key[:-1]),
            )
        )

    def delete_labels(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._store.drop_flow(key_text(key))


class KeptMarks:
    """`flows.Marks` on the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def any(self) -> bool:
        return self._store.any_marks()

    def load(self, principal: str) -> Iterable[Mark]:
        return [Mark(*row) for row in self._store.marks(principal)]

    def save(self, principal: str, marks: Sequence[Mark]) -> None:
        self._store.add_marks(principal, [(mark.server, mark.key, mark.receipt) for mark in marks])


class KeptPins:
    """`catalog.PinBook` on the store, for one authorization."""

    def __init__(self, store: Store, authorization: str = "") -> None:
        self._store = store
        self._authorization = authorization

    def pins(self, identity: str) -> list[SavedPin]:
        found = [
            SavedPin(row.tool, row.pin, row.definition, row.pending_definition, row.seen_at)
            for row in self._store.pins(identity, self._authorization)
        ]
        words = self._store.instructions(identity, self._authorization)
        if words is not None:
            found.append(SavedPin(INSTRUCTIONS, words.pin, words.text.encode(), words.pending_text.encode(), words.seen_at))
        return found

    def save_pins(self, identity: str, pins: Iterable[SavedPin]) -> None:
        with self._store.transaction():
            for saved in pins:
                self._save(identity, saved)

    def _save(self, identity: str, saved: SavedPin) -> None:
        state = "pending" if saved.pending else "accepted"
        if saved.tool == INSTRUCTIONS:
            text, pending = saved.definition.decode(), saved.pending.decode()
            self._store.put_instructions(
                InstructionsRow(
                    identity,
                    self._authorization,
                    state,
                    saved.pin,
                    text,
                    saved.seen_at,
                    pin.text_pin(pending) if pending else "",
                    pending,
                    saved.seen_at if pending else 0.0,
                )
            )
            return
        self._store.put_pin(
            PinRow(
                identity,
                self._authorization,
                saved.tool,
                state,
                saved.pin,
                saved.definition,
                pin.formula(saved.pin) if saved.pin else 0,
                saved.seen_at,
                _pending_pin(saved.pending),
                saved.pending,
                saved.seen_at if saved.pending else 0.0,
            )
        )

    def noise(self, identity: str) -> Sequence[str]:
        return self._store.noise(identity)

    def lost_at(self) -> float:
        loss = loss_of(self._store)
        return loss.at if loss is not None else 0.0


def _pending_pin(definition: bytes) -> str:
    if not definition or pin.ambiguity(definition) is not None:
        return ""
    return pin.pin(definition)


class CallValues(msgspec.Struct, frozen=True):
    """What an endorsement is bound to: a tool as pinned, and the steering values of its arguments. Of kind `call` the calls may
    run; of kind `source` what they return sets no label of strangers' text."""

    identity: str
    tool: str
    pin: str
    values_sha256: str
    text: str = ""


class KeptEndorsements:
    """`engine.Endorsements` on the store, with what is in force held in memory."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[Key, list[tuple[EndorsementRow, CallValues]]] = {}

    def any(self, key: Key) -> bool:
        for length in range(len(key), 0, -1):  # noqa: SIM110 (half the time of any() over a generator)
            if self._of(key[:length]):
                return True
        return False

    def grounds(self, key: Key) -> list[tuple[str, object, object, object]] | None:
        """What it stands on (`net.tracks`) that there is none at this key or above it; None where there is one."""
        if self.any(key):
            return None
        return [("item", self._known, key[:length], self._of(key[:length])) for length in range(1, len(key) + 1)]

    def covering(self, key: Key, server_identity: str, tool: str, pin: str, values_sha256: str) -> Endorsement | None:
        return self._find("call", key, (server_identity, tool, pin, values_sha256))

    def source(self, key: Key, server_identity: str, tool: str, pin: str, values_sha256: str) -> Endorsement | None:
        return self._find("source", key, (server_identity, tool, pin, values_sha256))

    def _find(self, kind: str, key: Key, wanted: tuple[str, str, str, str]) -> Endorsement | None:
        for length in range(len(key), 0, -1):
            for row, values in self._of(key[:length]):
                bound = (values.identity, values.tool, values.pin, values.values_sha256)
                if row.kind == kind and bound == wanted and (not row.expires or row.expires > self._clock()):
                    return Endorsement(row.receipt, values.text)
        return None

    def add(self, row: EndorsementRow) -> None:
        """Keep one; the caller has written its receipt."""
        self._store.put_endorsement(row)
        self._known.clear()

    def drop(self, row_id: str) -> bool:
        """Take one back."""
        self._known.clear()
        return self._store.drop_endorsement(row_id)

    def end(self, keys: Iterable[Key]) -> None:
        """Conversations are over, and what was endorsed in them with them."""
        for key in keys:
            for row in self.listed(key):
                self._store.drop_endorsement(row.id)
        self._known.clear()

    def listed(self, key: Key) -> list[EndorsementRow]:
        """Those of one conversation."""
        return self._store.endorsements(key_text(key), self._clock())

    def _of(self, key: Key) -> list[tuple[EndorsementRow, CallValues]]:
        known = self._known.get(key)
        if known is None:
            if len(self._known) > 10_000:
                self._known.clear()
            known = self._known[key] = [
                (row, msgspec.json.decode(row.values, type=CallValues))
                for row in self._store.endorsements(key_text(key), self._clock())
                if row.kind in ("call", "source")
            ]
        return known

"""The store in one SQLite file. See `base` for what the methods mean, `connection` for errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from earnest.store.base import (
    Alias,
    Approval,
    ApprovalState,
    Endorsement,
    Evidence,
    FlowRow,
    Head,
    InstructionsRow,
    Lock,
    OperatorLabel,
    PinRow,
    SavedPolicy,
    Server,
    lock_text,
)
from earnest.store.connection import Connection

Row = TypeVar("Row", bound=msgspec.Struct)

# Table and key of each kind of row. The columns of a table are the fields of its struct, by name.
_TABLES: Final[dict[type[msgspec.Struct], tuple[str, tuple[str, ...]]]] = {
    Server: ("servers", ("identity",)),
    PinRow: ("pins", ("identity", "authorization", "tool")),
    InstructionsRow: ("instructions", ("identity", "authorization")),
    OperatorLabel: ("operator_labels", ("identity", "tool")),
    Evidence: ("evidence", ("identity", "tool", "hint", "pin", "artefact")),
    FlowRow: ("flow_labels", ("key",)),
    Approval: ("approvals", ("id",)),
    Endorsement: ("endorsements", ("id",)),
    Alias: ("aliases", ("scope", "identity", "tool")),
    SavedPolicy: ("policies", ("name",)),
    Head: ("receipt_heads", ("writer",)),
}


def _columns(kind: type[msgspec.Struct]) -> str:
    return ", ".join(f'"{name}"' for name in kind.__struct_fields__)


def _upsert(kind: type[msgspec.Struct]) -> str:
    table, key = _TABLES[kind]
    rest = [name for name in kind.__struct_fields__ if name not in key]
    marks = ", ".join("?" for _ in kind.__struct_fields__)
    sets = ", ".join(f'"{name}" = excluded."{name}"' for name in rest)
    return f"INSERT INTO {table} ({_columns(kind)}) VALUES ({marks}) ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"


_SELECT: Final = {kind: f"SELECT {_columns(kind)} FROM {table}" for kind, (table, _) in _TABLES.items()}
_UPSERT: Final = {kind: _upsert(kind) for kind in _TABLES}
_FLOW: Final = (
    f"INSERT INTO flow_labels ({_columns(FlowRow)}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
    "bits = bits | excluded.bits, causes = excluded.causes, minted = max(minted, excluded.minted), "
    "announced = max(announced, excluded.announced), touched_at = max(touched_at, excluded.touched_at)"
)


class SqliteStore(Connection):
    """A `Store` in one SQLite file."""

    def _find(self, kind: type[Row], where: str, values: Sequence[Any]) -> list[Row]:
        return [kind(*row) for row in self.all(f"{_SELECT[kind]} {where}", values)]

    def _one(self, kind: type[Row], *key: str) -> Row | None:
        where = " AND ".join(f"{name} = ?" for name in _TABLES[kind][1])
        found = self._find(kind, f"WHERE {where}", key)
        return found[0] if found else None

    def _put(self, row: msgspec.Struct) -> None:
        self.run(_UPSERT[type(row)], msgspec.structs.astuple(row))

    def _insert(self, row: msgspec.Struct) -> None:
        self.run(_UPSERT[type(row)].partition(" ON CONFLICT ")[0], msgspec.structs.astuple(row))

    def meta(self, key: str) -> str:
        rows = self.all("SELECT value FROM meta WHERE key = ?", [key])
        return str(rows[0][0]) if rows else ""

    def set_meta(self, key: str, value: str) -> None:
        self.run(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [key, value],
        )

    # Servers, pins, labels, evidence

    def server(self, identity: str) -> Server | None:
        return self._one(Server, identity)

    def servers(self) -> list[Server]:
        return self._find(Server, "ORDER BY name, identity", ())

    def put_server(self, row: Server) -> None:
        self._put(row)

    def pin(self, identity: str, authorization: str, tool: str) -> PinRow | None:
        return self._one(PinRow, identity, authorization, tool)

    def pins(self, identity: str, authorization: str | None = None) -> list[PinRow]:
        where = "WHERE identity = ? AND (? IS NULL OR authorization = ?) ORDER BY authorization, tool"
        return self._find(PinRow, where, (identity, authorization, authorization))

    def put_pin(self, row: PinRow) -> None:
        self._put(row)

    def drop_pin(self, identity: str, authorization: str, tool: str) -> None:
        self.run(
            "DELETE FROM pins WHERE identity = ? AND authorization = ? AND tool = ?",
            [identity, authorization, tool],
        )

    def instructions(self, identity: str, authorization: str) -> InstructionsRow | None:
        return self._one(InstructionsRow, identity, authorization)

    def put_instructions(self, row: InstructionsRow) -> None:
        self._put(row)

    def operator_label(self, identity: str, tool: str) -> OperatorLabel | None:
        return self._one(OperatorLabel, identity, tool)

    def operator_labels(self, identity: str | None = None) -> list[OperatorLabel]:
        where = "WHERE ? IS NULL OR identity = ? ORDER BY identity, tool"
        return self._find(OperatorLabel, where, (identity, identity))

    def put_operator_label(self, row: OperatorLabel) -> None:
        self._put(row)

    def drop_operator_label(self, identity: str, tool: str) -> bool:
        sql = "DELETE FROM operator_labels WHERE identity = ? AND tool = ?"
        return self.run(sql, [identity, tool]).rowcount > 0

    def marks(self, principal: str) -> list[tuple[str, str, str]]:
        rows = self.all("SELECT server, object, receipt FROM marks WHERE principal = ?", [principal])
        return [(str(row[0]), str(row[1]), str(row[2])) for row in rows]

    def add_marks(self, principal: str, marks: Iterable[tuple[str, str, str]]) -> None:
        with self.transaction():
            for server, object, receipt in marks:
                self.run("INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?)", [principal, server, object, receipt])

    def any_marks(self) -> bool:
        return bool(self.all("SELECT 1 FROM marks LIMIT 1", []))

    def noise(self, identity: str) -> list[str]:
        return [
            str(row[0])
            for row in self.all("SELECT pattern FROM noise WHERE identity = ? ORDER BY 1", [identity])
        ]

    def add_noise(self, identity: str, pattern: str, now: float) -> None:
        self.run("INSERT OR IGNORE INTO noise VALUES (?, ?, ?)", [identity, pattern, now])

    def drop_noise(self, identity: str, pattern: str) -> bool:
        return (
            self.run("DELETE FROM noise WHERE identity = ? AND pattern = ?", [identity, pattern]).rowcount > 0
        )

    def evidence(self, identity: str, tool: str | None = None) -> list[Evidence]:
        where = "WHERE identity = ? AND (? IS NULL OR tool = ?) ORDER BY tool, hint, seen_at"
        return self._find(Evidence, where, (identity, tool, tool))

    def put_evidence(self, row: Evidence) -> None:
        self._put(row)

    def drop_evidence(self, identity: str, tool: str | None = None) -> int:
        sql = "DELETE FROM evidence WHERE identity = ? AND (? IS NULL OR tool = ?)"
        return self.run(sql, [identity, tool, tool]).rowcount

    # Labels of conversations

    def flow(self, key: str) -> FlowRow | None:
        return self._one(FlowRow, key)

    def flows(self) -> list[FlowRow]:
        return self._find(FlowRow, "ORDER BY key", ())

    def put_flow(self, row: FlowRow) -> None:
        self.run(_FLOW, msgspec.structs.astuple(row))

    def drop_flow(self, key: str) -> bool:
        return self.run("DELETE FROM flow_labels WHERE key = ?", [key]).rowcount > 0

    # Approvals and endorsements

    def approval(self, id: str) -> Approval | None:
        return self._one(Approval, id)

    def approvals(self, state: ApprovalState | None = None) -> list[Approval]:
        return self._find(Approval, "WHERE ? IS NULL OR state = ? ORDER BY created, id", (state, state))

    def ask(self, row: Approval) -> None:
        self._insert(row)

    def settle(
        self,
        id: str,
        state: Literal["approved", "denied", "withdrawn"],
        now: float,
        *,
        expires: float = 0.0,
        channel: str = "",
        by: str = "",
    ) -> bool:
        sql = (
            "UPDATE approvals SET state = ?1, decided = ?2, expires = CASE WHEN ?3 > 0 THEN ?3 ELSE expires END, "
            "channel = CASE WHEN ?4 <> '' THEN ?4 ELSE channel END, by = ?5 WHERE id = ?6 AND expires > ?2 AND "
            "(state = 'pending' OR (state = 'approved' AND ?1 = 'withdrawn'))"
        )
        return self.run(sql, [state, now, expires, channel, by, id]).rowcount == 1

    def take(self, id: str, now: float) -> bool:
        sql = "UPDATE approvals SET state = 'used' WHERE id = ? AND state = 'approved' AND expires > ?"
        return self.run(sql, [id, now]).rowcount == 1

    def take_for(self, lock: Lock, now: float) -> Approval | None:
        sql = (
            "UPDATE approvals SET state = 'used' WHERE id = (SELECT id FROM approvals WHERE lock = ? AND "
            f"state = 'approved' AND expires > ? ORDER BY decided, id LIMIT 1) RETURNING {_columns(Approval)}"
        )
        found = self.all(sql, [lock_text(lock), now])
        return Approval(*found[0]) if found else None

    def expire_approvals(self, now: float) -> list[str]:
        sql = "UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') AND expires <= ? RETURNING id"
        return sorted(str(row[0]) for row in self.all(sql, [now]))

    def endorsements(self, conversation: str, now: float) -> list[Endorsement]:
        where = "WHERE conversation = ? AND (expires = 0 OR expires > ?) ORDER BY created, id"
        return self._find(Endorsement, where, (conversation, now))

    def put_endorsement(self, row: Endorsement) -> None:
        self._put(row)

    def drop_endorsement(self, id: str) -> bool:
        return self.run("DELETE FROM endorsements WHERE id = ?", [id]).rowcount > 0

    def drop_endorsements(self) -> int:
        return self.run("DELETE FROM endorsements").rowcount

    # Names, configurations, policy, receipts

    def aliases(self, scope: str) -> list[Alias]:
        return self._find(Alias, "WHERE scope = ? ORDER BY alias", (scope,))

    def add_alias(self, row: Alias) -> None:
        self._insert(row)

    def approved_config(self, path: str) -> str:
        rows = self.all("SELECT sha256 FROM approved_configs WHERE path = ?", [path])
        return str(rows[0][0]) if rows else ""

    def approve_config(self, path: str, sha256: str, now: float) -> None:
        self.run("INSERT OR REPLACE INTO approved_configs VALUES (?, ?, ?)", [path, sha256, now])

    def policy(self, name: str = "policy") -> SavedPolicy | None:
        return self._one(SavedPolicy, name)

    def put_policy(self, row: SavedPolicy) -> None:
        self._put(row)

    def drop_policy(self, name: str = "policy") -> bool:
        return self.run("DELETE FROM policies WHERE name = ?", [name]).rowcount > 0

    def head(self, writer: str) -> Head | None:
        return self._one(Head, writer)

    def heads(self) -> list[Head]:
        return self._find(Head, "ORDER BY writer", ())

    def put_head(self, row: Head) -> None:
        self._put(row)


def open_store(path: str, *, read_only: bool = False, busy_s: float = 2.0) -> SqliteStore:
    """Open the store at `path`, making it where there is none unless `read_only`."""
    return SqliteStore(path, read_only=read_only, busy_s=busy_s)

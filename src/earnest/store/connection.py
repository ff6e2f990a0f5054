"""One SQLite file: opening it, bringing it up to date, and telling in plain words what is wrong with it.

WAL, so that readers in other processes never wait for the writer. `synchronous=FULL`, because an approval
that was used must not be unused after a power cut; labels and pins change seldom enough for that to cost
nothing that matters.

Errors: E1400 SQLite says something unforeseen, E1401 the folder or file cannot be opened, E1402 there is no
store to read, E1403 the store is newer than this earnest, E1404 the file is no store of earnest's, E1405
the disk is full, E1406 another process holds the store, E1407 the store is damaged, E1408 the store may
only be read here, E1409 a row with this key is there already.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any, Final
from urllib.parse import quote

from earnest.core.errors import EarnestError

APPLICATION: Final = 0x6561726E
"""SQLite's `application_id` of a store: "earn"."""

_EPOCH_BYTES: Final = 16


def migrations() -> list[tuple[int, str, str]]:
    """The steps that this earnest knows: number, name, SQL; in order."""
    found = []
    for file in resources.files("earnest.store.migrations").iterdir():
        number, _, name = file.name.partition("_")
        if number.isdecimal() and name.endswith(".sql"):
            found.append((int(number), name.removesuffix(".sql"), file.read_text(encoding="utf-8")))
    return sorted(found)


def explain(error: sqlite3.Error, path: str) -> EarnestError:
    """What an error of SQLite's means for a person."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL or (
        primary == sqlite3.SQLITE_IOERR and "disk" in str(error) and _full(path)
    ):
        return EarnestError(
            "E1405", f"the disk is full: {path} cannot be written", "Free some space; calls wait for it."
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return EarnestError(
            "E1406", f"another process holds the store {path}", "Try again, or end that process."
        )
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return EarnestError(
            "E1407", f"the store {path} is damaged ({error})",
            "Put a backup in its place, or move it away; either way it then counts as lost (`earnest doctor`).",
        )  # fmt: skip
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return EarnestError("E1408", f"the store {path} may only be read here")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return EarnestError(
            "E1401", f"the store {path} cannot be opened", "Look at the folder and its permissions."
        )
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return EarnestError("E1409", f"the store has such a row already ({error})")
    return EarnestError("E1400", f"the store {path}: {error}")


def _full(path: str) -> bool:
    try:
        space = os.statvfs(os.path.dirname(path) or ".")
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < 1 << 20


class Connection:
    """An open store: statements and transactions, with errors in plain words. Used by one thread at a
    time."""

    def __init__(
        self,
        path: str,
        *,
        read_only: bool = False,
        busy_s: float = 2.0,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Open, make and bring up to date the store at `path`. Raises E1400 to E1407."""
        self.path = path
        self.made = False
        """Whether the store was made just now."""
        self.on_change: Callable[[int], None] | None = None
        """Told, after each commit, how often what may not be forgotten has changed."""
        self._depth = 0
        self._written = 0
        if read_only and not os.path.exists(path):
            raise EarnestError("E1402", f"there is no store at {path}", "Start earnest once: `earnest run`.")
        if not read_only:
            self._make()
        mode = "ro" if read_only else "rwc"
        try:
            self._db = sqlite3.connect(
                f"file:{quote(path)}?mode={mode}", uri=True, timeout=busy_s, isolation_level=None,
                check_same_thread=False,
            )  # fmt: skip
        except sqlite3.Error as error:
            raise explain(error, path) from None
        try:
            self._check()
            if not read_only:
                self.run("PRAGMA journal_mode=WAL")
                self.run("PRAGMA synchronous=FULL")
                self._migrate(entropy)
            self.epoch = str(self._scalar("SELECT value FROM meta WHERE key = 'epoch'"))
        except BaseException:
            self._db.close()
            raise

    def _make(self) -> None:
        # Made by hand, so that at no time anybody else may read it.
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            full = error.errno == 28
            text = f"the store {self.path} cannot be made: {error.strerror}"
            raise EarnestError(
                "E1405" if full else "E1401", text, "Look at the folder and its permissions."
            ) from None

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._db.close()

    def run(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute one statement."""
        try:
            found = self._db.execute(sql, values)
        except sqlite3.Error as error:
            raise explain(error, self.path) from None
        self._tell()
        return found

    def _tell(self) -> None:
        db = self._db
        if self.on_change is not None and db.total_changes != self._written and not db.in_transaction:
            self._written = db.total_changes
            self.on_change(self.changes)

    @property
    def changes(self) -> int:
        """How often what may not be forgotten has changed."""
        return int(self._db.execute("SELECT n FROM changes").fetchone()[0])

    def fold(self) -> None:
        """Write the log of changes into the file itself."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of one statement, as tuples."""
        try:
            found = self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self.path) from None
        self._tell()
        return found

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inside another one it is part of that."""
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        self.run("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        finally:
            self._depth = 0

    def _scalar(self, sql: str) -> Any:
        rows = self.all(sql)
        return rows[0][0] if rows else ""

    def _check(self) -> None:
        """Refuse what is no store, or one of a newer earnest, before anything is written to it."""
        newest = migrations()[-1][0]
        version, application = self._scalar("PRAGMA user_version"), self._scalar("PRAGMA application_id")
        tables = self._scalar("SELECT count(*) FROM sqlite_master")
        if application != APPLICATION and (application or version or tables):
            raise EarnestError("E1404", f"{self.path} is a database, but no store of earnest's")
        if version > newest:
            raise EarnestError(
                "E1403", f"the store {self.path} is at version {version}; this earnest knows {newest}",
                "Use the newer earnest that wrote it.",
            )  # fmt: skip

    def _migrate(self, entropy: Callable[[int], bytes]) -> None:
        steps = migrations()
        if self._scalar("PRAGMA user_version") == steps[-1][0]:
            return
        with self.transaction():
            # Another process may have done it while this one waited for the lock.
            self._check()
            version = self._scalar("PRAGMA user_version")
            self.made = not version
            for number, _, sql in steps:
                if number > version:
                    for statement in statements(sql):
                        self.run(statement)
            if not version:
                self.run("INSERT INTO meta VALUES ('epoch', ?)", [entropy(_EPOCH_BYTES).hex()])
            self.run(f"PRAGMA application_id={APPLICATION}")
            self.run(f"PRAGMA user_version={steps[-1][0]}")


def statements(sql: str) -> Iterator[str]:
    """The statements of a script, one by one, because SQLite's own way of running a script commits first."""
    held = ""
    for part in sql.splitlines(keepends=True):
        held += part
        if sqlite3.complete_statement(held):
            yield held
            held = ""
    if held.strip():
        yield held

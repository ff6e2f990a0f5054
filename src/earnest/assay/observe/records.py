"""Files as records: what stands in them, whatever the bytes are.

A file is read as a multiset of records, each with an area (a table, a key, `lines`). Two states of a file are compared by
records: what is gone from the multiset was lost, what is new was added. So a file that is written anew with keys in another
order, or a database page that moved, is no loss, and a changed row is. Records are compared masked (`masks`) and as they are:
a difference that masking takes away is only volatile.
"""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from earnest.assay.observe import office
from earnest.assay.observe.masks import masked, masked_value

Record = tuple[str, str]
"""Area, and content as text."""

MAX_RECORDS: Final = 200_000
_SQLITE: Final = b"SQLite format 3\x00"
_IDENTITY: Final = (
    "id",
    "_id",
    "uuid",
    "key",
    "type",
    "name",
    "path",
    "slug",
    "title",
    "from",
    "to",
    "relationType",
    "entityName",
)
_DEPTH: Final = 40


class Difference(msgspec.Struct, frozen=True):
    """How the records of one file differ. `volatile`: only moments, durations and random names do. `prefix`: the old bytes
    stand at the front of the new ones."""

    gone: tuple[Record, ...]
    new: tuple[Record, ...]
    volatile: bool
    prefix: bool

    @property
    def lost(self) -> bool:
        """Whether something that stood there is gone, and not only the look of it."""
        gone, new = Counter(area for area, _ in self.gone), Counter(area for area, _ in self.new)
        weighty = (area for area in gone if not area.endswith(office.LOOK))
        return any(not area.endswith(office.NAME) or gone[area] > new[area] for area in weighty)

    @property
    def areas(self) -> tuple[str, ...]:
        """The areas that changed, sorted."""
        return tuple(sorted({area for area, _ in (*self.gone, *self.new)}))


def difference(before: bytes, after: bytes, *, wal_before: bytes = b"", wal_after: bytes = b"") -> Difference:
    """How two states of one file differ; `wal_*` is SQLite's write-ahead log beside it."""
    lines = _json_lines(before) or _json_lines(after)
    old, new = _read(before, wal_before, lines), _read(after, wal_after, lines)
    if (old[0] != new[0]) and before and after:  # of another form than it was: as text, or as bytes
        old, new = _plain(before), _plain(after)
    old_raw, new_raw = old[1], new[1]
    old_masked, new_masked = _masked(old_raw), _masked(new_raw)
    gone, added = old_masked - new_masked, new_masked - old_masked
    volatile = not gone and not added and old_raw != new_raw
    return Difference(tuple(gone), tuple(added), volatile, after.startswith(before))


def records(content: bytes, wal: bytes = b"") -> Counter[Record]:
    """The records of one file."""
    return _read(content, wal)[1]


def _masked(raw: Counter[Record]) -> Counter[Record]:
    found: Counter[Record] = Counter()
    for record, n in raw.items():
        found[_mask(record)] += n
    return found


def _mask(record: Record) -> Record:
    return masked(record[0]), masked(record[1])


def _read(content: bytes, wal: bytes, lines: bool = False) -> tuple[str, Counter[Record]]:
    if content.startswith(_SQLITE) or (not content and wal):
        rows = _rows(content, wal)
        if rows is not None:
            return "sqlite", rows
    if content.startswith(b"PK\x03\x04"):
        members = _members(content)
        if members is not None:
            return "zip", members
    stripped = content.lstrip()
    if stripped[:1] in (b"{", b"["):
        leaves = _json(content, lines)
        if leaves is not None:
            return "json", leaves
    return _plain(content)


def _plain(content: bytes) -> tuple[str, Counter[Record]]:
    if not content:
        return "lines", Counter()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return "bytes", Counter({("bytes", _summary(content)): 1})
    lines = Counter(("lines", line.rstrip()) for line in text.splitlines()[:MAX_RECORDS] if line.strip())
    return "lines", lines


def _summary(content: bytes) -> str:
    return f"{len(content)} bytes, {hashlib.sha256(content).hexdigest()[:16]}"


def _json_lines(content: bytes) -> bool:
    """Whether there is a JSON value on each of several lines. One line may be either: it is what the other state is."""
    first, _, rest = content.strip().partition(b"\n")
    if not rest.strip() or first[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(first)
    except msgspec.MsgspecError:
        return False
    return True


def _json(content: bytes, lines: bool) -> Counter[Record] | None:
    """Leaves of one JSON value, or of a value on each line."""
    if not lines:
        try:
            return Counter(_leaves(msgspec.json.decode(content), "", 0))
        except (msgspec.MsgspecError, RecursionError):
            pass
    found: Counter[Record] = Counter()
    try:
        for line in content.splitlines()[:MAX_RECORDS]:
            if line.strip():
                found.update(_leaves([msgspec.json.decode(line)], "", 0))
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found


def _leaves(value: Any, path: str, depth: int) -> Iterator[Record]:
    if depth > _DEPTH:
        yield path, repr(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}", depth + 1)
        if not value and path:
            yield path, "{}"
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, f"{path}[{_identity(item)}]", depth + 1)
    else:
        yield path, repr(value)


def _identity(item: Any) -> str:
    """What tells an element of a list from its siblings: where it stands is no part of it."""
    if not isinstance(item, dict):
        return ""
    for key in ("id", "_id", "uuid"):
        if isinstance(item.get(key), str | int):
            return f"{key}={item[key]}"
    return ",".join(f"{key}={item[key]}" for key in _IDENTITY if isinstance(item.get(key), str | int))


def _rows(content: bytes, wal: bytes) -> Counter[Record] | None:
    """Rows of a copy of a database, with what stands in its write-ahead log."""
    with tempfile.TemporaryDirectory(prefix="rows-") as folder:
        path = os.path.join(folder, "copy.db")
        for name, data in ((path, content), (path + "-wal", wal)):
            if data:
                with open(name, "wb") as file:
                    file.write(data)
        try:
            database = sqlite3.connect(path)
        except sqlite3.Error:
            return None
        try:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            return _tables(database)
        except sqlite3.Error:
            return None
        finally:
            database.close()


def _tables(database: sqlite3.Connection) -> Counter[Record]:
    found: Counter[Record] = Counter()
    left = MAX_RECORDS
    schema = database.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
    virtual = {name for kind, name, sql in schema if kind == "table" and str(sql).upper().startswith("CREATE VIRTUAL")}
    for kind, name, sql in schema:
        if str(name).startswith("sqlite_"):
            continue
        found[f"schema {name}", str(sql)] += 1
        shadow = any(str(name).startswith(f"{one}_") for one in virtual)
        if kind != "table" or name in virtual or shadow:
            continue
        columns = len(database.execute(f'PRAGMA table_info("{str(name).replace(chr(34), chr(34) * 2)}")').fetchall())
        if not columns:
            continue
        quoted = str(name).replace('"', '""')
        for row in database.execute(f'SELECT * FROM "{quoted}" LIMIT {max(left, 0)}'):
            found[str(name), repr(tuple(masked_value(v) if isinstance(v, float) else v for v in row))] += 1
            left -= 1
    return found


def _members(content: bytes) -> Counter[Record] | None:
    """Members of an archive; of an office document what stands in it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()[:2000]
            if sum(archive.getinfo(name).file_size for name in names) > 64 << 20:
                return None
            if office.is_package(names):
                return Counter(office.records(archive, names))
            return Counter((name, _summary(archive.read(name))) for name in names)
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, NotImplementedError, UnicodeDecodeError, KeyError):
        return None

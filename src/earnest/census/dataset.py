"""The dataset: three tables as JSON Lines and Parquet, with `dataset.json` beside them. DuckDB writes and reads Parquet."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from earnest import __version__
from earnest.census.record import Record
from earnest.census.rows import rows
from earnest.census.schema import TABLES, VERSION
from earnest.core.errors import EarnestError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ABOUT: Final = "dataset.json"
_ENCODER: Final = msgspec.json.Encoder()
_MEMORY: Final = "2GB"
_AGAIN: Final = "Make it again from the records of its run: earnest census dataset RUN --out DIR."


class Dataset(msgspec.Struct, frozen=True):
    """What a dataset says of itself. `cohorts`: servers in each; `sha256`: of the Parquet files by table."""

    schema: int
    earnest: str
    cohorts: dict[str, int]
    tools: int
    findings: int
    begun: str
    ended: str
    sha256: dict[str, str]


def write(records: Iterable[Record], out: Path, *, parquet: bool = True) -> Dataset:
    """Make a dataset of records. Raises E1915 where DuckDB is not installed, E1904 where there is no record."""
    with _making(out) as fresh:
        made = _write(records, fresh, parquet)
        for path in sorted(fresh.iterdir(), key=lambda one: one.name == ABOUT):  # what speaks of the others comes last
            path.replace(out / path.name)
    return made


def _write(records: Iterable[Record], out: Path, parquet: bool) -> Dataset:
    cohorts: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    times: list[str] = []
    files = {name: (out / f"{name}.jsonl").open("wb") for name in TABLES}
    try:
        for record in records:
            made = rows(record)
            cohorts[record.cohort] += 1
            if record.recorded:
                times.append(record.recorded)
            for name, some in (("servers", [made.server]), ("tools", made.tools), ("findings", made.findings)):
                counts[name] += len(some)
                files[name].writelines(_ENCODER.encode(row) + b"\n" for row in some)
    finally:
        for file in files.values():
            file.close()
    if not cohorts:
        raise EarnestError("E1904", "there is no record to make a dataset of", "`earnest census run` makes records.")
    if parquet:
        _to_parquet(out)
    digests = {name: hashlib.sha256((out / f"{name}.parquet").read_bytes()).hexdigest() for name in TABLES if parquet}
    about = Dataset(
        schema=VERSION,
        earnest=__version__,
        cohorts=dict(sorted(cohorts.items())),
        tools=counts["tools"],
        findings=counts["findings"],
        begun=min(times, default=""),
        ended=max(times, default=""),
        sha256=digests,
    )
    (out / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n")
    return about


@contextmanager
def _making(out: Path) -> Iterator[Path]:
    """A folder to make a dataset in, so that the one that is there stays whole until the new one is. One at a time."""
    out.mkdir(parents=True, exist_ok=True)
    fresh = out / ".making"
    holder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        shutil.rmtree(fresh, ignore_errors=True)  # of one that was killed
        fresh.mkdir()
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        os.close(holder)


def about(folder: Path) -> Dataset:
    """What a dataset says of itself. Raises E1904 for a folder that is none."""
    try:
        return msgspec.json.decode((folder / ABOUT).read_bytes(), type=Dataset)
    except (OSError, msgspec.MsgspecError) as error:
        raise EarnestError(
            "E1904", f"{folder} is no dataset: {error}", "`earnest census run` makes one in its folder `dataset`."
        ) from None


def connect() -> DuckDBPyConnection:
    """A DuckDB in memory that reaches no network and loads no extension. Raises E1915 where it is not installed."""
    try:
        import duckdb
    except ImportError:
        raise EarnestError("E1915", "DuckDB is not installed", "pip install 'earnest[census]'") from None
    return duckdb.connect(
        config={
            "memory_limit": _MEMORY,
            "threads": 2,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )


@contextmanager
def opened(folder: Path, earlier: Path | None = None) -> Iterator[DuckDBPyConnection]:
    """A connection with the views `servers`, `tools`, `findings`; with `earlier`, also `earlier_servers` and so on.

    Reads Parquet, else JSON Lines. Raises E1904 for what cannot be read, or has other columns than `schema`; E1915.
    """
    connection = connect()
    import duckdb

    try:
        for prefix, place in (("", folder), ("earlier_", earlier)):
            if place is None:
                continue
            if (version := about(place).schema) != VERSION:
                told = f"{place} is a dataset of schema {version}, this earnest reads {VERSION}"
                raise EarnestError("E1904", told, _AGAIN)
            for name in TABLES:
                _view(connection, f"{prefix}{name}", place, name)
        yield connection
    except duckdb.Error as error:
        told = str(error).partition("\n")[0]
        raise EarnestError("E1904", f"the dataset cannot be read: {told}", _AGAIN) from None
    finally:
        connection.close()


def _view(connection: DuckDBPyConnection, view: str, folder: Path, table: str) -> None:
    parquet, lines = folder / f"{table}.parquet", folder / f"{table}.jsonl"
    if parquet.exists():
        source = f"read_parquet({_quoted(parquet)})"
    elif lines.exists():
        source = _lines(lines, table)
    else:
        raise EarnestError("E1904", f"{folder} has neither {parquet.name} nor {lines.name}")
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {source}")
    there = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {view}").fetchall()}
    odd = [name for name, (kind, _) in TABLES[table].items() if there.get(name) != kind]
    if odd:
        raise EarnestError("E1904", f"{folder}: the table {table} has no such column as {', '.join(odd)}", _AGAIN)


def _to_parquet(out: Path) -> None:
    connection = connect()
    try:
        for table in TABLES:
            target = _quoted(out / f"{table}.parquet")
            connection.execute(
                f"COPY (SELECT * FROM {_lines(out / f'{table}.jsonl', table)}) TO {target} "
                "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)"
            )
    finally:
        connection.close()


def _lines(path: Path, table: str) -> str:
    columns = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, (kind, _) in TABLES[table].items())
    return f"read_json({_quoted(path)}, format = 'newline_delimited', columns = {{{columns}}}, maximum_object_size = 268435456)"


def _quoted(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"

"""Figures of a dataset: the queries of `queries/`, each with its title and what it says of itself.

A query is plain SQL over the views `servers`, `tools`, `findings` (and `earlier_…`), so that DuckDB alone reproduces it:
`CREATE VIEW tools AS FROM 'tools.parquet'`. Its first comment line is its title, the rest of the comment explains it; its first
column is the cohort.
"""

from __future__ import annotations

import difflib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from earnest.core.errors import EarnestError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Query(msgspec.Struct, frozen=True):
    """One query of the repository."""

    name: str
    title: str
    about: str
    sql: str

    @property
    def needs_earlier(self) -> bool:
        """Whether it compares two datasets."""
        return "earlier_" in self.sql


class Figures(msgspec.Struct, frozen=True):
    """What a query answered: column names, and rows in its order."""

    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def dicts(self, cohort: str | None = None) -> list[dict[str, Any]]:
        """Rows by column name; of one cohort, if one is named."""
        found = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return found if cohort is None else [row for row in found if row["cohort"] == cohort]


def queries() -> dict[str, Query]:
    """All queries by name."""
    found: dict[str, Query] = {}
    for entry in sorted(files("earnest.census.queries").iterdir(), key=lambda one: one.name):
        if entry.name.endswith(".sql"):
            sql = entry.read_text("utf-8")
            head = [line.removeprefix("--").strip() for line in sql.splitlines() if line.startswith("--")]
            name = entry.name.removesuffix(".sql")
            found[name] = Query(name, head[0].rstrip("."), " ".join(head[1:]), sql)
    return found


def query(name: str) -> Query:
    """The query of this name. Raises E1018, with the nearest, for one that does not exist."""
    known = queries()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        raise EarnestError(
            "E1018", f"there is no query {name!r}", f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
        )
    return known[name]


def figures(connection: DuckDBPyConnection, one: Query) -> Figures:
    """The answer of a query."""
    answer = connection.execute(one.sql)
    columns = tuple(column[0] for column in answer.description or ())
    return Figures(one.name, columns, tuple(tuple(row) for row in answer.fetchall()))

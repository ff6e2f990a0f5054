"""Which INSERT adds rows and does nothing else, as far as its text can say.

Theory. What an INSERT does is settled by its target as much as by its words. Tables of SQLite's full text search take commands
as rows (`INSERT INTO docs(docs) VALUES('delete-all')`), their shadow tables are their index, a catalogue's rows are the schema,
a job table's rows are programs. So the statement must be of one plain form, matched as text and not by a parser's opinion, and
its target must look like a table that a person made: no schema but a database's first one, no name or column that a system,
a virtual table or a shadow of one has. What a database's owner hung on a table (triggers, conflict clauses, defaults that call
functions) is his, and no text shows it.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"""(?:[A-Za-z_][A-Za-z0-9_]{0,127}|"[A-Za-z_][A-Za-z0-9_]{0,127}"|`[A-Za-z_][A-Za-z0-9_]{0,127}`)"""
_LITERAL: Final = r"(?:'(?:[^']|'')*'|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[xX]'[0-9A-Fa-f]*'|NULL|TRUE|FALSE)"
_ROW: Final = rf"\(\s*{_LITERAL}(?:\s*,\s*{_LITERAL})*\s*\)"
_PLAIN: Final = re.compile(
    rf"\s*INSERT\s+INTO\s+(?:(?P<schema>{_NAME})\.)?(?P<table>{_NAME})\s*\(\s*(?P<columns>{_NAME}(?:\s*,\s*{_NAME})*)\s*\)"
    rf"\s*VALUES\s*{_ROW}(?:\s*,\s*{_ROW})*\s*;?\s*",
    re.IGNORECASE,
)
_QUOTES: Final = '"`'

_FIRST_SCHEMAS: Final = frozenset(("", "main", "temp", "public"))
"""Schemas that a database starts with and whose tables its users make."""

_SYSTEM_SCHEMAS: Final = frozenset(
    ("pg_catalog", "pg_toast", "pg_temp", "information_schema", "performance_schema", "mysql", "sys", "sqlite", "crdb_internal",
     "cron", "net", "auth", "vault", "pgagent", "system")
)  # fmt: skip
"""Schemas whose tables are the database's own, or make it do something."""

_SYSTEM_PREFIXES: Final = ("sqlite_", "pg_", "pragma_", "sys_", "mysql_", "innodb_", "crdb_")
_SYSTEM_TABLES: Final = frozenset(("dbstat", "fsdir", "zipfile", "completion", "information_schema", "spatial_ref_sys", "dual"))

_SHADOWS: Final = re.compile(
    r".*_(?:data|idx|content|docsize|config|segments|segdir|stat|node|rowid|rowids|parent|vocab|chunks|info|auxiliary"
    r"|metadatachunks\d*|metadatatext\d*|vector_chunks\d*)"
)
"""Tables that full text, spatial and vector indexes of SQLite keep for themselves, by their last parts."""

_HIDDEN_COLUMNS: Final = frozenset(("rank", "command", "rowid", "_rowid_", "oid", "docid", "langid", "schema", "arg", "pgno"))
"""Columns by which virtual tables take commands or a caller names the row."""


def is_system(schema: str, table: str) -> bool:
    """Whether a table is a database's own. Names in any letters, without quotes."""
    table = table.casefold()
    return schema.casefold() in _SYSTEM_SCHEMAS or table.startswith(_SYSTEM_PREFIXES) or table in _SYSTEM_TABLES


def ordinary_table(schema: str, table: str) -> bool:
    """Whether a table looks like one that a person made for rows of his own. Names in any letters, without quotes."""
    return schema.casefold() in _FIRST_SCHEMAS and not is_system(schema, table) and _SHADOWS.fullmatch(table.casefold()) is None


def plain_insert(text: str) -> str:
    """Why an INSERT may do more than add rows; empty if it is `INSERT INTO name (columns) VALUES (literals), …`."""
    found = _PLAIN.fullmatch(text)
    if found is None:
        return "is no plain INSERT of literals into named columns"
    schema, table = ((found[part] or "").strip(_QUOTES).casefold() for part in ("schema", "table"))
    if not ordinary_table(schema, table):
        return "adds to a table that may be a system's or an index's own"
    for column in found["columns"].split(","):
        name = column.strip().strip(_QUOTES).casefold()
        if name == table or name in _HIDDEN_COLUMNS:
            return f"names the column {name}, by which a virtual table takes commands"
    return ""

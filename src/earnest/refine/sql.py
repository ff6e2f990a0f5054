"""An argument that is SQL.

Theory. A parser that reads more dialects than one reads some text otherwise than the server does, so a text
is believed to be a read only if nothing in it can be read two ways: one statement, from a list of node kinds
that read, with functions from a list, with no comment that some server executes, and no text that ends a
string or a comment in one dialect and not in another. What is not on the lists is worst, not merely a write:
an unknown function may do anything (`pg_terminate_backend()` looks like any other), reach files
(`pg_read_file`) or the network (`dblink`).

Statements that change or remove are destructive. A plain INSERT of literals (`sql_adds`) or a CREATE TABLE is additive, and
never read-only. Views, triggers and operators that a database's owner defined are his; nobody can see them from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from earnest.core.profile import Labels
from earnest.refine.refinement import WORST_LABELS, Refinement
from earnest.refine.sql_adds import is_system, ordinary_table, plain_insert
from earnest.refine.sql_lists import (
    ADDITIVE_NODES,
    CLAUSES,
    FILE_TABLES,
    FUNCTION_NODES,
    FUNCTIONS,
    READING_NODES,
    READING_PRAGMAS,
    SEQUENCE_COLUMNS,
    STATEMENT_WORDS,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

DIALECTS: Final = ("sqlite", "postgres", "mysql")
"""The dialects in which a statement can be seen to read. In others a statement may begin without a separator (T-SQL), or
a table name may be a file or an address (DuckDB); there, and where the dialect is not known, all of these must agree."""

_LONGEST: Final = 64 * 1024
"""Characters; a longer statement is not looked at, parsing is slow."""

_DOUBTFUL: Final = (
    (re.compile(r"[^\x20-\x7e\t\n\r\u0080-\U0010ffff]|[\x7f-\xa0\u2028\u2029\ufeff]"), "a control character"),
    (re.compile(r"\r(?!\n)"), "a lone carriage return"),
    (re.compile(r"/\*M?!|/\*\+|--\+", re.IGNORECASE), "a comment that a server may execute"),
    (re.compile(r"--(?![ \t\r\n]|$)"), "a comment that is one in some dialects only"),
    (re.compile(r"/\*(?:(?!\*/).)*/\*", re.DOTALL), "a comment in a comment"),
    (re.compile(r"\\['\"`]"), "a backslash before a quote"),
    (re.compile(r"#|\$\w*\$"), "a sign that quotes or comments in some dialects only"),
)


class SqlRule(msgspec.Struct, frozen=True):
    """Which argument is SQL, in which dialect (empty if not known), and names of further functions that only read."""

    argument: str
    dialect: str = ""
    functions: tuple[str, ...] = ()
    source: str = ""


def look(rule: SqlRule, arguments: Mapping[str, Any]) -> Refinement:
    """What the statement says. Absent or unreadable text is worst."""
    text = arguments.get(rule.argument)
    if not isinstance(text, str):
        return Refinement(_said(WORST_LABELS, rule), f"{rule.argument} is no SQL text")
    labels, why = judge(text, rule.dialect, frozenset(name.lower() for name in rule.functions))
    return Refinement(_said(labels, rule), f"{rule.argument} {why}")


def judge(text: str, dialect: str, functions: frozenset[str] = frozenset()) -> tuple[Labels, str]:
    """Labels for one text, and why. `functions`: further function names, in lower case, known to read only."""
    if len(text) > _LONGEST:
        return WORST_LABELS, f"is longer than {_LONGEST} characters"
    for pattern, what in _DOUBTFUL:
        if pattern.search(text):
            return WORST_LABELS, f"holds {what}"
    trees = [_parsed(text, name) for name in ((dialect,) if dialect in DIALECTS else DIALECTS)]
    first = trees[0]
    if first is None or any(_shape(tree) != _shape(first) for tree in trees):
        return WORST_LABELS, "cannot be read as one statement"
    try:
        if dialect not in DIALECTS and (doubt := _bare_call(first, dialect)):
            return WORST_LABELS, doubt
        return _classified(first, text, functions)
    except RecursionError:
        return WORST_LABELS, "is nested too deep"


def _parsed(text: str, dialect: str) -> Expr | None:
    """The one statement of a text; `None` if it is not exactly one, or not understood."""
    import logging

    import sqlglot  # takes a tenth of a second, so not before the first query

    # It warns of syntax it does not know by printing the query, which is no text for a log.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        found = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None
    return found[0] if len(found) == 1 else None


def _bare_call(tree: Expr, dialect: str) -> str:
    """Why a name may be a call: some databases (Oracle) call a function of a package by its name alone."""
    from sqlglot import exp

    if dialect.lower() in ("oracle", "plsql"):
        return "is of a dialect in which a bare name may be a call"
    known = {name.lower() for table in tree.find_all(exp.Table) for name in (table.alias, table.name)}
    known |= {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
    if "dual" in known:
        return "selects from dual, where a name is most often a call"
    for column in tree.find_all(exp.Column):
        if column.table and column.table.lower() not in known:
            return f"names {column.table.lower()}, which is no table of the statement"
    return ""


def _shape(tree: Expr | None) -> str:
    """A tree as text, without where its dialect sorts nulls, which no effect depends on."""
    return re.sub(r",\s*nulls_first=(?:True|False)", "", repr(tree))


_READS: Final = Labels(read_only=True)
_ADDS: Final = Labels(read_only=False, destructive=False, idempotent=False)
_CHANGES: Final = Labels(read_only=False, destructive=True)

_CHANGING_NODES: Final = frozenset(("Update", "Delete", "Drop", "TruncateTable", "Merge"))
_BEGINS_A_QUERY: Final = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:SELECT|WITH)\b", re.IGNORECASE | re.DOTALL)


def _classified(tree: Expr, text: str, functions: frozenset[str]) -> tuple[Labels, str]:
    from sqlglot import exp

    if isinstance(tree, exp.Pragma):
        return (_READS, "reads the schema") if _reading_pragma(tree) else (WORST_LABELS, "sets a pragma")
    root = type(tree).__name__
    if isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        if not _BEGINS_A_QUERY.match(text):
            return WORST_LABELS, "is no query that begins with SELECT or WITH"
        unknown = _unknown_node(tree, text, functions, READING_NODES)
        return (_READS, "only reads") if unknown is None else (WORST_LABELS, f"uses {unknown}")
    if root == "Insert":
        doubt = plain_insert(text)
        return (_ADDS, "adds rows") if not doubt else (WORST_LABELS, doubt)
    unknown = _unknown_node(tree, text, functions, READING_NODES | ADDITIVE_NODES | {root} & _CHANGING_NODES)
    if unknown is not None:
        return WORST_LABELS, f"uses {unknown}"
    tables = [(table.db, table.name) for table in tree.find_all(exp.Table)]
    if root == "Create" and str(tree.args.get("kind")).upper() == "TABLE" and tree.args.get("expression") is None:
        if tree.args.get("replace"):
            return _CHANGES, "may replace a table"
        if all(ordinary_table(*table) for table in tables):
            return _ADDS, "adds a table"
    if root in _CHANGING_NODES and not any(is_system(*table) for table in tables):
        return _CHANGES, {"Update": "changes rows", "Merge": "changes rows"}.get(root, "deletes")
    return WORST_LABELS, f"uses {root}"


def _reading_pragma(tree: Expr) -> bool:
    """`PRAGMA table_info(x)`; sqlglot reads the call form and the `=` form alike, and for these so does SQLite."""
    from sqlglot import exp

    said = tree.this
    plain = all(type(node) in (exp.Pragma, exp.EQ, exp.Var, exp.Column, exp.Identifier, exp.Literal) for node in tree.walk())
    name = said.this if isinstance(said, exp.EQ) else said
    return plain and name is not None and name.name.lower() in READING_PRAGMAS


def _unknown_node(tree: Expr, text: str, functions: frozenset[str], known: frozenset[str]) -> str | None:
    """The first node, named for a person, that is not on the lists."""
    from sqlglot import exp

    for node in tree.walk():
        name = type(node).__name__
        if isinstance(node, exp.Anonymous):
            called = str(node.this).lower()
            if called not in FUNCTIONS | functions:
                return f"the function {called}"
        elif name not in known and name not in FUNCTION_NODES:
            return f"the function {node.sql_name().lower()}" if isinstance(node, exp.Func) else name
        allowed = CLAUSES.get(name)
        if allowed is not None:
            for clause, inside in node.args.items():
                if inside and clause not in allowed:
                    return f"{name} with {clause.strip('_')}"
        # A name in quotes may be somebody's own function, in letters that the parser folds.
        if isinstance(node, exp.Func) and text[node.meta.get("start", 0)] in '"`[':
            return "a function with its name in quotes"
        if isinstance(node, exp.DataType) and node.this is exp.DataType.Type.USERDEFINED:
            return "a type of the database's own"
        if isinstance(node, exp.Identifier):
            if not node.quoted and node.name.upper() in STATEMENT_WORDS:
                return f"the word {node.name.upper()} as a name"
            if isinstance(node.parent, exp.Table) and re.search(r"[/\\:.]", node.name):
                return "a table named like a file or an address"
        if isinstance(node, exp.Column) and node.name.lower() in SEQUENCE_COLUMNS:
            return f"the column {node.name.lower()}, which moves a sequence"
        if isinstance(node, exp.Table):
            if not isinstance(node.this, exp.Identifier) and (node.args.get("db") or node.args.get("catalog")):
                return "a function of a schema"
            called = node.name.lower()
            if called.startswith("pragma_") and called.removeprefix("pragma_") not in READING_PRAGMAS:
                return f"the table {called}, which may set a pragma"
            if called in FILE_TABLES:
                return f"the table {called}, which reads files"
    return None


def _said(labels: Labels, rule: SqlRule) -> Labels:
    return msgspec.structs.replace(labels, source=rule.source)

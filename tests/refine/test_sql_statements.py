"""Statements by the hundred: what must lower does, what must not does not, and what lowers leaves a real database as it was."""

import sqlite3
from pathlib import Path

import pytest

from earnest.core.profile import Labels
from earnest.refine.refinement import WORST_LABELS
from earnest.refine.sql import judge

FOLDER = Path(__file__).parents[1] / "data/sql"
READS = Labels(read_only=True)
ADDS = Labels(read_only=False, destructive=False, idempotent=False)


def lines(*names: str) -> list[str]:
    return [line for name in names for line in (FOLDER / f"{name}.sql").read_text().splitlines() if line]


GROUPS = {
    "sqlite": ("every", "sqlite"),
    "postgres": ("every", "postgres"),
    "mysql": ("every", "mysql"),
    "": ("every", "unknown"),
}


@pytest.mark.parametrize("dialect", GROUPS)
def test_no_statement_lowers_that_may_do_more_than_read(dialect: str) -> None:
    statements = lines(*(f"{name}.not" for name in GROUPS[dialect]))
    assert len(statements) >= 60
    assert [text for text in statements if judge(text, dialect)[0].read_only is not False] == []


@pytest.mark.parametrize("dialect", GROUPS)
def test_statements_that_read_lower(dialect: str) -> None:
    # The few in `known` are read in three shapes by three dialects, so that without a dialect nobody knows which it is.
    names = ["every.reads", "known.reads", f"{dialect}.reads"] if dialect else ["every.reads"]
    statements = lines(*names)
    assert len(statements) >= 40
    assert [(text, judge(text, dialect)[1]) for text in statements if judge(text, dialect)[0] != READS] == []


def database(path: Path) -> sqlite3.Connection:
    found = sqlite3.connect(path, isolation_level=None)
    found.executescript(
        "create table t(a, b); insert into t values(1,2),(3,4),(3,'x'); create index i on t(a);"
        "create table r(id integer primary key, c unique); insert into r values(1,2);"
        "create virtual table docs using fts5(a); insert into docs values('hello'), ('hello again');"
        "pragma query_only=0"
    )
    return found


def dump(base: sqlite3.Connection) -> list[object]:
    names = [name for (name,) in base.execute("select name from sqlite_master where type = 'table' order by name")]
    settings = (
        "journal_mode",
        "user_version",
        "application_id",
        "auto_vacuum",
        "writable_schema",
        "query_only",
        "schema_version",
    )
    return [
        *base.execute("select name, sql from sqlite_master order by name"),
        *(base.execute(f'select * from "{name}"').fetchall() for name in names),
        *(base.execute(f"pragma {name}").fetchall() for name in settings),
        *base.execute("pragma database_list"),
    ]


def test_sqlite_is_the_same_after_all_that_reads(tmp_path: Path) -> None:
    base = database(tmp_path / "x.db")
    before = dump(base)
    size = (tmp_path / "x.db").read_bytes()
    made, ran = base.total_changes, 0
    for text in lines("every.reads", "known.reads", "sqlite.reads", "every.not", "sqlite.not"):
        if judge(text, "sqlite")[0] == READS:
            try:
                base.execute(text).fetchall()
            except sqlite3.OperationalError as error:
                # The parser reads some parts of other dialects, and a comment at the end may leave a column without its table.
                assert "no such" in str(error) or "syntax" in str(error), text
                continue
            ran += 1
            assert dump(base) == before, text
            assert base.total_changes == made, text
    assert ran > 50
    assert (tmp_path / "x.db").read_bytes() == size


INSERTS = [
    "INSERT INTO t (a) VALUES (1)",
    "INSERT INTO t (a, b) VALUES (1, 'x'), (-2.5, NULL)",
    "insert into main.t(a,b) values (TRUE, 'it''s; DELETE FROM t');",
]
NO_MERE_INSERTS = [
    "INSERT INTO docs(docs) VALUES('delete-all')",
    "INSERT INTO docs(\"docs\") VALUES('delete-all')",
    "INSERT INTO \"DOCS\"(docs) VALUES('rebuild')",
    "INSERT INTO docs(docs, rowid, a) VALUES('delete', 1, 'hello')",
    "INSERT INTO docs(docs, rank) VALUES('rank', 'bm25(10.0)')",
    "INSERT INTO docs(rank) VALUES('bm25(10.0)')",
    "INSERT INTO spell(command) VALUES('reset')",
    "INSERT INTO docs_data (id, block) VALUES (1, 'x')",
    "INSERT INTO docs_idx (a) VALUES (1)",
    "INSERT INTO docs_content (id) VALUES (9)",
    "INSERT INTO docs_docsize (id) VALUES (9)",
    "INSERT INTO docs_config (k, v) VALUES ('version', 9)",
    "INSERT INTO tree_node (nodeno) VALUES (1)",
    "INSERT INTO old_segdir (level) VALUES (1)",
    "INSERT INTO sqlite_master (type) VALUES ('table')",
    "INSERT INTO sqlite_schema (type) VALUES ('table')",
    "INSERT INTO sqlite_sequence (name, seq) VALUES ('a', 1)",
    "INSERT INTO main.sqlite_stat1 (tbl) VALUES ('t')",
    "INSERT INTO pg_catalog.pg_class (relname) VALUES ('x')",
    "INSERT INTO pg_authid (rolname) VALUES ('x')",
    "INSERT INTO information_schema.tables (a) VALUES (1)",
    "INSERT INTO mysql.user (user) VALUES ('x')",
    "INSERT INTO sys.sys_config (a) VALUES (1)",
    "INSERT INTO cron.job (command) VALUES ('DELETE FROM t')",
    "INSERT INTO other.t (a) VALUES (1)",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t DEFAULT VALUES",
    "INSERT INTO t SELECT 1",
    "INSERT INTO t (a) SELECT 1",
    "INSERT INTO t (a) SELECT b FROM t",
    "INSERT INTO t (a) VALUES ((SELECT 1))",
    "INSERT INTO t (a) VALUES (1), (lower('x'))",
    "INSERT INTO t (a) VALUES (1), (evil(1))",
    "INSERT INTO t (a) VALUES (1 + 1)",
    "INSERT INTO t (a) VALUES (1) RETURNING a",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2",
    "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
    "INSERT OR REPLACE INTO t (a) VALUES (1)",
    "INSERT OR IGNORE INTO t (a) VALUES (1)",
    "INSERT IGNORE INTO t (a) VALUES (1)",
    "INSERT DELAYED INTO t (a) VALUES (1)",
    "INSERT INTO t AS x (a) VALUES (1)",
    "INSERT INTO t SET a = 1",
    "INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES (1)",
    "INSERT INTO t PARTITION (p) (a) VALUES (1)",
    "INSERT INTO t (a) VALUES (:a)",
    "INSERT INTO t (a) VALUES (DEFAULT)",
    "INSERT INTO t (a) VALUES (1); DELETE FROM t",
    "REPLACE INTO t (a) VALUES (1)",
    "WITH x AS (SELECT 1) INSERT INTO t (a) VALUES (1)",
    "WITH x AS (DELETE FROM t RETURNING a) INSERT INTO t (a) VALUES (1)",
    "CREATE TABLE docs_data (a int)",
    "CREATE TABLE sqlite_stat1 (tbl int)",
    "CREATE TABLE mysql.x (a int)",
    "CREATE TABLE x AS SELECT a FROM t",
    "CREATE TABLE t PARTITION OF u DEFAULT",
    "CREATE TABLE x (a int DEFAULT (evil(1)))",
    "UPDATE pg_catalog.pg_class SET relname = 'x'",
    "DELETE FROM sqlite_master",
]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", ""])
def test_a_plain_insert_of_literals_adds(dialect: str) -> None:
    assert [text for text in INSERTS if judge(text, dialect)[0] != ADDS] == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", ""])
def test_an_insert_that_may_do_more_is_worst(dialect: str) -> None:
    assert [text for text in NO_MERE_INSERTS if judge(text, dialect)[0] != WORST_LABELS] == []


def test_what_adds_leaves_every_row_that_was_there(tmp_path: Path) -> None:
    base = database(tmp_path / "x.db")
    before = {name: base.execute(f'select rowid, * from "{name}"').fetchall() for name in ("t", "r", "docs")}
    hits = "select rowid from docs where docs match 'hello'"
    found = base.execute(hits).fetchall()
    for text in [*INSERTS, *NO_MERE_INSERTS]:
        if judge(text, "sqlite")[0] == ADDS:
            base.execute(text)
    for name, rows in before.items():
        assert set(rows) <= set(base.execute(f'select rowid, * from "{name}"').fetchall())
    assert base.execute(hits).fetchall() == found
    assert base.execute("select count(*) from t").fetchone() == (7,)

"""A query lowers only if nothing in it can be read two ways and all of it is known to read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.profile import Labels
from earnest.refine.refinement import WORST_LABELS
from earnest.refine.sql import SqlRule, judge, look
from properties import examples

READS = Labels(read_only=True)
ADDS = Labels(read_only=False, destructive=False, idempotent=False)
CHANGES = Labels(read_only=False, destructive=True)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "", "cockroach"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1",
        "select * from users where id = 3;",
        "SELECT count(*), sum(a) FROM t JOIN u ON t.id = u.id WHERE b LIKE 'x%' GROUP BY c HAVING count(*) > 1",
        "SELECT a FROM t WHERE b IN (1, 2) AND c BETWEEN 1 AND 2 OR d IS NULL ORDER BY a DESC LIMIT 3 OFFSET 2",
        "WITH x AS (SELECT a FROM t) SELECT * FROM x UNION ALL SELECT 2",
        "SELECT CASE WHEN a > 1 THEN 'DROP TABLE t' ELSE lower(b) END FROM t -- a plain word",
        "SELECT /* a plain word */ coalesce(a, 1) FROM t WHERE EXISTS (SELECT 1 FROM u)",
        "SELECT a--\nFROM t",
    ],
)
def test_plain_queries_read_in_every_dialect(query: str, dialect: str) -> None:
    assert judge(query, dialect)[0] == READS


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("sqlite", "PRAGMA table_info(users)"),
        ("sqlite", "SELECT json_extract(a, '$.x'), json_extract(a, '$.y') FROM t"),
        ("sqlite", "SELECT strftime('%Y', d), date('now'), typeof(a), group_concat(x) FROM t, json_each(t.j)"),
        ("postgres", "SELECT a->>'b', a || 'x', a::int, now_ FROM t"),
        ("postgres", "SELECT date_trunc('day', d), rank() OVER (PARTITION BY a ORDER BY b) FROM public.t"),
        ("mysql", "SELECT `a`, year(d) FROM `db`.`t`"),
    ],
)
def test_queries_of_one_dialect_read(dialect: str, query: str) -> None:
    assert judge(query, dialect)[0] == READS


WORST = [
    ("postgres", "SELECT pg_terminate_backend(42)"),
    ("postgres", "SELECT pg_catalog.pg_terminate_backend(42)"),
    ("postgres", "SELECT evil.lower(a) FROM t"),
    ("postgres", "SELECT \"lo_export\"(1, '/x')"),
    ("postgres", "SELECT lo_export(1, '/x')"),
    ("postgres", "SELECT pg_read_file('/etc/passwd')"),
    ("postgres", "SELECT * FROM dblink('host=x', 'select 1') AS t(a int)"),
    ("postgres", "SELECT nextval('s')"),
    ("postgres", "SELECT set_config('a', 'b', false)"),
    ("postgres", "SELECT * INTO x FROM t"),
    ("postgres", "SELECT a FROM t FOR UPDATE"),
    ("postgres", "SELECT a FROM t FOR SHARE"),
    ("postgres", "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d"),
    ("postgres", "WITH d AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM d"),
    ("postgres", "COPY t TO '/x'"),
    ("postgres", "COPY t TO PROGRAM 'sh'"),
    ("postgres", "CALL f()"),
    ("postgres", "DO $$ BEGIN END $$"),
    ("postgres", "SET x = 1"),
    ("postgres", "EXPLAIN ANALYZE DELETE FROM t"),
    ("postgres", "SELECT 1; SELECT 2"),
    ("postgres", "SELECT 1; DROP TABLE t"),
    ("postgres", "SELECT $$x$$"),
    ("postgres", "SELECT 1 -- x\r; DROP TABLE t"),
    ("postgres", "SELECT a OPERATOR(evil.+) b FROM t"),
    ("postgres", "SELECT a::evil FROM t"),
    ("postgres", "SELECT 1 -- x\r, 2"),
    ("postgres", "SELECT 1 -- x\u2028, 2"),
    ("postgres", "SELECT 1 -- x\x0b, 2"),
    ("postgres", "SELECT 1\u00a0"),
    ("postgres", 'SELECT "typeof"(a) FROM t'),
    ("postgres", 'SELECT "LOWER"(a) FROM t'),
    ("postgres", 'SELECT é, "LOWER"(a) FROM t'),
    ("postgres", 'SELECT * FROM "jsonb_each"(a)'),
    ("mysql", "SELECT `LOWER`(a) FROM t"),
    ("postgres", "LISTEN x"),
    ("postgres", "REFRESH MATERIALIZED VIEW x"),
    ("postgres", "CREATE FUNCTION f() RETURNS int AS 'x' LANGUAGE c"),
    ("postgres", "CREATE TABLE t AS SELECT pg_read_file('x')"),
    ("postgres", "INSERT INTO t SELECT pg_read_file('x')"),
    ("postgres", "DELETE FROM t WHERE pg_sleep(9) IS NULL"),
    ("mysql", "SELECT 1 /*! ; DROP TABLE t */"),
    ("mysql", "SELECT 1 /*!50000 INTO OUTFILE '/x' */"),
    ("mysql", "SELECT 1 /*M! INTO OUTFILE '/x' */"),
    ("mysql", "SELECT /*+ SET_VAR(foreign_key_checks=OFF) */ 1"),
    ("mysql", "SELECT 1 INTO OUTFILE '/x'"),
    ("mysql", "SELECT 1 INTO @a"),
    ("mysql", "SELECT @a := 1"),
    ("mysql", "SELECT 1 --1; DROP TABLE t"),
    ("mysql", "SELECT '\\'; DROP TABLE t; -- '"),
    ("mysql", "SELECT sleep(100)"),
    ("mysql", "SELECT load_file('/etc/passwd')"),
    ("mysql", "SELECT get_lock('a', 1)"),
    ("mysql", "SELECT * FROM t LOCK IN SHARE MODE"),
    ("mysql", "SELECT 1 # x"),
    ("mysql", "SELECT 1 --1"),
    ("mysql", "HANDLER t OPEN"),
    ("mysql", "LOAD DATA INFILE 'x' INTO TABLE t"),
    ("sqlite", "PRAGMA user_version = 3"),
    ("sqlite", "PRAGMA writable_schema(1)"),
    ("sqlite", "PRAGMA journal_mode = DELETE"),
    ("sqlite", "SELECT load_extension('x')"),
    ("sqlite", "SELECT writefile('x', 'y')"),
    ("sqlite", "SELECT 1 /* /* */; DROP TABLE t /* */ */"),
    ("sqlite", "SELECT 1 /* /* */"),
    ("sqlite", "ATTACH '/x' AS y"),
    ("sqlite", "VACUUM INTO '/x'"),
    ("sqlite", "SELECT 1\x00; DROP TABLE t"),
    ("sqlite", "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')"),
    ("sqlite", "CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM t; END"),
    ("oracle", "SELECT func FROM t"),
    ("tsql", "SELECT 1 DELETE FROM users"),
    ("tsql", "SELECT 1 EXEC xp_cmdshell 'x'"),
    ("tsql", "EXEC xp_cmdshell 'x'"),
    ("", "SELECT 1 DELETE FROM users"),
    ("", "SELECT 1 SHUTDOWN"),
    ("duckdb", "SELECT * FROM '/etc/passwd'"),
    ("duckdb", 'SELECT * FROM "https://x/?q=1"'),
    ("duckdb", 'SELECT * FROM "t.csv"'),
    ("", 'SELECT "a" FROM t'),
    ("", "SELECT `a` FROM t"),
    ("sqlite", ""),
    ("sqlite", ";"),
    ("sqlite", "SELEC 1"),
    ("sqlite", "SELECT (" * 3000),
    ("sqlite", "SELECT " + "(" * 900 + "1" + ")" * 900),
    ("sqlite", "SELECT 1 " + " " * 70_000),
]


@pytest.mark.parametrize(("dialect", "query"), WORST)
def test_what_cannot_be_known_to_read_is_worst(dialect: str, query: str) -> None:
    assert judge(query, dialect)[0] == WORST_LABELS


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", ""])
@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ("INSERT INTO t (a) VALUES (1), (2)", ADDS),
        ("CREATE TABLE t (a int, b text NOT NULL)", ADDS),
        ("UPDATE t SET a = 1 WHERE b = 2", CHANGES),
        ("DELETE FROM t WHERE a = 1", CHANGES),
        ("DROP TABLE t", CHANGES),
    ],
)
def test_statements_with_effect_add_or_change(query: str, labels: Labels, dialect: str) -> None:
    assert judge(query, dialect)[0] == labels


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
def test_a_table_with_keys_is_added(dialect: str) -> None:
    query = "CREATE TABLE IF NOT EXISTS t (a int PRIMARY KEY, b int DEFAULT 1, FOREIGN KEY (b) REFERENCES u(id))"
    assert judge(query, dialect)[0] == ADDS


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("mysql", "CREATE OR REPLACE TABLE t (a int)"),
    ],
)
def test_a_known_statement_that_may_replace_changes_and_says_nothing_of_the_rest(dialect: str, query: str) -> None:
    assert judge(query, dialect)[0] == CHANGES


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("sqlite", "INSERT OR REPLACE INTO t VALUES (1)"),
        ("mysql", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1"),
        ("postgres", "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2"),
        ("mysql", "REPLACE INTO t VALUES (1)"),
        ("mysql", "TRUNCATE TABLE t"),
        ("postgres", "CREATE OR REPLACE VIEW v AS SELECT 1"),
        ("postgres", "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE"),
        ("postgres", "ALTER TABLE t DROP COLUMN a"),
    ],
)
def test_statements_that_may_replace_are_destructive(dialect: str, query: str) -> None:
    labels = judge(query, dialect)[0]
    assert labels.read_only is False and labels.destructive is True


def test_an_operator_may_name_further_functions() -> None:
    assert judge("SELECT my_total(a) FROM t", "sqlite", frozenset({"my_total"}))[0] == READS
    rule = SqlRule("query", "sqlite", functions=("My_Total",), source="labels:4")
    found = look(rule, {"query": "SELECT MY_TOTAL(a) FROM t"})
    assert found.labels == Labels(read_only=True, source="labels:4")
    assert found.why == "query only reads"


@pytest.mark.parametrize("arguments", [{}, {"query": None}, {"query": 3}, {"query": ["SELECT 1"]}, {"Query": "SELECT 1"}])
def test_a_query_that_is_absent_or_no_text_is_worst(arguments: dict[str, object]) -> None:
    assert look(SqlRule("query", "sqlite"), arguments).labels == WORST_LABELS


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=40), st.sampled_from(["sqlite", "postgres", "mysql", ""]))
def test_a_destructive_statement_is_never_hidden_by_what_stands_before_it(prefix: str, dialect: str) -> None:
    labels, _ = judge(f"SELECT 1 {prefix}; DROP TABLE t", dialect)
    if labels == READS:  # then the rest stood in a comment to the end, in every reading
        assert "--" in prefix and "\n" not in prefix.split("--", 1)[1]


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=60))
def test_any_text_has_an_answer(text: str) -> None:
    labels, why = judge(text, "")
    assert why and labels in (READS, ADDS, CHANGES, WORST_LABELS)

PRAGMA table_info(t)
PRAGMA table_info('t')
PRAGMA index_list(t)
PRAGMA foreign_key_list(t)
PRAGMA database_list
PRAGMA compile_options
SELECT * FROM pragma_table_info('t')
SELECT name FROM pragma_table_info('t') WHERE pk
SELECT m.name, p.name FROM sqlite_master AS m, pragma_table_info(m.name) AS p
SELECT * FROM pragma_database_list
SELECT name, sql FROM sqlite_master WHERE type = 'table'
SELECT name FROM main.sqlite_schema
SELECT typeof(a), instr(b, 'x'), printf('%d', a), quote(b) FROM t
SELECT json_extract('{"a": 1}', '$.a')
SELECT value FROM json_each('[1, 2]')
SELECT key FROM json_tree('{"a": 1}')
SELECT strftime('%Y', 'now'), date('now'), datetime('now'), julianday('now')
SELECT group_concat(a) FROM t
SELECT ifnull(a, 1), iif(a, 1, 2) FROM t
SELECT "a", [b] FROM "t"
SELECT a FROM docs WHERE docs MATCH 'hello'
SELECT snippet(docs, 0, 'x', 'y', 'z', 4) FROM docs WHERE docs MATCH 'hello'
SELECT a FROM docs WHERE docs MATCH 'hello' ORDER BY rank
SELECT a || b FROM t
SELECT a FROM t WHERE b GLOB 'x*'

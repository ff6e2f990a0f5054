SELECT pg_terminate_backend(1)
SELECT pg_catalog.pg_terminate_backend(1)
SELECT pg_sleep(1)
SELECT setval('s', 1)
SELECT currval('s')
SELECT lastval()
SELECT lo_import('/x')
SELECT lo_unlink(1)
SELECT set_config('a', 'b', false)
SELECT pg_advisory_lock(1)
SELECT pg_notify('a', 'b')
SELECT pg_read_file('x')
SELECT pg_ls_dir('/')
SELECT * FROM dblink('a', 'b') AS x(a int)
SELECT query_to_xml('delete from t', true, true, '')
SELECT txid_current()
SELECT "lower"(a) FROM t
SELECT "lower" /* x */ (a) FROM t
SELECT a OPERATOR(evil.+) b FROM t
SELECT a::evil FROM t
SELECT (t).evil FROM t
SELECT * FROM ROWS FROM (json_each('x'))
SELECT * FROM ROWS FROM (evil('x'))
SELECT * FROM pg_logical_slot_get_changes('s', NULL, NULL)
SELECT a FROM t FOR NO KEY UPDATE
SELECT a FROM t FOR KEY SHARE
SELECT a FROM t FOR UPDATE OF t NOWAIT
SELECT a FROM t FOR UPDATE SKIP LOCKED
SELECT U&'\0041'
DO $$ BEGIN END $$
COPY t TO '/x'
LISTEN x
NOTIFY x
LOCK TABLE t
REFRESH MATERIALIZED VIEW v
TRUNCATE t
FETCH ALL FROM c
DECLARE c CURSOR FOR SELECT 1
PREPARE x AS DELETE FROM t
EXECUTE x

SELECT * FROM pragma_optimize('0x10002')
SELECT * FROM pragma_optimize WHERE arg = 65538
SELECT * FROM main.pragma_optimize
SELECT * FROM "pragma_optimize"
SELECT * FROM [pragma_optimize]
SELECT * FROM `Pragma_Optimize`
SELECT * FROM pragma_wal_checkpoint
SELECT * FROM pragma_journal_mode
SELECT * FROM pragma_incremental_vacuum
SELECT * FROM pragma_user_version
SELECT * FROM pragma_writable_schema(1)
SELECT * FROM t, pragma_wal_checkpoint('TRUNCATE')
SELECT a FROM t WHERE a IN (SELECT busy FROM pragma_wal_checkpoint)
WITH x AS (SELECT * FROM pragma_optimize) SELECT * FROM x
SELECT data FROM fsdir WHERE path = '/etc/passwd'
SELECT * FROM zipfile WHERE file = 'x.zip'
SELECT load_extension('x')
SELECT fts3_tokenizer('a', 'b')
SELECT optimize(docs) FROM docs
SELECT writefile('x', 'y')
SELECT readfile('x')
SELECT edit('x')
SELECT "lower"(a) FROM t
SELECT [lower] (a) FROM t
SELECT `lower`/**/(a) FROM t
SELECT * FROM "json_each"('[1]')
SELECT * FROM main.json_each('[1]')
PRAGMA journal_mode
PRAGMA journal_mode = WAL
PRAGMA user_version = 3
PRAGMA optimize
PRAGMA wal_checkpoint
PRAGMA writable_schema = 1
PRAGMA incremental_vacuum
ATTACH 'x' AS y
DETACH y
VACUUM
VACUUM INTO 'x'
REINDEX
ANALYZE
SAVEPOINT x
SELECT a FROM t INDEXED BY i

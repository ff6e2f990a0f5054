SELECT a::int, b::text FROM t
SELECT a -> 'b', a ->> 'b' FROM t
SELECT date_trunc('day', d) FROM t
SELECT a FROM public.t
SELECT a FROM t WHERE b ILIKE 'x%'
SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b
SELECT a FROM t FETCH FIRST 3 ROWS ONLY
SELECT extract(year FROM d) FROM t
SELECT array_agg(a) FROM t
SELECT count(*) FILTER (WHERE a > 1) FROM t
SELECT string_agg(a, ',') FROM t
SELECT x.value FROM t, LATERAL jsonb_array_elements(t.j) AS x
SELECT * FROM t CROSS JOIN LATERAL (SELECT 1 AS one) AS x
SELECT * FROM json_each('{"a": 1}')
SELECT table_name FROM information_schema.tables
SELECT relname FROM pg_catalog.pg_class
SELECT a FROM ONLY t

SELECT x.a FROM t AS x, t AS y WHERE x.a = y.b
SELECT a FROM t WHERE b IS NOT NULL
SELECT lower(b), upper(b), length(b), trim(b), replace(b, 'x', 'y') FROM t
SELECT a + 1, a - 1, a * 2, a / 2, -a FROM t

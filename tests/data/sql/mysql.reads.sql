SELECT `a` FROM `t`
SELECT a FROM `shop`.`t`
SELECT year(d), month(d) FROM t
SELECT concat(a, b), concat_ws('-', a, b) FROM t
SELECT ifnull(a, 1) FROM t
SELECT a FROM t LIMIT 5, 10
SELECT a FROM t WHERE b <=> NULL
SELECT group_concat(a) FROM t
SELECT "text" FROM t
SELECT left(a, 2), right(a, 2) FROM t
SELECT greatest(a, b), least(a, b) FROM t
SELECT a FROM t WHERE a REGEXP 'x'
SELECT if(a > 1, 'x', 'y') FROM t
SELECT 1 FROM dual
SELECT table_name FROM information_schema.tables
SELECT user FROM mysql.user

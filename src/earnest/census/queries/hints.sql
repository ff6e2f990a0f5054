-- Set, true, false: how often each hint is claimed, by cohort.
-- Three rows for each hint: true, false, absent.
WITH long AS (
    SELECT cohort, hint, claim
    FROM tools
    UNPIVOT INCLUDE NULLS (claim FOR hint IN (read_only, destructive, idempotent, open_world))
)
SELECT cohort, hint, state, tools, round(tools / sum(tools) OVER (PARTITION BY cohort, hint), 4) AS share
FROM (
    SELECT cohort, hint, CASE WHEN claim IS NULL THEN 'absent' WHEN claim THEN 'true' ELSE 'false' END AS state, count(*) AS tools
    FROM long
    GROUP BY ALL
)
ORDER BY cohort, list_position(['read_only', 'destructive', 'idempotent', 'open_world'], hint), list_position(['true', 'false', 'absent'], state);

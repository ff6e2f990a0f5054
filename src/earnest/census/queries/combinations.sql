-- Combinations of the four hints, most frequent first.
-- Hints in the order read-only, destructive, idempotent, open world; T true, F false, - absent.
SELECT
    cohort,
    concat(
        CASE WHEN read_only IS NULL THEN '-' WHEN read_only THEN 'T' ELSE 'F' END,
        CASE WHEN destructive IS NULL THEN '-' WHEN destructive THEN 'T' ELSE 'F' END,
        CASE WHEN idempotent IS NULL THEN '-' WHEN idempotent THEN 'T' ELSE 'F' END,
        CASE WHEN open_world IS NULL THEN '-' WHEN open_world THEN 'T' ELSE 'F' END
    ) AS combination,
    count(*) AS tools,
    count(DISTINCT server) AS servers
FROM tools
GROUP BY ALL
ORDER BY cohort, tools DESC, combination;

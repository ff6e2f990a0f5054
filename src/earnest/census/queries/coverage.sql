-- Coverage by server: how many of its tools say anything, and all they could say.
-- `complete`: readOnlyHint and openWorldHint, and, unless read-only, destructiveHint and idempotentHint.
SELECT
    t.cohort,
    t.server,
    count(*) AS tools,
    count(*) FILTER (annotated) AS annotated,
    count(*) FILTER (coalesce(read_only, destructive, idempotent, open_world) IS NOT NULL) AS hinted,
    count(*) FILTER (
        read_only IS NOT NULL AND open_world IS NOT NULL
        AND (read_only OR (destructive IS NOT NULL AND idempotent IS NOT NULL))
    ) AS complete,
    any_value(s.grade) AS grade,
    any_value(s.score) AS score
FROM tools AS t
JOIN servers AS s ON s.cohort = t.cohort AND s.server = t.server AND s.provenance = t.provenance
GROUP BY t.cohort, t.server, t.provenance
ORDER BY t.cohort, hinted / count(*) DESC, count(*) DESC, t.server;

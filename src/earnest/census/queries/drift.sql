-- Drift between two datasets of one cohort: tools that came, went, or have another pin.
-- Needs an earlier dataset. `earnest census diff` says how bad each change is.
SELECT
    coalesce(n.cohort, o.cohort) AS cohort,
    coalesce(n.server, o.server) AS server,
    count(*) FILTER (o.name IS NULL) AS added,
    count(*) FILTER (n.name IS NULL) AS removed,
    count(*) FILTER (o.pin IS DISTINCT FROM n.pin AND o.name IS NOT NULL AND n.name IS NOT NULL) AS changed,
    count(*) FILTER (o.pin IS NOT DISTINCT FROM n.pin AND o.name IS NOT NULL AND n.name IS NOT NULL) AS unchanged
FROM tools AS n
FULL JOIN earlier_tools AS o ON o.cohort = n.cohort AND o.server = n.server AND o.name = n.name
GROUP BY ALL
ORDER BY cohort, server;

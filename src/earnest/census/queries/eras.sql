-- Era adoption: which version servers agree on, and whether they know 2026-07-28.
-- One row for each version and answer; servers that failed are left out.
SELECT
    cohort,
    coalesce(protocol, 'not recorded') AS protocol,
    CASE WHEN modern IS NULL THEN 'not asked' WHEN modern AND legacy THEN 'both eras' WHEN modern THEN 'modern only' ELSE 'legacy only' END AS eras,
    count(*) AS servers,
    count(*) FILTER (same_both_eras) AS same_tools_in_both
FROM servers
WHERE status = 'answered'
GROUP BY ALL
ORDER BY cohort, protocol DESC, eras;

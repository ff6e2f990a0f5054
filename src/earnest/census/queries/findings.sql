-- Lint findings by audit and confidence.
-- The regular persona. `servers`: on how many; `claimed`: how many are about a hint that is set.
SELECT
    cohort,
    audit,
    severity,
    confidence,
    count(*) AS findings,
    count(DISTINCT server) AS servers,
    count(*) FILTER (claimed) AS claimed
FROM findings
WHERE persona = 'regular'
GROUP BY ALL
ORDER BY cohort, findings DESC, audit, confidence;

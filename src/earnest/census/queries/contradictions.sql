-- The most common contradictions: a hint that is set, against what the tool says of itself.
-- High and medium confidence. `side`: whether the claim is safer than the tool (understates) or riskier (overstates).
SELECT
    cohort,
    audit,
    hint,
    CASE WHEN audit IN ('reads-but-not-read-only', 'destructive-overstated', 'http-method') THEN 'overstates' ELSE 'understates' END AS side,
    count(*) FILTER (confidence = 'high') AS high,
    count(*) FILTER (confidence = 'medium') AS medium,
    count(DISTINCT server) AS servers,
    any_value(server || ' / ' || tool ORDER BY confidence, server, tool) AS example
FROM findings
WHERE claimed
    AND confidence IN ('high', 'medium')
    AND audit IN (
        'read-only-but-writes', 'destructive-denied', 'read-only-and-destructive', 'idempotent-denied', 'closed-world-denied',
        'permission-denied', 'reads-but-not-read-only', 'destructive-overstated', 'http-method'
    )
GROUP BY ALL
ORDER BY cohort, count(*) DESC, audit, hint;

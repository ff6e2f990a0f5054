-- The most common contradictions: a hint that is set, against what the tool says of itself.
-- High and medium confidence. `side`: whether the claim is safer than the tool (understates) or riskier (overstates).
WITH claims AS (
    SELECT cohort, server, provenance, name AS tool, hint, bool_or(claim) AS claim
    FROM tools UNPIVOT (claim FOR hint IN (read_only, destructive, idempotent, open_world))
    GROUP BY ALL
)
SELECT
    f.cohort,
    f.audit,
    f.hint,
    CASE WHEN c.claim = (f.hint IN ('destructive', 'open_world')) THEN 'overstates' ELSE 'understates' END AS side,
    count(*) FILTER (f.confidence = 'high') AS high,
    count(*) FILTER (f.confidence = 'medium') AS medium,
    count(DISTINCT f.server) AS servers,
    any_value(f.server || ' / ' || f.tool ORDER BY f.confidence, f.server, f.tool) AS example
FROM findings AS f
JOIN claims AS c ON c.cohort = f.cohort AND c.server = f.server AND c.provenance = f.provenance AND c.tool = f.tool AND c.hint = f.hint
WHERE f.confidence IN ('high', 'medium')
    AND f.audit IN (
        'read-only-but-writes', 'destructive-denied', 'read-only-and-destructive', 'idempotent-denied', 'closed-world-denied',
        'permission-denied', 'reads-but-not-read-only', 'destructive-overstated', 'http-method'
    )
GROUP BY ALL
ORDER BY f.cohort, count(*) DESC, f.audit, f.hint;

-- Servers that gave no answer, and why.
SELECT cohort, server, package, failed_at, failure_code, failure
FROM servers
WHERE status = 'failed'
ORDER BY cohort, server;

-- How servers of the older era refuse `server/discover`.
SELECT cohort, coalesce(refused_with::VARCHAR, 'no answer') AS code, count(*) AS servers
FROM servers
WHERE status = 'answered' AND modern IS NOT NULL AND NOT modern
GROUP BY ALL
ORDER BY cohort, servers DESC, code;

-- Grades of servers.
SELECT cohort, grade, count(*) AS servers, sum(tools)::BIGINT AS tools, round(avg(score), 1) AS mean_score
FROM servers
WHERE grade IS NOT NULL
GROUP BY ALL
ORDER BY cohort, grade;

-- SDKs under the servers.
SELECT cohort, sdk, count(*) AS servers
FROM (SELECT cohort, unnest(sdk) AS sdk FROM servers WHERE status = 'answered')
GROUP BY ALL
ORDER BY cohort, servers DESC, sdk;

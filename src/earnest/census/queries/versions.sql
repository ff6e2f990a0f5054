-- Versions as identity: does `serverInfo.version` name the installed package?
-- Only servers whose package version is known.
SELECT
    cohort,
    count(*) AS servers,
    count(*) FILTER (server_version = '') AS empty,
    count(*) FILTER (ltrim(server_version, 'v') <> wanted) AS other_than_package
FROM (
    SELECT cohort, coalesce(server_version, '') AS server_version, coalesce(version, regexp_extract(package, '(?:==|.@)([^@=]+)$', 1)) AS wanted
    FROM servers
    WHERE status = 'answered' AND (package LIKE 'npm:%' OR package LIKE 'pypi:%')
)
GROUP BY ALL
ORDER BY cohort;

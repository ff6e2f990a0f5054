-- Totals of each cohort: the table of the reference survey, and more.
-- One row a cohort. Shares are of tools; `readonly_true` counts explicit claims.
WITH per_tool AS (
    SELECT
        t.*,
        coalesce(read_only, false) AS claims_read,
        (read_only IS NOT NULL OR destructive IS NOT NULL OR idempotent IS NOT NULL OR open_world IS NOT NULL) AS hinted
    FROM tools AS t
),
per_server AS (
    SELECT cohort, server, provenance, bool_or(annotated) AS any_annotated, bool_and(annotated) AS all_annotated
    FROM tools GROUP BY cohort, server, provenance
),
asked AS (
    SELECT cohort, count(*) AS servers, count(*) FILTER (status = 'answered') AS answered, min(recorded) AS first_recorded, max(recorded) AS last_recorded
    FROM servers GROUP BY cohort
),
repeated AS (
    SELECT cohort, count(*) AS names FROM (
        SELECT cohort, name FROM tools GROUP BY cohort, name HAVING count(DISTINCT server) >= 2
    ) GROUP BY cohort
),
doubled AS (
    SELECT cohort, sum(n - 1)::BIGINT AS names FROM (
        SELECT cohort, server, provenance, name, count(*) AS n FROM tools GROUP BY cohort, server, provenance, name HAVING count(*) > 1
    ) GROUP BY cohort
)
SELECT
    a.cohort,
    a.servers,
    a.answered,
    a.first_recorded,
    a.last_recorded,
    count(p.name) AS tools,
    count(*) FILTER (p.annotated) AS annotated,
    count(*) FILTER (p.hinted) AS hinted,
    count(*) FILTER (p.read_only IS NOT NULL AND p.destructive IS NOT NULL AND p.idempotent IS NOT NULL AND p.open_world IS NOT NULL) AS all_four,
    count(*) FILTER (p.read_only) AS readonly_true,
    count(*) FILTER (NOT p.read_only) AS readonly_false,
    count(*) FILTER (p.destructive) AS destructive_true,
    count(*) FILTER (NOT p.destructive) AS destructive_false,
    count(*) FILTER (p.idempotent) AS idempotent_true,
    count(*) FILTER (NOT p.idempotent) AS idempotent_false,
    count(*) FILTER (p.open_world) AS openworld_true,
    count(*) FILTER (NOT p.open_world) AS openworld_false,
    count(*) FILTER (len(p.malformed) > 0) AS malformed,
    count(*) FILTER (p.annotations_title IS NOT NULL) AS annotations_title,
    count(*) FILTER (p.title IS NOT NULL) AS tool_title,
    count(*) FILTER (p.title IS NOT NULL AND p.annotations_title IS NOT NULL) AS both_titles,
    count(*) FILTER (p.title <> p.annotations_title) AS titles_differ,
    (SELECT count(*) FROM per_server AS s WHERE s.cohort = a.cohort AND s.any_annotated) AS servers_any_annotated,
    (SELECT count(*) FROM per_server AS s WHERE s.cohort = a.cohort AND s.all_annotated) AS servers_all_annotated,
    count(*) FILTER (p.claims_read AND p.destructive) AS readonly_and_destructive,
    count(*) FILTER (p.claims_read AND p.destructive IS NOT NULL) AS readonly_destructive_set,
    count(*) FILTER (p.claims_read AND p.idempotent IS NOT NULL) AS readonly_idempotent_set,
    count(*) FILTER (p.claims_read AND NOT p.idempotent) AS readonly_idempotent_false,
    count(*) FILTER (p.annotated AND p.read_only IS NULL) AS annotated_without_readonly,
    count(*) FILTER (p.hinted AND NOT p.claims_read AND p.destructive IS NULL) AS destructive_by_default,
    count(*) FILTER (p.has_output_schema) AS output_schema,
    count(*) FILTER (p.has_icons) AS icons,
    count(*) FILTER (p.execution IS NOT NULL) AS execution,
    count(*) FILTER (len(p.meta_keys) > 0) AS meta,
    count(*) FILTER (p.name IS NOT NULL AND p.description = '') AS no_description,
    quantile_cont(length(p.description), 0.5) AS description_median,
    quantile_disc(length(p.description), 0.9) AS description_p90,
    max(length(p.description)) AS description_longest,
    count(*) FILTER (length(p.description) > 1024) AS description_over_1024,
    count(*) FILTER (length(p.description) > 4096) AS description_over_4096,
    count(*) FILTER (NOT regexp_full_match(p.name, '[A-Za-z0-9_.-]{1,128}')) AS names_outside_rule,
    coalesce((SELECT names FROM doubled AS d WHERE d.cohort = a.cohort), 0) AS names_twice_on_a_server,
    coalesce((SELECT names FROM repeated AS r WHERE r.cohort = a.cohort), 0) AS names_on_several_servers
FROM asked AS a
LEFT JOIN per_tool AS p ON p.cohort = a.cohort
GROUP BY a.cohort, a.servers, a.answered, a.first_recorded, a.last_recorded
ORDER BY a.cohort;

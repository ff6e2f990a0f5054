-- Distribution of risk classes, as resolved: for a server nobody trusts, for a trusted one, and held to its own words.
WITH long AS (
    SELECT cohort, 'untrusted' AS view, risk_untrusted AS class FROM tools
    UNION ALL SELECT cohort, 'claimed', risk_claimed FROM tools
    UNION ALL SELECT cohort, 'checked', risk_checked FROM tools
)
SELECT cohort, view, class, tools, round(tools / sum(tools) OVER (PARTITION BY cohort, view), 4) AS share
FROM (SELECT cohort, view, class, count(*) AS tools FROM long GROUP BY ALL)
ORDER BY
    cohort,
    list_position(['untrusted', 'claimed', 'checked'], view),
    list_position(['reads_closed', 'reads_open', 'adds_closed', 'adds_open', 'destroys_closed', 'destroys_open'], class);

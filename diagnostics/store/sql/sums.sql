-- Add up measures of a project's rollups and of the deltas not folded yet, so that every
-- event counts exactly once. The reader fills in dimensions, measures and segments.
-- Parameters: project, since, until, and the bounds of the segments and filters.
WITH kept AS (
    SELECT <<keys>>, <<sums>>
    FROM (
        <<segments>>
    ) AS bucketed
    GROUP BY <<keys>>
),
told AS (
    SELECT <<named>>, <<measured>>
    FROM kept
    <<joined>>
    UNION ALL
    SELECT <<dimensions>>, <<sums>>
    FROM (
        SELECT *, <<slot>> AS slot
        FROM diagnostics_rollup_delta
        WHERE project_id = %(project)s
            AND minute >= %(since)s
            AND minute < %(until)s
            AND NOT (is_marked AND (<<minutes>>))
    ) AS delta
    WHERE true <<filters>>
    GROUP BY <<dimensions>>
)
SELECT <<answered>>, <<sums>>
FROM told
GROUP BY <<dimensions>>

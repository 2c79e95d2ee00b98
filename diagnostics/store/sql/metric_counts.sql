-- Counters per provider and model since the beginning: the running totals of the fold and
-- what it has not folded yet. They never go down, whatever retention drops and a purge
-- deletes. What was invented for a demonstration is not in them.
-- Parameters: project (null: all projects). The busiest come first.
WITH counted AS (
    SELECT series.provider, series.model, series.node, <<totals>>
    FROM diagnostics_rollup_total AS total
    JOIN diagnostics_series AS series ON series.id = total.series_id
    WHERE %(project)s::bigint IS NULL OR total.project_id = %(project)s
    UNION ALL
    SELECT provider, model, node, <<columns>>
    FROM diagnostics_rollup_delta
    WHERE (%(project)s::bigint IS NULL OR project_id = %(project)s)
        AND NOT is_demo AND events >= 0
)
SELECT
    coalesce(provider, 'unknown'),
    coalesce(model, 'unknown'),
    coalesce(sum(invalid) FILTER (WHERE node = 'next_step'), 0)::bigint
        AS next_step_parse_invalid,
    coalesce(sum(parse_failed) FILTER (WHERE node = 'next_step'), 0)::bigint
        AS next_step_degraded,
    <<totalled_sums>>
FROM counted
GROUP BY 1, 2
ORDER BY sum(events) DESC, 1, 2

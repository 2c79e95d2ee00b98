-- Counters per provider and model, from the events themselves: correct with any number
-- of processes. Parameters: project (null: all projects).
SELECT
    coalesce(provider, 'unknown') AS provider,
    coalesce(model, 'unknown') AS model,
    count(*) FILTER (WHERE kind = 'parse_invalid') AS parse_invalid,
    count(*) FILTER (WHERE kind = 'degraded') AS degraded,
    count(*) FILTER (WHERE kind = 'succeeded') AS succeeded,
    count(*) FILTER (WHERE kind = 'provider_error') AS provider_error,
    count(*) FILTER (WHERE kind = 'unknown_tool') AS unknown_tool,
    count(*) FILTER (WHERE node = 'next_step' AND kind = 'parse_invalid')
        AS next_step_parse_invalid,
    count(*) FILTER (
        WHERE node = 'next_step' AND kind = 'degraded'
            AND reason = 'next_step_parse_failed'
    ) AS next_step_degraded,
    count(*) FILTER (
        WHERE kind IN ('parse_invalid', 'succeeded', 'provider_error')
    ) AS attempts,
    count(*) FILTER (WHERE kind = 'succeeded' AND attempt > 1) AS retries_recovered,
    count(*) FILTER (
        WHERE kind = 'degraded' AND attempts > 1 AND reason = node || '_parse_failed'
    ) AS retries_failed
FROM diagnostics_event
WHERE %(project)s::bigint IS NULL OR project_id = %(project)s
GROUP BY 1, 2
ORDER BY count(*) DESC, 1, 2

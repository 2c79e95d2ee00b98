-- How often groups were seen in a window, by model and slot of time.
-- Parameters: project, since, until (hours), ids, origin, seconds, last_slot, and the terms.
SELECT
    hour.group_id,
    series.provider,
    series.model,
    least(greatest(floor(
        extract(epoch FROM hour.bucket - %(origin)s) / %(seconds)s
    )::integer, 0), %(last_slot)s) AS slot,
    sum(hour.seen)::bigint
FROM diagnostics_group_hour AS hour
JOIN diagnostics_series AS series ON series.id = hour.series_id
JOIN diagnostics_version AS version ON version.id = hour.version_id
WHERE hour.project_id = %(project)s
    AND hour.group_id = ANY(%(ids)s)
    AND hour.bucket >= %(since)s
    AND hour.bucket < %(until)s
    <<terms>>
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4

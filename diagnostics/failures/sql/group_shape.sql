-- How often groups were seen in a window, by model and slot of time.
-- Parameters: project, since, until, ids, origin, seconds, last_slot, and those of what is
-- seen.
SELECT
    found.group_id,
    found.provider,
    found.model,
    least(greatest(floor(
        extract(epoch FROM found.at - %(origin)s)::float / %(seconds)s::float
    )::integer, 0), %(last_slot)s) AS slot,
    sum(found.seen)::bigint
FROM (
<<seen>>
) AS found
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4

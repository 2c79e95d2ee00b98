-- How many failure groups of each state were seen in a window.
-- Parameters: project, since, until, ids, kinds, not_kinds, and those of what is seen.
SELECT kept.state, count(*)
FROM (
    SELECT found.group_id
    FROM (
<<seen>>
    ) AS found
    GROUP BY found.group_id
    HAVING sum(found.seen) > 0
) AS counted
JOIN diagnostics_failuregroup AS kept ON kept.id = counted.group_id
WHERE (%(kinds)s::text[] IS NULL
        OR kept.kind = ANY(%(kinds)s::text[])
        OR kept.error_type = ANY(%(kinds)s::text[]))
    AND NOT kept.kind = ANY(%(not_kinds)s::text[])
    AND NOT kept.error_type = ANY(%(not_kinds)s::text[])
GROUP BY kept.state

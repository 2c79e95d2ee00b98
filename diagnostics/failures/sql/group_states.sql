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
WHERE <<of_kinds>>
GROUP BY kept.state

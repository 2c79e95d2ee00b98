-- How many failure groups of each state were seen in a window: one look each, not a sum.
-- Parameters: project, since, until, ids, kinds, not_kinds, and those of the terms.
SELECT kept.state, count(*)
FROM diagnostics_failuregroup AS kept
WHERE kept.project_id = %(project)s
    AND (%(ids)s::bigint[] IS NULL OR kept.id = ANY(%(ids)s::bigint[]))
    AND <<of_kinds>>
    AND coalesce(<<is_seen>>, false)
GROUP BY kept.state

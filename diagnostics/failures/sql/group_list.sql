-- Failure groups seen in a window, with how often, and how much more than the baseline: the
-- time before `split`, scaled to the window. Ordered by last_seen, seen or risen, most first.
-- Parameters: project, since, split, scale, until, states (null: all), ids (null: all), kinds
-- (null: any) and not_kinds, after and last (of the cursor; null: from the beginning),
-- most, and those of what is seen.
SELECT
    kept.id, counted.seen, counted.risen
FROM (
    SELECT
        found.group_id,
        coalesce(sum(found.seen) FILTER (WHERE found.at >= %(since)s), 0)::bigint AS seen,
        (coalesce(sum(found.seen) FILTER (WHERE found.at >= %(split)s), 0)
            - round(coalesce(sum(found.seen) FILTER (WHERE found.at < %(split)s), 0)
                * %(scale)s::numeric)
        )::bigint AS risen
    FROM (
<<seen>>
    ) AS found
    GROUP BY found.group_id
) AS counted
JOIN diagnostics_failuregroup AS kept ON kept.id = counted.group_id
WHERE counted.seen > 0
    AND (%(states)s::text[] IS NULL OR kept.state = ANY(%(states)s::text[]))
    AND <<of_kinds>>
    AND (%(last)s::bigint IS NULL
        OR (<<order>>, kept.id) < (%(after)s::<<type>>, %(last)s::bigint))
ORDER BY <<order>> DESC, kept.id DESC
LIMIT %(most)s

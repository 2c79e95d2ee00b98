-- Failure groups seen in a window, latest first, with how often they were seen in it.
-- Parameters: project, since, until (hours), states (null: all), ids (null: all), kind
-- (null: any), at and last (of the cursor; null: from the beginning), most, and the terms.
SELECT
    kept.id, counted.seen
FROM (
    SELECT hour.group_id, sum(hour.seen)::bigint AS seen
    FROM diagnostics_group_hour AS hour
    JOIN diagnostics_series AS series ON series.id = hour.series_id
    JOIN diagnostics_version AS version ON version.id = hour.version_id
    WHERE hour.project_id = %(project)s
        AND hour.bucket >= %(since)s
        AND hour.bucket < %(until)s
        AND (%(ids)s::bigint[] IS NULL OR hour.group_id = ANY(%(ids)s::bigint[]))
        <<terms>>
    GROUP BY hour.group_id
) AS counted
JOIN diagnostics_failuregroup AS kept ON kept.id = counted.group_id
WHERE counted.seen > 0
    AND (%(states)s::text[] IS NULL OR kept.state = ANY(%(states)s::text[]))
    AND (%(kind)s::text IS NULL OR %(kind)s IN (kept.kind, kept.error_type))
    AND (%(at)s::timestamptz IS NULL OR (kept.last_seen, kept.id) < (%(at)s, %(last)s))
ORDER BY kept.last_seen DESC, kept.id DESC
LIMIT %(most)s

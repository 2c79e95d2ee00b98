-- How often groups were seen in a window: by series, and by slot of time; one reading of
-- the hours and days, which are many, and nothing joined to them.
-- Parameters: project, since, until, ids, origin, seconds, and those of the terms. Returns
-- (group, provider, model, null, seen) and (group, null, null, slot, seen).
WITH counted AS (
    SELECT
        group_id,
        series_id,
        date_bin(make_interval(secs => %(seconds)s), bucket, %(origin)s) AS slot,
        sum(seen)::bigint AS seen
    FROM (
<<counted>>
    ) AS counted
    WHERE true <<narrowed>>
    GROUP BY GROUPING SETS (
        (group_id, series_id),
        (group_id, date_bin(make_interval(secs => %(seconds)s), bucket, %(origin)s))
    )
)
SELECT
    counted.group_id, series.provider, series.model,
    (extract(epoch FROM counted.slot - %(origin)s) / %(seconds)s)::integer AS slot,
    counted.seen
FROM counted
LEFT JOIN diagnostics_series AS series ON series.id = counted.series_id
WHERE counted.seen > 0

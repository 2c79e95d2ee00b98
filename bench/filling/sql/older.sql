-- Counts of the two months before, whose events are gone: the same once more, twice.
-- And what is known of all. Parameters: project.
INSERT INTO diagnostics_rollup_hour_by_version
    (project_id, bucket, series_id, version_id, <<columns>>)
SELECT project_id, bucket - months * interval '30 days', series_id, version_id, <<columns>>
FROM diagnostics_rollup_hour_by_version CROSS JOIN generate_series(1, 2) AS months
ON CONFLICT DO NOTHING;

INSERT INTO diagnostics_rollup_hour (project_id, bucket, series_id, <<columns>>)
SELECT project_id, bucket - months * interval '30 days', series_id, <<columns>>
FROM diagnostics_rollup_hour CROSS JOIN generate_series(1, 2) AS months
ON CONFLICT DO NOTHING;

INSERT INTO diagnostics_rollup_day (project_id, bucket, series_id, <<columns>>)
SELECT project_id, bucket - months * interval '30 days', series_id, <<columns>>
FROM diagnostics_rollup_day CROSS JOIN generate_series(1, 2) AS months
ON CONFLICT DO NOTHING;

INSERT INTO diagnostics_group_hour
    (project_id, bucket, group_id, series_id, version_id, seen)
SELECT
    project_id, bucket - months * interval '30 days', group_id, series_id, version_id, seen
FROM diagnostics_group_hour CROSS JOIN generate_series(1, 2) AS months
ON CONFLICT DO NOTHING;

INSERT INTO diagnostics_rollup_day_by_version
    (project_id, bucket, series_id, version_id, <<columns>>)
SELECT project_id, date_trunc('day', bucket, 'UTC'), series_id, version_id, <<summed>>
FROM diagnostics_rollup_hour_by_version
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4;

INSERT INTO diagnostics_group_day
    (project_id, bucket, group_id, series_id, version_id, seen)
SELECT
    project_id, date_trunc('day', bucket, 'UTC'), group_id, series_id, version_id,
    least(sum(seen), 2147483647)
FROM diagnostics_group_hour
GROUP BY 1, 2, 3, 4, 5
ORDER BY 1, 2, 3, 4, 5;

UPDATE diagnostics_failuregroup AS kept
SET seen = told.seen, first_seen = told.first_seen, last_seen = told.last_seen
FROM (
    SELECT group_id, sum(seen) AS seen, min(bucket) AS first_seen, max(bucket) AS last_seen
    FROM diagnostics_group_hour
    GROUP BY group_id
) AS told
WHERE told.group_id = kept.id;

INSERT INTO diagnostics_rollup_total (project_id, series_id, <<columns>>)
SELECT project_id, series_id, <<summed>>
FROM diagnostics_rollup_day
GROUP BY project_id, series_id;

-- What the fold would have made of a day's events.
-- Parameters: project, since and until (of the day), minutes_since; event and payload: the
-- day's partitions.
-- The rows are new, nothing is known of how many there are.
SET LOCAL enable_nestloop = off;

CREATE TEMPORARY TABLE told ON COMMIT DROP AS
SELECT event.*, series.id AS series_id, version.id AS version_id
FROM <<event>> AS event
JOIN diagnostics_series AS series USING (project_id, environment, node, provider, model)
JOIN diagnostics_version AS version
    USING (project_id, prompt_version, schema, schema_version, source, release);

CREATE TEMPORARY VIEW counted AS
SELECT
    *,
    <<call_columns>>,
    false AS is_repaired, false AS is_coerced
FROM told;

INSERT INTO diagnostics_rollup_minute (project_id, bucket, series_id, <<columns>>)
SELECT project_id, date_trunc('minute', occurred_at), series_id, <<measures>>
FROM counted
WHERE occurred_at >= %(minutes_since)s
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;

INSERT INTO diagnostics_rollup_hour_by_version
    (project_id, bucket, series_id, version_id, <<columns>>)
SELECT
    project_id, date_trunc('hour', occurred_at, 'UTC'), series_id, version_id, <<measures>>
FROM counted
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4;

DROP VIEW counted;

INSERT INTO diagnostics_rollup_hour (project_id, bucket, series_id, <<columns>>)
SELECT project_id, bucket, series_id, <<summed>>
FROM diagnostics_rollup_hour_by_version
WHERE project_id = %(project)s AND bucket >= %(since)s AND bucket < %(until)s
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;

INSERT INTO diagnostics_rollup_day (project_id, bucket, series_id, <<columns>>)
SELECT project_id, date_trunc('day', bucket, 'UTC'), series_id, <<summed>>
FROM diagnostics_rollup_hour
WHERE project_id = %(project)s AND bucket >= %(since)s AND bucket < %(until)s
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;

INSERT INTO diagnostics_group_hour
    (project_id, bucket, group_id, series_id, version_id, seen)
SELECT
    told.project_id, date_trunc('hour', told.occurred_at, 'UTC'), kept.id, told.series_id,
    told.version_id, count(*)
FROM <<payload>> AS payload
JOIN told USING (project_id, event_id, occurred_at)
JOIN diagnostics_failuregroup AS kept USING (project_id, fingerprint)
GROUP BY 1, 2, 3, 4, 5
ORDER BY 1, 2, 3, 4, 5;

-- The rollups of the events above: what the fold would have made of them.
INSERT INTO diagnostics_series (project_id, key, environment, node, provider, model)
SELECT DISTINCT
    project_id, md5(json_build_array(environment, node, provider, model)::text)::uuid,
    environment, node, provider, model
FROM diagnostics_event;

INSERT INTO diagnostics_version
    (project_id, key, prompt_version, schema, schema_version, source, release)
SELECT DISTINCT
    project_id,
    md5(json_build_array(
        prompt_version, schema, schema_version, source, release
    )::text)::uuid,
    prompt_version, schema, schema_version, source, release
FROM diagnostics_event;

CREATE TEMPORARY TABLE minutes
    (project_id, minute, series_id, version_id, <<columns>>) AS
SELECT project_id, date_trunc('minute', occurred_at), series_id, version_id, <<measures>>
FROM (
    SELECT
        event.*, series.id AS series_id, version.id AS version_id,
        event.kind IN ('succeeded', 'parse_invalid', 'provider_error') AS is_call,
        CASE event.kind WHEN 'parse_invalid' THEN parse_error_type END AS invalid_type,
        CASE event.kind WHEN 'provider_error' THEN call_error_type END AS call_type,
        false AS is_repaired, false AS is_coerced
    FROM diagnostics_event AS event
    JOIN diagnostics_series AS series
        ON series.key = md5(json_build_array(
            event.environment, event.node, event.provider, event.model
        )::text)::uuid
    JOIN diagnostics_version AS version
        ON version.key = md5(json_build_array(
            event.prompt_version, event.schema, event.schema_version, event.source,
            event.release
        )::text)::uuid
) AS told
GROUP BY 1, 2, 3, 4;

INSERT INTO diagnostics_rollup_minute (project_id, bucket, series_id, <<columns>>)
SELECT project_id, minute, series_id, <<summed>> FROM minutes
WHERE minute >= now() - interval '48 hours'
GROUP BY 1, 2, 3;

INSERT INTO diagnostics_rollup_hour (project_id, bucket, series_id, <<columns>>)
SELECT project_id, date_trunc('hour', minute, 'UTC'), series_id, <<summed>> FROM minutes
GROUP BY 1, 2, 3;

INSERT INTO diagnostics_rollup_day (project_id, bucket, series_id, <<columns>>)
SELECT project_id, date_trunc('day', minute, 'UTC'), series_id, <<summed>> FROM minutes
GROUP BY 1, 2, 3;

INSERT INTO diagnostics_rollup_hour_by_version
    (project_id, bucket, series_id, version_id, <<columns>>)
SELECT project_id, date_trunc('hour', minute, 'UTC'), series_id, version_id, <<summed>>
FROM minutes
GROUP BY 1, 2, 3, 4;

INSERT INTO diagnostics_failuregroup (
    project_id, fingerprint, fingerprint_version, node, kind, error_type, pointer, detail,
    state, first_seen, last_seen, seen, last_event_id, releases_before
)
SELECT
    project_id, md5(node)::uuid, 1, node, 'parse_invalid', 'truncated', '', '', 'ongoing',
    min(occurred_at), max(occurred_at), count(*), gen_random_uuid(), '[]'
FROM diagnostics_event
WHERE kind <> 'succeeded'
GROUP BY project_id, node;

INSERT INTO diagnostics_group_hour
    (project_id, bucket, group_id, series_id, version_id, seen)
SELECT
    minutes.project_id, date_trunc('hour', minute, 'UTC'), kept.id, series_id, version_id,
    sum(invalid + degraded)
FROM minutes
JOIN diagnostics_series AS series ON series.id = series_id
JOIN diagnostics_failuregroup AS kept ON kept.node = series.node
GROUP BY 1, 2, 3, 4, 5
HAVING sum(invalid + degraded) > 0;

    -- What the fold counted by hour, under the terms. Every series and version is there: a
    -- left join only lets the planner leave out the table that nothing is asked of.
    SELECT
        hour.group_id, series.provider, series.model, hour.bucket AS at,
        hour.seen::bigint AS seen,
        series.environment, version.prompt_version, version.schema_version, version.source,
        version.release
    FROM diagnostics_group_hour AS hour
    LEFT JOIN diagnostics_series AS series ON series.id = hour.series_id
    LEFT JOIN diagnostics_version AS version ON version.id = hour.version_id
    WHERE hour.project_id = %(project)s
        AND hour.bucket >= %(since)s
        AND hour.bucket < %(until)s
        AND (%(ids)s::bigint[] IS NULL OR hour.group_id = ANY(%(ids)s::bigint[]))
        <<terms>>

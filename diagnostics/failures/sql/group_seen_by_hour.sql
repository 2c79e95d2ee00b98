    -- What the fold counted by hour and day, under the terms. Every series and version is
    -- there: a left join only lets the planner leave out the table that nothing is asked of.
    SELECT
        counted.group_id, series.provider, series.model, counted.bucket AS at,
        counted.seen::bigint AS seen,
        series.environment, version.prompt_version, version.schema_version, version.source,
        version.release
    FROM (
<<counted>>
    ) AS counted
    LEFT JOIN diagnostics_series AS series ON series.id = counted.series_id
    LEFT JOIN diagnostics_version AS version ON version.id = counted.version_id
    WHERE true <<terms>>

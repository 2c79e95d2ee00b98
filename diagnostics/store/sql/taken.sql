-- The part of a fold that reads delta rows, with the ids of their series and versions.
taken AS MATERIALIZED (
    SELECT delta.*, series.id AS series_id, version.id AS version_id
    FROM <<delta>> AS delta
    JOIN diagnostics_series AS series
        ON series.project_id = delta.project_id
        AND series.key = md5(json_build_array(<<series_of_delta>>)::text)::uuid
    JOIN diagnostics_version AS version
        ON version.project_id = delta.project_id
        AND version.key = md5(json_build_array(<<version_of_delta>>)::text)::uuid
    WHERE delta.id = ANY(%(ids)s)
)

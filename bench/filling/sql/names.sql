-- The series and versions of a day's events. Parameters: project; event: the day's partition.
INSERT INTO diagnostics_series (project_id, key, environment, node, provider, model)
SELECT
    %(project)s, md5(json_build_array(environment, node, provider, model)::text)::uuid,
    environment, node, provider, model
FROM (
    SELECT DISTINCT environment, node, provider, model FROM <<event>>
) AS told
ON CONFLICT DO NOTHING;

INSERT INTO diagnostics_version
    (project_id, key, prompt_version, schema, schema_version, source, release, served, region,
        credential)
SELECT
    %(project)s,
    md5(json_build_array(
        prompt_version, schema, schema_version, source, release, served, region, credential
    )::text)::uuid,
    prompt_version, schema, schema_version, source, release, served, region, credential
FROM (
    SELECT DISTINCT prompt_version, schema, schema_version, source, release, served, region, credential
    FROM <<event>>
) AS told
ON CONFLICT DO NOTHING;

-- Make the versions of delta rows that are not known yet. Parameters: ids.
INSERT INTO diagnostics_version
    (project_id, key, prompt_version, schema, schema_version, source, release, served,
    region, credential)
SELECT found.*
FROM (
    SELECT DISTINCT
        project_id,
        md5(json_build_array(
            prompt_version, schema, schema_version, source, release, served, region, credential
        )::text)::uuid AS key,
        prompt_version, schema, schema_version, source, release, served, region, credential
    FROM <<delta>>
    WHERE id = ANY(%(ids)s)
) AS found
WHERE NOT EXISTS (
    SELECT FROM diagnostics_version AS known
    WHERE known.project_id = found.project_id AND known.key = found.key
)
ORDER BY found.project_id, found.key
ON CONFLICT DO NOTHING

-- Make the series of delta rows that are not known yet. A folder that makes the same one
-- right now is waited for: its row is seen by the next statement.
-- Parameters: ids.
INSERT INTO diagnostics_series (project_id, key, environment, node, provider, model)
SELECT found.*
FROM (
    SELECT DISTINCT
        project_id,
        md5(json_build_array(environment, node, provider, model)::text)::uuid AS key,
        environment, node, provider, model
    FROM <<delta>>
    WHERE id = ANY(%(ids)s)
) AS found
WHERE NOT EXISTS (
    SELECT FROM diagnostics_series AS known
    WHERE known.project_id = found.project_id AND known.key = found.key
)
ORDER BY found.project_id, found.key
ON CONFLICT DO NOTHING

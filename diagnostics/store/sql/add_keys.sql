-- Make the series, or the versions, of delta rows that are not known yet. A folder that makes the
-- same one right now is waited for: its row is seen by the next statement.
-- Parameters: ids. The table of deltas, the other table and its columns are filled in.
INSERT INTO <<table>> (project_id, key, <<fields>>)
SELECT found.*
FROM (
    SELECT DISTINCT
        project_id, md5(json_build_array(<<fields>>)::text)::uuid AS key, <<fields>>
    FROM <<delta>>
    WHERE id = ANY(%(ids)s)
) AS found
WHERE NOT EXISTS (
    SELECT FROM <<table>> AS known
    WHERE known.project_id = found.project_id AND known.key = found.key
)
ORDER BY found.project_id, found.key
ON CONFLICT DO NOTHING

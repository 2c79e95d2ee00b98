-- The projects that have rows in a table of deltas, whose oldest row is the oldest first: a step
-- into the index for each of them, whatever number of rows they have.
WITH RECURSIVE waiting AS (
    (SELECT project_id, id FROM <<delta>> ORDER BY project_id, id LIMIT 1)
    UNION ALL
    SELECT following.project_id, following.id
    FROM waiting CROSS JOIN LATERAL (
        SELECT project_id, id
        FROM <<delta>>
        WHERE project_id > waiting.project_id
        ORDER BY project_id, id
        LIMIT 1
    ) AS following
)
SELECT project_id FROM waiting ORDER BY id

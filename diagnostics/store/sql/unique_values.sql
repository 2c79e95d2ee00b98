-- Of which fields the newest 5,000 events of a day have nearly as many values as calls: the name,
-- the values and the calls. Parameters: project, since.
SELECT field.name, count(DISTINCT field.value), count(*)
FROM (<<newest_events>>) AS newest,
LATERAL (VALUES
    ('node', newest.node),
    ('model', newest.model),
    ('environment', newest.environment),
    ('source', newest.source),
    ('release', newest.release),
    ('schema_version', newest.schema_version),
    ('prompt_version', newest.prompt_version),
    ('credential', newest.credential)
) AS field (name, value)
WHERE newest.attempt IS NOT NULL AND field.value IS NOT NULL
GROUP BY field.name
HAVING count(DISTINCT field.value) >= 50 AND count(DISTINCT field.value) * 2 > count(*)
ORDER BY field.name

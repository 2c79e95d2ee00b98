-- The references of runs whose goal has a word, without goals that waited longer than a week for
-- their first call: so not all goals are read.
-- Parameters: project, since, word_0 (a pattern).
SELECT correlation_id COLLATE "C"
FROM agents_goal
WHERE project_id = %(project)s
    AND created_at >= %(since)s - interval '7 days'
    AND upper(text_preview) LIKE upper(%(word_0)s)

-- Lock the rows of runs, and make those that are missing: their events come with the next
-- statement, which sees what those have stored who held the rows before.
-- Parameters: project, ids.
INSERT INTO diagnostics_agentrun AS kept (project_id, correlation_id, began_at, ended_at)
SELECT %(project)s, id, failsoft_now(), failsoft_now()
FROM unnest(%(ids)s::text[]) AS id
ORDER BY id COLLATE "C"
-- Changes nothing.
ON CONFLICT (project_id, correlation_id) DO UPDATE SET calls = kept.calls

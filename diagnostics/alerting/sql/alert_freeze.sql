-- Keep minutes as they are known now, for rules to look back at: what comes later than
-- that is in the rollups and moves no alert.
-- Parameters: project, since, until (since <= minute < until).
INSERT INTO diagnostics_alert_minute
SELECT *
FROM diagnostics_rollup_minute
WHERE project_id = %(project)s AND bucket >= %(since)s AND bucket < %(until)s
ON CONFLICT DO NOTHING

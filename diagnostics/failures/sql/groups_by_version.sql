-- With which prompt version each failure group was seen in its first hour, of groups that began
-- in a window. Parameters: project, since, until.
SELECT DISTINCT ON (seen.group_id) seen.group_id, version.source, version.prompt_version
FROM diagnostics_failuregroup AS failure
JOIN diagnostics_group_hour AS seen
    ON seen.project_id = failure.project_id
    AND seen.group_id = failure.id
    AND seen.bucket = date_trunc('hour', failure.first_seen, 'UTC')
JOIN diagnostics_version AS version ON version.id = seen.version_id
WHERE failure.project_id = %(project)s
    AND failure.first_seen >= %(since)s
    AND failure.first_seen < %(until)s
    AND seen.bucket >= %(since)s
    AND seen.bucket < %(until)s
ORDER BY seen.group_id, version.id

-- When each failure group was first seen with each prompt version in a window, of groups
-- that began in it. Parameters: project, since, until.
SELECT
    hour.group_id,
    version.source,
    version.prompt_version,
    min(hour.bucket),
    failure.first_seen
FROM diagnostics_failuregroup AS failure
JOIN diagnostics_group_hour AS hour
    ON hour.project_id = failure.project_id AND hour.group_id = failure.id
JOIN diagnostics_version AS version ON version.id = hour.version_id
WHERE failure.project_id = %(project)s
    AND failure.first_seen >= %(since)s
    AND hour.bucket >= %(since)s
    AND hour.bucket < %(until)s
GROUP BY hour.group_id, version.source, version.prompt_version, failure.first_seen

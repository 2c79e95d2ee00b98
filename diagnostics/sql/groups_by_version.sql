-- When each failure group was first seen with each prompt version in a window, of groups
-- that began in it. Hours are many: they are added up before anything is joined to them.
-- Parameters: project, since, until.
SELECT
    seen.group_id,
    version.source,
    version.prompt_version,
    min(seen.first_hour),
    failure.first_seen
FROM (
    SELECT group_id, version_id, min(bucket) AS first_hour
    FROM diagnostics_group_hour
    WHERE project_id = %(project)s
        AND bucket >= %(since)s
        AND bucket < %(until)s
        AND group_id IN (
            SELECT id
            FROM diagnostics_failuregroup
            WHERE project_id = %(project)s AND first_seen >= %(since)s
        )
    GROUP BY group_id, version_id
) AS seen
JOIN diagnostics_failuregroup AS failure ON failure.id = seen.group_id
JOIN diagnostics_version AS version ON version.id = seen.version_id
GROUP BY seen.group_id, version.source, version.prompt_version, failure.first_seen

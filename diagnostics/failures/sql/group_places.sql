-- Where a group was seen in a window: by everything that may explain it.
-- Parameters: project, since, until, ids, and those of what is seen.
SELECT
    found.provider, found.model, found.environment, found.prompt_version,
    found.schema_version, found.source, found.release, sum(found.seen)::bigint
FROM (
<<seen>>
) AS found
GROUP BY 1, 2, 3, 4, 5, 6, 7

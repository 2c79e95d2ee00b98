-- Runs and degraded runs of every series in equal buckets, for the curves of a table.
-- Parameters: project, since, until, seconds (width of a bucket). Oldest bucket first.
SELECT
    environment,
    node,
    provider,
    model,
    floor(extract(epoch FROM occurred_at - %(since)s) / %(seconds)s)::integer AS bucket,
    count(*)::integer AS runs,
    count(*) FILTER (WHERE kind = 'degraded')::integer AS degraded
FROM diagnostics_event
WHERE project_id = %(project)s
    AND occurred_at >= %(since)s
    AND occurred_at < %(until)s
    AND kind IN ('succeeded', 'degraded')
GROUP BY environment, node, provider, model, bucket
ORDER BY bucket

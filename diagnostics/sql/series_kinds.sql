-- How often each kind of failure was seen in every series.
-- Parameters: project, since, until.
SELECT
    environment,
    node,
    provider,
    model,
    coalesce(parse_error_type, kind) AS failure,
    count(*)::integer AS seen
FROM diagnostics_event
WHERE project_id = %(project)s
    AND occurred_at >= %(since)s
    AND occurred_at < %(until)s
    AND kind IN ('parse_invalid', 'provider_error', 'unknown_tool')
GROUP BY environment, node, provider, model, failure

-- What every series did in a window, and its baseline before it, in one pass.
-- Parameters: project, since, until, baseline_since, filters (JSON object; a key that is
-- missing does not filter, a null asks for null).
WITH scoped AS (
    SELECT
        environment, node, provider, model, kind, attempt, latency_ms,
        coalesce(input_tokens, 0)::bigint + coalesce(output_tokens, 0) AS tokens,
        occurred_at >= %(since)s AS is_current,
        kind IN ('succeeded', 'degraded') AS is_end
    FROM diagnostics_event
    WHERE project_id = %(project)s
        AND occurred_at >= %(baseline_since)s
        AND occurred_at < %(until)s
        AND (NOT %(filters)s::jsonb ? 'environment'
            OR environment IS NOT DISTINCT FROM %(filters)s::jsonb ->> 'environment')
        AND (NOT %(filters)s::jsonb ? 'node'
            OR node IS NOT DISTINCT FROM %(filters)s::jsonb ->> 'node')
        AND (NOT %(filters)s::jsonb ? 'provider'
            OR provider IS NOT DISTINCT FROM %(filters)s::jsonb ->> 'provider')
        AND (NOT %(filters)s::jsonb ? 'model'
            OR model IS NOT DISTINCT FROM %(filters)s::jsonb ->> 'model')
        AND (NOT %(filters)s::jsonb ? 'source'
            OR source IS NOT DISTINCT FROM %(filters)s::jsonb ->> 'source')
        AND (NOT %(filters)s::jsonb ? 'prompt_version'
            OR prompt_version IS NOT DISTINCT FROM %(filters)s::jsonb ->> 'prompt_version')
)
SELECT
    environment,
    node,
    provider,
    model,
    count(*) FILTER (WHERE is_current AND is_end) AS runs,
    count(*) FILTER (WHERE is_current AND kind = 'degraded') AS degraded,
    count(*) FILTER (
        WHERE is_current AND kind = 'succeeded' AND attempt = 1
    ) AS first_pass,
    count(*) FILTER (
        WHERE is_current AND kind = 'succeeded' AND attempt > 1
    ) AS repaired,
    coalesce(sum(tokens) FILTER (WHERE is_current AND attempt > 1), 0)::bigint
        AS retry_tokens,
    coalesce(sum(latency_ms) FILTER (WHERE is_current AND attempt > 1), 0)::bigint
        AS retry_milliseconds,
    count(*) FILTER (WHERE NOT is_current AND is_end) AS baseline_runs,
    count(*) FILTER (WHERE NOT is_current AND kind = 'degraded') AS baseline_degraded
FROM scoped
GROUP BY environment, node, provider, model

-- Events of the last days, evenly: 200 series, a tenth of the attempts invalid.
INSERT INTO diagnostics_event (
    project_id, event_id, occurred_at, received_at, node, kind, correlation_id, cycle,
    attempt, attempts, provider, model, environment, source, release, schema,
    schema_version, prompt_version, parse_error_type, reason, status, finish_reason,
    output_mode, latency_ms, input_tokens, output_tokens
)
SELECT
    %(project)s,
    (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
    at, at,
    CASE n %% 4 WHEN 0 THEN 'next_step' WHEN 1 THEN 'actions' ELSE 'plan' END,
    CASE n %% 10 WHEN 0 THEN 'parse_invalid' WHEN 1 THEN 'degraded' ELSE 'succeeded' END,
    'run-' || (n / 3), 1,
    CASE WHEN n %% 10 <> 1 THEN 1 + (n %% 7 = 0)::integer END,
    CASE WHEN n %% 10 = 1 THEN 2 END,
    'provider-' || (n %% 5), 'model-' || (n / 5 %% 20),
    CASE n / 100 %% 2 WHEN 0 THEN 'prod' ELSE 'stage' END,
    'bot-' || (n / 200 %% 2), 'r' || (n * %(days)s / %(size)s / 10), 'PlanPayload', '1',
    'v' || (n * %(days)s / %(size)s / 6),
    CASE WHEN n %% 10 = 0 THEN 'truncated' END,
    CASE WHEN n %% 10 = 1 THEN 'plan_parse_failed' END,
    CASE WHEN n %% 10 = 1 THEN 'failed' END,
    'stop', 'text', 400 + n %% 3000, 900, 300
FROM (
    SELECT
        n,
        now() - make_interval(secs => (%(size)s - n) * %(days)s * 86400.0 / %(size)s) AS at
    FROM generate_series(1::bigint, %(size)s) AS n
) AS numbered;

INSERT INTO diagnostics_eventidentity
    (project_id, event_id, occurred_at, content_hash, received_at)
SELECT project_id, event_id, occurred_at, sha256(event_id::text::bytea), received_at
FROM diagnostics_event
WHERE occurred_at > now() - interval '8 days';

INSERT INTO diagnostics_event_payload (
    project_id, event_id, occurred_at, raw_output_preview, validation_errors, repairs,
    coerced, attributes, redacted_kinds, fingerprint
)
SELECT
    project_id, event_id, occurred_at, repeat(md5(event_id::text), 20),
    '[{"path": "/steps/2/tool", "code": "missing", "message": "Field required"}]',
    '[]', '[]', '{}', '{}', md5(node)::uuid
FROM diagnostics_event
WHERE kind <> 'succeeded';

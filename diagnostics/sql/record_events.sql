-- Store a batch of events exactly once, and say of each what became of it (X-16).
-- Parameters: rows (JSON array), project. Returns (index, status) in order.
WITH incoming AS (
    SELECT *
    FROM json_to_recordset(%(rows)s::json) AS row (
        index integer, event_id uuid, content_hash text, occurred_at timestamptz,
        node text, kind text, correlation_id text, cycle integer, attempt integer,
        attempts integer, provider text, model text, environment text, source text,
        release text, schema text, schema_version text, prompt_version text,
        parse_error_type text, reason text, status text, finish_reason text,
        output_mode text, latency_ms integer, input_tokens integer,
        output_tokens integer, payload json
    )
),
-- The same id twice in one batch: the first one speaks. Sorted, so that two batches
-- that overlap wait for each other in one order and never for ever.
speaking AS (
    SELECT DISTINCT ON (event_id) * FROM incoming ORDER BY event_id, index
),
seen AS (
    SELECT identity.event_id, identity.content_hash
    FROM diagnostics_eventidentity AS identity
    JOIN speaking USING (event_id)
    WHERE identity.project_id = %(project)s
),
-- The update changes nothing; it waits for a transaction that is storing the same id
-- right now and then returns the hash that won.
claimed AS (
    INSERT INTO diagnostics_eventidentity AS identity
        (project_id, event_id, occurred_at, content_hash, received_at)
    SELECT %(project)s, event_id, occurred_at, decode(content_hash, 'hex'), failsoft_now()
    FROM speaking
    WHERE NOT EXISTS (SELECT FROM seen WHERE seen.event_id = speaking.event_id)
    ORDER BY event_id
    ON CONFLICT (project_id, event_id)
        DO UPDATE SET content_hash = identity.content_hash
    RETURNING event_id, identity.content_hash, xmax = 0 AS is_new
),
stored AS (
    INSERT INTO diagnostics_event (
        project_id, event_id, occurred_at, received_at, node, kind, correlation_id,
        cycle, attempt, attempts, provider, model, environment, source, release, schema,
        schema_version, prompt_version, parse_error_type, reason, status, finish_reason,
        output_mode, latency_ms, input_tokens, output_tokens
    )
    SELECT
        %(project)s, event_id, occurred_at, failsoft_now(), node, kind, correlation_id,
        cycle, attempt, attempts, provider, model, environment, source, release, schema,
        schema_version, prompt_version, parse_error_type, reason, status, finish_reason,
        output_mode, latency_ms, input_tokens, output_tokens
    FROM speaking JOIN claimed USING (event_id)
    WHERE claimed.is_new
    -- An identity is forgotten after 8 days, the event is not.
    ON CONFLICT DO NOTHING
    RETURNING event_id
),
detailed AS (
    INSERT INTO diagnostics_event_payload (
        project_id, event_id, occurred_at, raw_output_preview, validation_errors, repairs,
        coerced, attributes, original_error_type, tool, temperature, max_output_tokens,
        redacted_kinds, sampled_out
    )
    SELECT
        %(project)s, event_id, occurred_at, detail.raw_output_preview,
        detail.validation_errors, detail.repairs, detail.coerced, detail.attributes,
        detail.original_error_type, detail.tool, detail.temperature,
        detail.max_output_tokens, detail.redacted_kinds, detail.sampled_out
    FROM speaking
    JOIN stored USING (event_id)
    CROSS JOIN LATERAL json_to_record(speaking.payload) AS detail (
        raw_output_preview text, validation_errors jsonb, repairs jsonb, coerced jsonb,
        attributes jsonb, original_error_type text, tool text,
        temperature double precision, max_output_tokens integer, redacted_kinds text[],
        sampled_out boolean
    )
    WHERE speaking.payload IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT
    incoming.index,
    CASE
        WHEN encode(coalesce(seen.content_hash, claimed.content_hash), 'hex')
            <> incoming.content_hash THEN 'conflict'
        WHEN stored.event_id IS NOT NULL AND incoming.index = speaking.index THEN 'created'
        ELSE 'duplicate'
    END AS status
FROM incoming
JOIN speaking USING (event_id)
LEFT JOIN seen USING (event_id)
LEFT JOIN claimed USING (event_id)
LEFT JOIN stored USING (event_id)
ORDER BY incoming.index

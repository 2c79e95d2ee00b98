,
-- The part of record_events that details and groups failures; a batch of good attempts is
-- stored without it.
detailed AS (
    INSERT INTO diagnostics_event_payload (
        project_id, event_id, occurred_at, raw_output_preview, validation_errors, repairs,
        coerced, attributes, original_error_type, tool, temperature, max_output_tokens,
        redacted_kinds, sampled_out, fingerprint
    )
    SELECT
        %(project)s, event_id, occurred_at, detail.raw_output_preview,
        detail.validation_errors, detail.repairs, detail.coerced, detail.attributes,
        detail.original_error_type, detail.tool, detail.temperature,
        detail.max_output_tokens, detail.redacted_kinds, detail.sampled_out,
        speaking.fingerprint
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
),
grouped AS (
    INSERT INTO diagnostics_group_delta (
        project_id, fingerprint, fingerprint_version, kind, error_type, pointer, detail,
        bucket, seen, first_at, last_at, last_event_id, <<series>>, <<version>>
    )
    SELECT
        %(project)s, fingerprint, fingerprint_version, kind, error_type, pointer, detail,
        date_trunc('hour', occurred_at, 'UTC'), count(*), min(occurred_at),
        max(occurred_at), (array_agg(event_id ORDER BY occurred_at DESC))[1],
        <<series>>, <<version>>
    FROM speaking JOIN stored USING (event_id)
    WHERE fingerprint IS NOT NULL
    GROUP BY
        fingerprint, fingerprint_version, kind, error_type, pointer, detail,
        date_trunc('hour', occurred_at, 'UTC'), <<series>>, <<version>>
)

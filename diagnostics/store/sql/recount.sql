-- Count everything from the events themselves: what the rollups must add up to.
SELECT <<measures>>
FROM (
    SELECT
        event.*,
        kind IN ('succeeded', 'parse_invalid', 'provider_error') AS is_call,
        CASE kind WHEN 'parse_invalid' THEN parse_error_type END AS invalid_type,
        CASE kind WHEN 'provider_error' THEN call_error_type END AS call_type,
        payload.repairs <> '[]' AS is_repaired,
        payload.coerced <> '[]' AS is_coerced
    FROM diagnostics_event AS event
    LEFT JOIN diagnostics_event_payload AS payload
        USING (project_id, event_id, occurred_at)
) AS counted

-- Say of calls which attempt in which cycle they were, and count what follows from it: the
-- difference to what was counted of them before. Who was placed before does not count again
-- in the running totals, which never go down. Parameters: project, rows (JSON array).
WITH placed AS (
    SELECT *
    FROM json_to_recordset(%(rows)s::json) AS row (
        event_id uuid, occurred_at timestamptz, cycle integer, attempt integer
    )
),
moved AS MATERIALIZED (
    SELECT event.*, placed.attempt AS new_attempt
    FROM diagnostics_event AS event JOIN placed USING (event_id, occurred_at)
    WHERE event.project_id = %(project)s
        AND event.attempt IS DISTINCT FROM placed.attempt
),
changed AS (
    UPDATE diagnostics_event AS event
    SET attempt = placed.attempt, cycle = placed.cycle
    FROM placed
    WHERE event.project_id = %(project)s
        AND event.event_id = placed.event_id
        AND event.occurred_at = placed.occurred_at
        AND (event.attempt, event.cycle) IS DISTINCT FROM (placed.attempt, placed.cycle)
)
INSERT INTO diagnostics_rollup_delta (
    project_id, minute, is_marked, is_demo, <<series>>, <<version>>, <<columns>>
)
SELECT
    %(project)s, minute, is_marked, is_known, <<series>>, <<version>>, <<net>>
FROM (
    SELECT
        date_trunc('minute', occurred_at), is_marked, is_known, sign, <<series>>, <<version>>,
        <<measures>>
    FROM (
        SELECT
            occurred_at, time_mark IS NOT NULL AS is_marked,
            moved.attempt IS NOT NULL AS is_known, counted.sign, counted.attempt,
            <<series>>, <<version>>, kind, attempts, reason, status, is_simplified,
            unchecked, is_altered, latency_ms, input_tokens, output_tokens, kind <> 'cancelled' AS is_call,
            -- What does not depend on the attempt is the same on both sides.
            NULL AS invalid_type, NULL AS call_type, false AS is_repaired, false AS is_coerced
        FROM moved
        CROSS JOIN LATERAL (
            VALUES (-1, moved.attempt), (1, moved.new_attempt)
        ) AS counted (sign, attempt)
    ) AS told
    GROUP BY
        date_trunc('minute', occurred_at), is_marked, is_known, sign, <<series>>, <<version>>
) AS signed (
    minute, is_marked, is_known, sign, <<series>>, <<version>>, <<columns>>
)
GROUP BY
    minute, is_marked, is_known, <<series>>, <<version>>

-- Keep what evaluations found; one a slice and minute, whoever takes it. Those of now are
-- added to the day of their rule: days are kept for longer.
-- Parameters: is_backfilled, rows (JSON).
WITH kept AS (
    INSERT INTO diagnostics_evaluation
        (state_id, slot, k, n, value, bound, rule_version, verdict, state_after,
         is_backfilled)
    SELECT id, to_timestamp(told.at), k, n, value, bound, rule_version, verdict, state_after,
        %(is_backfilled)s
    FROM json_to_recordset(%(rows)s::json) AS told (
        id bigint, at double precision, k bigint, n bigint, value double precision,
        bound double precision, rule_version integer, verdict text, state_after text
    )
    ON CONFLICT DO NOTHING
    RETURNING state_id, slot
)
INSERT INTO diagnostics_ruleday AS known (rule_id, day, evaluations)
SELECT state.rule_id, (kept.slot AT TIME ZONE 'UTC')::date, count(*)
FROM kept
JOIN diagnostics_alertstate AS state ON state.id = kept.state_id
WHERE NOT %(is_backfilled)s
GROUP BY 1, 2
ON CONFLICT (rule_id, day) DO UPDATE SET evaluations = known.evaluations + excluded.evaluations

-- Keep what looks found; one look a slice and minute, whoever takes it.
-- Parameters: is_backfilled, rows (JSON).
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

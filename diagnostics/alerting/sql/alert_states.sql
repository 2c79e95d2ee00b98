-- Write how slices stand after a look, all of them in one statement.
-- Parameter: rows, JSON; a memory of null stays as it is.
UPDATE diagnostics_alertstate AS kept
SET state = told.state,
    since = to_timestamp(told.since),
    detector_state = told.detector_state,
    memory = coalesce(told.memory, kept.memory),
    rule_version = told.rule_version,
    last_data_at = to_timestamp(told.last_data_at)
FROM json_to_recordset(%(rows)s::json) AS told (
    id bigint, state text, since double precision, detector_state jsonb, memory jsonb,
    rule_version integer, last_data_at double precision
)
WHERE kept.id = told.id

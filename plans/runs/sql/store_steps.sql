-- Store what has become of steps, if the claim still holds the run.
-- A row that is final stays as it is, so that the same batch may come twice.
WITH held AS MATERIALIZED (
    SELECT id, cancel_requested_at IS NOT NULL AS cancelled
    FROM plans_run
    WHERE id = %(run)s AND state = 'running' AND fencing_token = %(token)s
    FOR NO KEY UPDATE
),
written AS (
    UPDATE plans_runstep AS step
    SET state = given.state,
        ok = given.ok,
        skipped = given.skipped,
        reason = given.reason,
        error = given.error,
        output = given.output,
        starts = given.starts,
        fencing_token = %(token)s,
        started_at = coalesce(to_timestamp(given.started), step.started_at),
        ended_at = to_timestamp(given.ended)
    FROM held, json_to_recordset(%(rows)s::json) AS given (
        position integer, state text, ok boolean, skipped boolean, reason text,
        error text, output json, starts integer,
        started double precision, ended double precision
    )
    WHERE step.run_id = held.id
        AND step.position = given.position
        AND step.state <> 'final'
    RETURNING step.position
)
SELECT held.cancelled, (SELECT count(*) FROM written)
FROM held;

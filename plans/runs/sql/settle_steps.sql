-- Store results under the tokens of their claims; steps that another worker has taken over
-- are not changed. A null token means that the step was not claimed.
UPDATE plans_runstep AS step
SET state = 'final',
    ok = given.ok,
    skipped = given.skipped,
    reason = given.reason,
    error = given.error,
    output = given.output,
    root_position = given.root,
    lease_until = NULL,
    ended_at = failsoft_now()
FROM json_to_recordset(%(rows)s::json) AS given (
    position integer, token bigint, ok boolean, skipped boolean, reason text,
    error text, output json, root integer
)
WHERE step.run_id = %(run)s
    AND step.position = given.position
    AND (
        step.state = 'started' AND step.fencing_token = given.token
        OR step.state = 'pending' AND given.token IS NULL
    )
RETURNING step.position;

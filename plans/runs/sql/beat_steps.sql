-- Renew the leases of steps, and return whether cancellation of the run was requested.
WITH held AS (
    UPDATE plans_runstep AS step
    SET lease_until = failsoft_now() + %(lease)s
    FROM unnest(%(positions)s::integer[], %(tokens)s::bigint[])
        AS given (position, token)
    WHERE step.run_id = %(run)s
        AND step.position = given.position
        AND step.state = 'started'
        AND step.fencing_token = given.token
    RETURNING step.position
)
SELECT run.cancel_requested_at IS NOT NULL, (SELECT count(*) FROM held)
FROM plans_run AS run
WHERE run.id = %(run)s;

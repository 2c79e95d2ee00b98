-- Take steps of a distributed run that are ready, or whose worker went silent.
UPDATE plans_runstep AS step
SET state = 'started',
    lease_until = failsoft_now() + %(lease)s,
    fencing_token = step.fencing_token + 1,
    starts = step.starts + 1,
    started_at = coalesce(step.started_at, failsoft_now())
FROM plans_run AS run
WHERE run.id = %(run)s
    AND run.state = 'running'
    AND run.cancel_requested_at IS NULL
    AND (run.deadline_at IS NULL OR run.deadline_at > failsoft_now())
    AND step.run_id = run.id
    AND step.position = ANY(%(positions)s)
    AND step.waits_for = 0
    AND step.starts < %(most)s
    AND (
        step.state = 'pending'
        OR step.state = 'started' AND step.lease_until < failsoft_now()
    )
RETURNING step.position, step.fencing_token, step.starts, step.call_group;

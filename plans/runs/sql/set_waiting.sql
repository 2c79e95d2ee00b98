-- Note what steps wait for, when a distributed run begins or goes on.
UPDATE plans_runstep AS step
SET waits_for = given.results, lease_until = NULL
FROM unnest(%(positions)s::integer[], %(results)s::integer[])
    AS given (position, results)
WHERE step.run_id = %(run)s AND step.position = given.position;

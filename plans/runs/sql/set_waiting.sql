-- Store the number of open dependencies of steps, when a distributed run begins or resumes.
UPDATE plans_runstep AS step
SET waits_for = given.results, lease_until = NULL
FROM unnest(%(positions)s::integer[], %(results)s::integer[])
    AS given (position, results)
WHERE step.run_id = %(run)s AND step.position = given.position;

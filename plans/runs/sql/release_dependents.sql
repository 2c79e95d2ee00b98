-- Count down what steps wait for; the caller holds the run's row.
UPDATE plans_runstep AS step
SET waits_for = step.waits_for - given.results
FROM unnest(%(positions)s::integer[], %(results)s::integer[])
    AS given (position, results)
WHERE step.run_id = %(run)s AND step.position = given.position
RETURNING step.position, step.waits_for;

-- Undo the claims of steps whose tools were not called.
UPDATE plans_runstep AS step
SET state = 'pending', starts = step.starts - 1
FROM unnest(%(positions)s::integer[], %(tokens)s::bigint[]) AS given (position, token)
WHERE step.run_id = %(run)s
    AND step.position = given.position
    AND step.state = 'started'
    AND step.fencing_token = given.token
RETURNING step.position;

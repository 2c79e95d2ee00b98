-- Renew the lease of a run, and return whether its cancellation was requested.
UPDATE plans_run
SET lease_until = failsoft_now() + %(lease)s
WHERE id = %(run)s AND state = 'running' AND fencing_token = %(token)s
RETURNING cancel_requested_at IS NOT NULL;

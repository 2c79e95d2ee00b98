-- Take a run that is queued, or whose worker went silent. Its time begins with the first
-- claim: waiting for a worker is not its fault.
UPDATE plans_run
SET state = 'running',
    lease_until = failsoft_now() + %(lease)s,
    fencing_token = fencing_token + 1,
    starts = starts + 1,
    refused_reason = '',
    refusals = 0,
    first_refused_at = NULL,
    deadline_at = CASE
        WHEN started_at IS NULL THEN deadline_at + (failsoft_now() - created_at)
        ELSE deadline_at
    END,
    started_at = coalesce(started_at, failsoft_now())
WHERE id = %(run)s
    AND starts < %(most)s
    AND (state = 'queued' OR state = 'running' AND lease_until < failsoft_now())
RETURNING fencing_token, starts, cancel_requested_at IS NOT NULL,
    extract(epoch FROM failsoft_now())::double precision,
    extract(epoch FROM deadline_at)::double precision;

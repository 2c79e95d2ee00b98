-- Take the next notification that is due: of a channel and incident the earliest first,
-- of a channel that fails no more than one a minute. What the sender has under way leaves
-- out its channels, the kinds that are full and those that a project has all but one place of,
-- and puts its projects behind the others.
WITH next AS (
    SELECT n.id
    FROM diagnostics_notification AS n
    JOIN diagnostics_channel AS c ON c.id = n.channel_id
    WHERE n.state = 'queued' AND (c.enabled OR n.reason = 'test')
      AND c.kind <> ALL(%(full)s::text[])
      AND n.channel_id <> ALL(%(channels)s::bigint[])
      AND (n.project_id, c.kind) NOT IN (
          SELECT * FROM unnest(%(crowding_projects)s::bigint[], %(crowded_kinds)s::text[]))
      AND n.next_attempt_at <= failsoft_now()
      AND (n.lease_until IS NULL OR n.lease_until < failsoft_now())
      AND (c.failing_since IS NULL OR c.probed_at IS NULL
           OR c.probed_at <= failsoft_now() - %(pace)s)
      AND NOT EXISTS (
          SELECT 1 FROM diagnostics_notification AS earlier
          WHERE earlier.incident_id = n.incident_id
            AND earlier.channel_id = n.channel_id
            AND earlier.state = 'queued'
            -- What some addresses have and others wait for holds up the latter only.
            AND earlier.sent_at IS NULL
            AND earlier.id < n.id)
    ORDER BY n.project_id = ANY(%(projects)s::bigint[]), n.next_attempt_at, n.id
    LIMIT 1
    FOR UPDATE OF n SKIP LOCKED
)
UPDATE diagnostics_notification AS n
SET lease_until = failsoft_now() + %(lease)s,
    fencing = n.fencing + 1,
    tries = n.tries + 1
FROM next
WHERE n.id = next.id
RETURNING n.id, n.fencing

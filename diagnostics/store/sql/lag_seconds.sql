-- How long the newest 1,000 events were on their way, in seconds: the 95th percentile.
-- Parameter: project. An event from a clock that runs ahead was no time on its way; those of
-- the demonstration were written at once for two weeks.
SELECT percentile_cont(0.95) WITHIN GROUP (
    ORDER BY greatest(extract(epoch FROM newest.received_at - newest.occurred_at), 0)
)
FROM (
    SELECT event.received_at, event.occurred_at
    FROM diagnostics_event AS event
    WHERE event.project_id = %(project)s AND coalesce(event.source, '') NOT LIKE 'demo-%%'
    ORDER BY event.occurred_at DESC, event.event_id DESC
    LIMIT 1000
) AS newest

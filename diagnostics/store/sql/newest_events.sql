SELECT event.*
FROM diagnostics_event AS event
WHERE event.project_id = %(project)s AND event.occurred_at >= %(since)s
ORDER BY event.occurred_at DESC, event.event_id DESC
LIMIT 5000

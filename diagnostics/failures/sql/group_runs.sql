-- How many runs the latest failures of each group hit, and how many of these came to a good
-- end all the same. A run is (correlation id, cycle, node).
-- Parameters: project, ids, since, until, latest (a day more, for good ends), most (failures
-- looked at, a group), and those of the condition on the event. Each look names the whole
-- window beside its own moment: so the days outside of it need not even be planned for.
SELECT
    kept.id,
    count(DISTINCT (hit.correlation_id, hit.cycle, hit.node))::integer AS runs,
    (count(DISTINCT (hit.correlation_id, hit.cycle, hit.node))
        FILTER (WHERE hit.is_repaired))::integer AS repaired
FROM diagnostics_failuregroup AS kept
CROSS JOIN LATERAL (
    SELECT
        event.correlation_id, event.cycle, event.node,
        EXISTS (
            SELECT
            FROM diagnostics_event AS good
            WHERE good.project_id = %(project)s
                AND good.correlation_id = event.correlation_id
                AND good.cycle = event.cycle
                AND good.node = event.node
                AND good.kind = 'succeeded'
                AND good.occurred_at >= event.occurred_at
                AND good.occurred_at < event.occurred_at + interval '1 day'
                AND good.occurred_at >= %(since)s
                AND good.occurred_at < %(latest)s
        ) AS is_repaired
    FROM (
        SELECT event_id, occurred_at
        FROM diagnostics_event_payload
        WHERE project_id = %(project)s
            AND fingerprint = kept.fingerprint
            AND occurred_at >= %(since)s
            AND occurred_at < %(until)s
        ORDER BY occurred_at DESC, event_id DESC
        LIMIT %(most)s
    ) AS sample
    -- One look each, into its day: as a plain join all events of the days may be read.
    CROSS JOIN LATERAL (
        SELECT *
        FROM diagnostics_event
        WHERE project_id = %(project)s
            AND event_id = sample.event_id
            AND occurred_at = sample.occurred_at
            AND occurred_at >= %(since)s
            AND occurred_at < %(until)s
        LIMIT 1
    ) AS event
    WHERE true <<condition>>
) AS hit
WHERE kept.id = ANY(%(ids)s) AND kept.project_id = %(project)s
GROUP BY kept.id

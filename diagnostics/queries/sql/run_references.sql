-- The references of runs that have a word: in their names, in a failure or in its details. What
-- calls that went well name, the row of their run has. Searches that each have an index; an OR of
-- them would read every run.
-- Parameters: project, since, word_0 (a pattern) and beginning (a pattern).
SELECT run.correlation_id
FROM diagnostics_agentrun AS run
WHERE run.project_id = %(project)s
    AND run.began_at >= %(since)s
    AND run.correlation_id LIKE %(beginning)s
UNION ALL
SELECT run.correlation_id
FROM diagnostics_agentrun AS run
WHERE run.project_id = %(project)s
    AND run.began_at >= %(since)s
    AND upper(concat_ws(
        E'\x1f', run.source, array_to_string(run.nodes, E'\x1f'),
        array_to_string(run.called_models, E'\x1f')
    )) LIKE upper(%(word_0)s)
    -- Asked once: mostly nothing has such a name, and no run is read.
    AND EXISTS (
        SELECT
        FROM (
            SELECT node, provider, model, null AS source
            FROM diagnostics_series
            WHERE project_id = %(project)s
            UNION ALL
            SELECT null, null, null, source
            FROM diagnostics_version
            WHERE project_id = %(project)s
            UNION ALL
            -- Of events that were not folded yet.
            SELECT node, provider, model, source
            FROM diagnostics_rollup_delta
            WHERE project_id = %(project)s
        ) AS known
        WHERE upper(node) LIKE upper(%(word_0)s)
            OR upper(concat_ws('/', provider, model)) LIKE upper(%(word_0)s)
            OR upper(source) LIKE upper(%(word_0)s)
    )
UNION ALL
SELECT event.correlation_id COLLATE "C"
FROM diagnostics_event AS event
WHERE event.project_id = %(project)s
    AND event.occurred_at >= %(since)s
    AND event.kind <> 'succeeded'
    AND <<in_event>>
UNION ALL
SELECT event.correlation_id COLLATE "C"
FROM diagnostics_event_payload AS payload
JOIN diagnostics_event AS event
    ON event.project_id = %(project)s
    AND event.event_id = payload.event_id
    AND event.occurred_at = payload.occurred_at
    AND event.occurred_at >= %(since)s
WHERE payload.project_id = %(project)s
    AND payload.occurred_at >= %(since)s
    AND <<in_details>>

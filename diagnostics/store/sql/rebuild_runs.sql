-- Make the rows of runs, which this transaction has locked, anew from their events; those
-- that have none go. Parameters: project, ids.
WITH told AS (
    SELECT
        *, correlation_id COLLATE "C" AS id,
        <<call_columns>>
    FROM diagnostics_event
    WHERE project_id = %(project)s AND correlation_id = ANY(%(ids)s::text[])
),
summed AS (
    SELECT id, <<run_sums>>
    FROM told
    GROUP BY id
),
deciding AS (
    SELECT DISTINCT ON (id)
        id, coalesce(claimed_at, occurred_at) AS claimed_at, event_id, <<run_names>>
    FROM told
    ORDER BY id, model IS NOT NULL DESC, coalesce(claimed_at, occurred_at) DESC, event_id DESC
),
made AS (
    UPDATE diagnostics_agentrun AS kept
    SET (<<run_columns>>, decided_at, decided_by, <<run_names>>)
        = ROW (<<summed_columns>>, deciding.claimed_at, deciding.event_id, <<deciding_names>>)
    FROM summed JOIN deciding USING (id)
    WHERE kept.project_id = %(project)s AND kept.correlation_id = summed.id
)
DELETE FROM diagnostics_agentrun AS kept
WHERE project_id = %(project)s
    AND correlation_id = ANY(%(ids)s::text[])
    AND NOT EXISTS (SELECT FROM summed WHERE summed.id = kept.correlation_id)

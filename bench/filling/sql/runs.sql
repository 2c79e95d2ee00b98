-- A row per run of the day, as rebuild_runs.sql makes them; a run that goes on over midnight
-- keeps the row of its first day.
WITH told AS (
    SELECT *, <<call_columns>>
    FROM <<event>>
),
summed AS (
    SELECT correlation_id, <<run_sums>>
    FROM told
    GROUP BY correlation_id
),
deciding AS (
    SELECT DISTINCT ON (correlation_id) correlation_id, occurred_at, event_id, <<run_names>>
    FROM told
    ORDER BY correlation_id, model IS NOT NULL DESC, occurred_at DESC, event_id DESC
)
INSERT INTO diagnostics_agentrun (
    project_id, correlation_id, <<run_columns>>, decided_at, decided_by, <<run_names>>
)
SELECT
    %(project)s, summed.correlation_id, <<summed_columns>>,
    deciding.occurred_at, deciding.event_id, <<deciding_names>>
FROM summed JOIN deciding USING (correlation_id)
ON CONFLICT DO NOTHING

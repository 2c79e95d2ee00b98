-- The part of record_events that adds what is new to its runs. Whatever the order in which
-- events come, or the batches, the row is the same: sums of what is new, earliest and latest,
-- the first names of a set, and the names of the event that decides. Sorted: batches that
-- meet wait for each other in one order.
summed AS (
    SELECT
        correlation_id, max(rank) AS rank,
        CASE WHEN bool_or(is_unplaced) THEN max(now) + interval '2 minutes' END AS settles_at,
        <<run_sums>>
    FROM (
        SELECT
            *, <<call_columns>>
        FROM speaking JOIN stored USING (event_id)
    ) AS fresh
    GROUP BY correlation_id
),
ran AS (
    INSERT INTO diagnostics_agentrun AS kept (
        project_id, correlation_id, <<run_columns>>, settles_at, decided_at, decided_by,
        <<run_names>>
    )
    SELECT
        %(project)s, summed.correlation_id, <<summed_columns>>, settles_at, claimed_at, event_id,
        <<run_names>>
    FROM summed JOIN speaking USING (rank)
    ORDER BY summed.correlation_id COLLATE "C"
    ON CONFLICT (project_id, correlation_id) DO UPDATE SET
        began_at = least(kept.began_at, excluded.began_at),
        ended_at = greatest(kept.ended_at, excluded.ended_at),
        attempts = greatest(kept.attempts, excluded.attempts),
        <<added_run_counts>>,
        nodes = <<joined_nodes>>,
        called_models = <<joined_called_models>>,
        kinds = <<joined_kinds>>,
        settles_at = greatest(kept.settles_at, excluded.settles_at),
        <<run_decided>>
)

min(occurred_at - coalesce(latency_ms, 0) * interval '1 millisecond') AS began_at,
max(occurred_at) AS ended_at,
count(*) FILTER (WHERE is_call) AS calls,
coalesce(max(greatest(attempt, attempts)), 0) AS attempts,
count(*) FILTER (WHERE kind = 'succeeded' AND attempt = 1 AND unchecked IS NULL) AS ok_first,
count(*) FILTER (WHERE kind = 'succeeded' AND attempt > 1 AND unchecked IS NULL) AS recovered,
count(*) FILTER (WHERE unchecked IS NOT NULL AND attempt IS NOT NULL) AS unchecked,
count(*) FILTER (WHERE kind = 'degraded') AS degraded,
count(*) FILTER (WHERE kind = 'cancelled') AS cancelled,
coalesce(sum(input_tokens) FILTER (WHERE is_call), 0) AS input_tokens,
coalesce(sum(output_tokens) FILTER (WHERE is_call), 0) AS output_tokens,
(array_agg(DISTINCT node COLLATE "C" ORDER BY node COLLATE "C"))[1:<<most_names>>] AS nodes,
coalesce(
    (array_agg(DISTINCT concat_ws('/', provider, model) COLLATE "C"
        ORDER BY concat_ws('/', provider, model) COLLATE "C")
        FILTER (WHERE model IS NOT NULL))[1:<<most_names>>],
    '{}'
) AS called_models,
coalesce(
    (
        SELECT (array_agg(DISTINCT name COLLATE "C" ORDER BY name COLLATE "C"))[1:<<most_kinds>>]
        FROM unnest(
            array_agg(DISTINCT kind) FILTER (WHERE kind <> 'succeeded')
            || array_agg(DISTINCT parse_error_type) || array_agg(DISTINCT call_error_type)
        ) AS name
        WHERE name IS NOT NULL
    ),
    '{}'
) AS kinds

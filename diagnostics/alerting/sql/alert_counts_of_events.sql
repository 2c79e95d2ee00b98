-- Counts of single events and posted outcomes, by series and by the cut of time they lie in.
-- What arrived when its minute was older than `known_within` is left out; a posted minute ahead
-- of the clock counts when it arrived, as events do.
-- Parameters: project, since, until, bounds (times, ascending), known_within, and the terms.
SELECT environment, node, provider, model, cut, <<sums>>
FROM (
    SELECT
        environment, node, provider, model,
        width_bucket(date_trunc('minute', occurred_at), %(bounds)s::timestamptz[]) AS cut,
        <<of_events>>
    FROM (
        SELECT
            *,
            <<call_columns>>
        FROM diagnostics_event
        WHERE project_id = %(project)s
            AND occurred_at >= %(since)s
            AND occurred_at < %(until)s
            AND time_mark IS NULL
            AND received_at < date_trunc('minute', occurred_at) + %(known_within)s
            <<terms>>
    ) AS event
    GROUP BY 1, 2, 3, 4, 5
    UNION ALL
    SELECT
        environment, node, provider, model,
        width_bucket(counted_at, %(bounds)s::timestamptz[]),
        <<of_outcomes>>
    FROM (
        SELECT
            *,
            CASE
                WHEN minute > received_at + <<ahead>> THEN date_trunc('minute', received_at)
                ELSE minute
            END AS counted_at,
            degraded + stubbed + circuit_open + provider_failed + budget_exhausted AS bad
        FROM diagnostics_outcome
        WHERE project_id = %(project)s AND minute >= %(since)s <<terms>>
    ) AS outcome
    WHERE counted_at >= %(since)s
        AND counted_at < %(until)s
        AND received_at < counted_at + %(known_within)s
    GROUP BY 1, 2, 3, 4, 5
) AS counted
GROUP BY 1, 2, 3, 4, 5

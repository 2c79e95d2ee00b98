-- How many of the newest 5,000 events of a day are calls with the attempt number of a bad answer
-- before them, in the same run, cycle and node. Parameters: project, since.
SELECT count(*)
FROM (
    SELECT lag(newest.kind) OVER (
        PARTITION BY newest.correlation_id, newest.cycle, newest.node, newest.attempt
        ORDER BY newest.occurred_at, newest.event_id
    ) AS kind_before
    FROM (<<newest_events>>) AS newest
    WHERE newest.attempt IS NOT NULL
) AS numbered
WHERE numbered.kind_before = 'parse_invalid'

-- Counts of every series as alert rules look back at them from a minute (the slot): by the
-- minute for the last 15 minutes, by the cut beyond. What is older than 15 minutes is read
-- as it was frozen, what is older than the minutes reach, from hours.
-- Parameters: project, slot, live_since, minutes_since, hours_since, and cuts (times,
-- ascending). Cut 0 is the oldest; a live row has its minute, all others null.
SELECT counted.series_id, counted.minute, counted.cut, <<sums>>
FROM (
    SELECT series_id, bucket AS minute, <<cut>> AS cut, <<asked>>
    FROM diagnostics_rollup_minute
    WHERE project_id = %(project)s AND bucket >= %(live_since)s AND bucket <= %(slot)s
    UNION ALL
    SELECT series_id, NULL, <<cut>>, <<asked>>
    FROM diagnostics_alert_minute
    WHERE project_id = %(project)s
        AND bucket >= %(minutes_since)s
        AND bucket < %(live_since)s
    <<hours>>
) AS counted
GROUP BY 1, 2, 3

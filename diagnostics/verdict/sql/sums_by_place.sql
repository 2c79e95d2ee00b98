-- Sums of single events by place. The reader fills in the places, the sums and the filters.
-- Parameters: project, since, until, those of the filters.
SELECT <<places>>, <<sums>>
FROM (
    SELECT
        *,
        <<call_columns>>
    FROM diagnostics_event
    WHERE project_id = %(project)s
        AND occurred_at >= %(since)s
        AND occurred_at < %(until)s
        AND time_mark IS NULL
        <<terms>>
) AS event
GROUP BY <<places>>

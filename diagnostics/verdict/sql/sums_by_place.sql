-- Sums of single events by place. The reader fills in the places, the sums and the filters.
-- Parameters: project, since, until, those of the filters.
SELECT <<places>>, <<sums>>
FROM (
    SELECT
        *,
        kind IN ('succeeded', 'parse_invalid', 'provider_error') AS is_call,
        CASE kind WHEN 'parse_invalid' THEN parse_error_type END AS invalid_type,
        CASE kind WHEN 'provider_error' THEN call_error_type END AS call_type
    FROM diagnostics_event
    WHERE project_id = %(project)s
        AND occurred_at >= %(since)s
        AND occurred_at < %(until)s
        AND time_mark IS NULL
        <<terms>>
) AS event
GROUP BY <<places>>

-- Adds what became of the items of one request to the running minute of its key, and how many
-- there were to the day of its project.
WITH hasty AS (
    -- What a crash of the server can lose here is a moment's counting.
    SELECT set_config('synchronous_commit', 'off', true)
),
given AS (
    SELECT * FROM json_populate_recordset(NULL::diagnostics_keyminute, %(rows)s)
),
sent AS (
    INSERT INTO diagnostics_usage AS kept (
        project_id, day, sent, events, sampled_out, refused, minute_events, last_minute_events
    )
    SELECT
        %(project)s, (failsoft_now() AT TIME ZONE 'UTC')::date,
        sum(stored + duplicate + conflict + invalid), 0, 0, 0, 0, 0
    FROM given
    HAVING sum(stored + duplicate + conflict + invalid) > 0
    ON CONFLICT (project_id, day) DO UPDATE SET sent = kept.sent + excluded.sent
)
INSERT INTO diagnostics_keyminute AS kept (
    project_id, api_key_id, source, minute, slot, <<counts>>
)
SELECT
    %(project)s, %(key)s, given.source, date_trunc('minute', failsoft_now()), %(slot)s, <<counts>>
FROM hasty, given
ORDER BY given.source
ON CONFLICT (project_id, minute, api_key_id, source, slot) DO UPDATE SET <<added_counts>>

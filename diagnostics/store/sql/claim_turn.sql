-- Take the next turn of a minute: of the project whose latest turn ended longest ago. A turn
-- that did not end, since its worker failed or was killed, is given again after a while.
-- Parameters: minute, left_open (how long).
WITH next AS (
    SELECT project_id
    FROM diagnostics_projectturn
    WHERE (began_at <= ended_at AND minute < %(minute)s)
        OR (began_at > ended_at AND minute <= %(minute)s
            AND began_at < failsoft_now() - %(left_open)s)
        -- The clock was set back.
        OR minute > %(minute)s + interval '5 minutes'
    ORDER BY ended_at, project_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE diagnostics_projectturn AS turn
SET minute = %(minute)s, began_at = failsoft_now()
FROM next
WHERE turn.project_id = next.project_id
RETURNING turn.project_id

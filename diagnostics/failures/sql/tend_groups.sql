-- What is new grows old after a day, what is muted wakes when its time is over, what has
-- no failure left (all purged) goes. A group that is being written waits for the next time.
WITH forgotten AS (
    DELETE FROM diagnostics_failuregroup
    WHERE id IN (
        SELECT id FROM diagnostics_failuregroup WHERE seen <= 0 FOR UPDATE SKIP LOCKED
    )
    RETURNING id
),
untold AS (
    DELETE FROM diagnostics_groupchange WHERE group_id IN (SELECT id FROM forgotten)
),
woken AS (
    UPDATE diagnostics_failuregroup SET state = 'ongoing'
    WHERE id IN (
        SELECT id FROM diagnostics_failuregroup
        WHERE state = 'muted' AND muted_until <= failsoft_now() FOR UPDATE SKIP LOCKED
    )
    RETURNING id
),
told AS (
    INSERT INTO diagnostics_groupchange (group_id, at, kind, text)
    SELECT id, failsoft_now(), 'unmuted', '' FROM woken
)
UPDATE diagnostics_failuregroup SET state = 'ongoing'
WHERE id IN (
    SELECT id FROM diagnostics_failuregroup
    WHERE state = 'new' AND first_seen < failsoft_now() - interval '1 day'
    FOR UPDATE SKIP LOCKED
)

-- Adds what became of the items of one request to the running minute of its key.
WITH hasty AS (
    -- What a crash of the server can lose here is a moment's counting.
    SELECT set_config('synchronous_commit', 'off', true)
)
INSERT INTO diagnostics_keyminute AS kept (
    project_id, api_key_id, source, minute, slot,
    stored, duplicate, conflict, invalid, rejected, unchecked, not_understood, ahead, late
)
SELECT
    %(project)s, %(key)s, given.source, date_trunc('minute', failsoft_now()), %(slot)s,
    given.stored, given.duplicate, given.conflict, given.invalid, given.rejected,
    given.unchecked, given.not_understood, given.ahead, given.late
FROM
    hasty,
    unnest(
        %(sources)s::text[], %(stored)s::bigint[], %(duplicate)s::bigint[],
        %(conflict)s::bigint[], %(invalid)s::bigint[], %(rejected)s::bigint[],
        %(unchecked)s::bigint[], %(not_understood)s::bigint[], %(ahead)s::bigint[],
        %(late)s::bigint[]
    ) AS given (
        source, stored, duplicate, conflict, invalid, rejected, unchecked, not_understood,
        ahead, late
    )
ORDER BY given.source
ON CONFLICT (project_id, minute, api_key_id, source, slot) DO UPDATE SET
    stored = kept.stored + excluded.stored,
    duplicate = kept.duplicate + excluded.duplicate,
    conflict = kept.conflict + excluded.conflict,
    invalid = kept.invalid + excluded.invalid,
    rejected = kept.rejected + excluded.rejected,
    unchecked = kept.unchecked + excluded.unchecked,
    not_understood = kept.not_understood + excluded.not_understood,
    ahead = kept.ahead + excluded.ahead,
    late = kept.late + excluded.late

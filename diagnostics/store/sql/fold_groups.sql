-- Make or update the failure groups of group deltas, count them by hour and day, by
-- series and version, and remove the deltas. Sorted like every upsert of the fold.
-- A resolved group that is seen again in an event after its resolution, and not from a
-- release that was running before, has regressed. A mute ends with its time or count.
-- Negative deltas (of what was purged) only count.
-- Parameters: ids (of deltas that this transaction has locked). Returns how many.
WITH moment AS MATERIALIZED (
    SELECT failsoft_now() AS now
),
<<taken>>,
known AS MATERIALIZED (
    SELECT
        known.project_id, known.fingerprint, known.state, known.seen, known.resolved_at,
        known.releases_before, known.muted_until, known.muted_until_seen
    FROM diagnostics_failuregroup AS known
    WHERE (known.project_id, known.fingerprint) IN (
        SELECT project_id, fingerprint FROM taken
    )
    ORDER BY known.project_id, known.fingerprint
    FOR UPDATE
),
found AS (
    SELECT
        project_id, fingerprint, fingerprint_version, node, taken.schema, kind,
        error_type, pointer, detail,
        sum(taken.seen) AS seen,
        coalesce(min(first_at) FILTER (WHERE taken.seen > 0), min(first_at)) AS first_at,
        coalesce(max(last_at) FILTER (WHERE taken.seen > 0), min(last_at)) AS last_at,
        (array_agg(last_event_id ORDER BY taken.seen > 0 DESC, last_at DESC))[1]
            AS last_event_id,
        bool_or(
            taken.seen > 0 AND known.state = 'resolved'
            AND taken.last_at > known.resolved_at
            AND NOT coalesce(known.releases_before ? taken.release, false)
        ) AS is_regression,
        bool_or(
            known.state = 'muted' AND known.muted_until <= moment.now
        ) OR bool_or(known.state = 'muted') AND sum(taken.seen) > 0
            AND max(known.seen) + sum(taken.seen) >= max(known.muted_until_seen)
            AS is_awake,
        max(known.state) AS state
    FROM taken
    CROSS JOIN moment
    LEFT JOIN known USING (project_id, fingerprint)
    GROUP BY
        project_id, fingerprint, fingerprint_version, node, taken.schema, kind,
        error_type, pointer, detail
),
grouped AS (
    INSERT INTO diagnostics_failuregroup AS kept (
        project_id, fingerprint, fingerprint_version, node, schema, kind, error_type,
        pointer, detail, state, first_seen, last_seen, seen, last_event_id,
        releases_before
    )
    SELECT
        project_id, fingerprint, fingerprint_version, node, schema, kind, error_type,
        pointer, detail,
        CASE
            WHEN is_regression THEN 'regressed'
            WHEN is_awake THEN 'ongoing'
            ELSE coalesce(state, 'new')
        END,
        first_at, last_at, seen, last_event_id, '[]'
    FROM found
    ORDER BY project_id, fingerprint
    ON CONFLICT (project_id, fingerprint) DO UPDATE SET
        -- One that another folder has just made was not known when this began.
        state = CASE excluded.state WHEN 'new' THEN kept.state ELSE excluded.state END,
        first_seen = CASE WHEN excluded.seen > 0
            THEN least(kept.first_seen, excluded.first_seen) ELSE kept.first_seen END,
        last_seen = CASE WHEN excluded.seen > 0
            THEN greatest(kept.last_seen, excluded.last_seen) ELSE kept.last_seen END,
        last_event_id = CASE WHEN excluded.seen > 0
                AND excluded.last_seen >= kept.last_seen
            THEN excluded.last_event_id ELSE kept.last_event_id END,
        seen = kept.seen + excluded.seen
    RETURNING id, project_id, fingerprint, xmax = 0 AS is_new
),
told AS (
    INSERT INTO diagnostics_groupchange (group_id, at, kind, text)
    SELECT
        grouped.id, moment.now,
        CASE
            WHEN grouped.is_new THEN 'found'
            WHEN found.is_regression THEN 'regressed'
            ELSE 'unmuted'
        END,
        ''
    FROM grouped
    CROSS JOIN moment
    JOIN found USING (project_id, fingerprint)
    WHERE grouped.is_new OR found.is_regression OR found.is_awake
),
<<wider>>,
gone AS (
    DELETE FROM diagnostics_group_delta AS delta
    USING taken
    WHERE delta.id = taken.id AND delta.project_id = taken.project_id
)
SELECT count(*) FROM taken

-- Delete one batch of events with their details, and take them out of rollups and groups by
-- negative deltas: what is left adds up to what is kept. Running totals stay.
-- Whose they are is filled in: one condition alone can be found by its index.
-- Parameters: project, with_identities, most, and that of the condition. Returns how many, and of
-- which runs.
WITH doomed AS MATERIALIZED (
    SELECT project_id, event_id, occurred_at
    FROM diagnostics_event
    WHERE project_id = %(project)s
        AND <<whose>>
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM diagnostics_event AS event
    USING doomed
    WHERE event.project_id = %(project)s
        AND event.event_id = doomed.event_id
        AND event.occurred_at = doomed.occurred_at
    RETURNING event.*
),
details AS (
    DELETE FROM diagnostics_event_payload AS payload
    USING doomed
    WHERE payload.project_id = %(project)s
        AND payload.event_id = doomed.event_id
        AND payload.occurred_at = doomed.occurred_at
    RETURNING
        payload.event_id, payload.fingerprint, payload.repairs <> '[]' AS is_repaired,
        payload.coerced <> '[]' AS is_coerced
),
identities AS (
    DELETE FROM diagnostics_eventidentity AS identity
    USING doomed
    WHERE %(with_identities)s
        AND identity.project_id = %(project)s
        AND identity.event_id = doomed.event_id
),
told AS (
    SELECT
        gone.*, details.fingerprint, details.is_repaired, details.is_coerced,
        <<call_columns>>
    FROM gone LEFT JOIN details USING (event_id)
),
uncounted AS (
    INSERT INTO diagnostics_rollup_delta (
        project_id, minute, is_marked, <<series>>, <<version>>, <<columns>>
    )
    SELECT
        %(project)s, minute, is_marked, <<series>>, <<version>>, <<negated>>
    FROM (
        SELECT
            date_trunc('minute', occurred_at), time_mark IS NOT NULL, <<series>>, <<version>>,
            <<measures>>
        FROM told
        GROUP BY
            date_trunc('minute', occurred_at), time_mark IS NOT NULL, <<series>>, <<version>>
    ) AS removed (
        minute, is_marked, <<series>>, <<version>>, <<columns>>
    )
),
ungrouped AS (
    INSERT INTO diagnostics_group_delta (
        project_id, fingerprint, fingerprint_version, kind, error_type, pointer, detail,
        bucket, seen, first_at, last_at, last_event_id, <<series>>, <<version>>
    )
    SELECT
        %(project)s, kept.fingerprint, kept.fingerprint_version, kept.kind,
        kept.error_type, kept.pointer, kept.detail,
        date_trunc('hour', occurred_at, 'UTC'), -count(*), min(occurred_at),
        max(occurred_at), kept.last_event_id, environment, told.node, provider, model,
        prompt_version, told.schema, schema_version, source, release, served, region, credential
    FROM told
    JOIN diagnostics_failuregroup AS kept
        ON kept.project_id = %(project)s AND kept.fingerprint = told.fingerprint
    GROUP BY
        kept.id, date_trunc('hour', occurred_at, 'UTC'), environment, told.node,
        provider, model, prompt_version, told.schema, schema_version, source, release, served,
        region, credential
)
SELECT count(*), array_agg(DISTINCT correlation_id) FROM gone

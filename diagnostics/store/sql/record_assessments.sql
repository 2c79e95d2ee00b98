-- Keep what is said of runs: of each judge the latest, whatever the order in which it comes.
-- Parameters: rows (JSON array), project. Returns (index, status) in order.
WITH incoming AS (
    SELECT *
    FROM json_to_recordset(%(rows)s::json) AS row (
        index integer, correlation_id text, source text, subject text, verdict text,
        score double precision, reason text, assessed_at timestamptz, trace_id text,
        response uuid, is_linked boolean
    )
),
speaking AS (
    SELECT DISTINCT ON (correlation_id, source, subject) *
    FROM incoming
    ORDER BY correlation_id, source, subject, assessed_at DESC, index
),
known AS (
    SELECT kept.correlation_id, kept.source, kept.subject, kept.assessed_at, kept.verdict, kept.score
    FROM diagnostics_assessment AS kept
    JOIN speaking USING (correlation_id, source, subject)
    WHERE kept.project_id = %(project)s
),
stored AS (
    INSERT INTO diagnostics_assessment AS kept (
        project_id, correlation_id, source, subject, verdict, score, reason, assessed_at,
        received_at, trace_id, response, is_linked
    )
    SELECT
        %(project)s, correlation_id, source, subject, verdict, score, reason, assessed_at,
        failsoft_now(), trace_id, response, is_linked
    FROM speaking
    -- Sorted: batches that meet wait for each other in one order.
    ORDER BY correlation_id COLLATE "C", source, subject
    ON CONFLICT (project_id, correlation_id, source, subject) DO UPDATE SET
        verdict = excluded.verdict, score = excluded.score, reason = excluded.reason,
        assessed_at = excluded.assessed_at, received_at = excluded.received_at,
        is_linked = kept.is_linked OR excluded.is_linked
    WHERE kept.assessed_at < excluded.assessed_at
    RETURNING correlation_id, source, subject
)
SELECT
    incoming.index,
    CASE
        WHEN EXISTS (
            SELECT FROM (SELECT * FROM known UNION ALL
                SELECT correlation_id, source, subject, assessed_at, verdict, score FROM speaking
            ) AS said
            WHERE said.correlation_id = incoming.correlation_id
                AND said.source = incoming.source
                AND said.subject = incoming.subject
                AND said.assessed_at = incoming.assessed_at
                AND (said.verdict, said.score) IS DISTINCT FROM (incoming.verdict, incoming.score)
        ) THEN 'conflict'
        WHEN stored.correlation_id IS NOT NULL AND incoming.index = speaking.index THEN 'created'
        ELSE 'duplicate'
    END AS status
FROM incoming
JOIN speaking USING (correlation_id, source, subject)
LEFT JOIN stored USING (correlation_id, source, subject)
ORDER BY incoming.index

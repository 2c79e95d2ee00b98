-- Store pre-counted runs once a (project, source, minute, sequence), and count what is new
-- in delta rows of the same statement, a minute ahead of this clock in that of its arrival.
-- Parameters: rows (JSON array), project. Returns (index, status, time_mark) in order.
WITH moment AS MATERIALIZED (
    SELECT failsoft_now() AS now
),
incoming AS (
    SELECT *
    FROM json_to_recordset(%(rows)s::json) AS row (
        index integer, minute timestamptz, sequence integer, source text,
        environment text, node text, provider text, model text, release text,
        prompt_version text, schema text, schema_version text, ok_first integer,
        repaired integer, degraded integer, stubbed integer, circuit_open integer,
        provider_failed integer, budget_exhausted integer, cancelled integer, runs integer,
        content_hash text
    )
),
-- The same row twice in one batch: the first one speaks.
speaking AS (
    SELECT DISTINCT ON (source, minute, sequence) *
    FROM incoming
    ORDER BY source, minute, sequence, index
),
-- The update changes nothing; it waits for a transaction that stores the same row right
-- now and then returns the hash that won.
stored AS (
    INSERT INTO diagnostics_outcome AS outcome (
        project_id, source, minute, sequence, received_at, content_hash, environment,
        node, provider, model, release, prompt_version, schema, schema_version, ok_first,
        repaired, degraded, stubbed, circuit_open, provider_failed, budget_exhausted, cancelled
    )
    SELECT
        %(project)s, source, minute, sequence, moment.now, decode(content_hash, 'hex'),
        environment, node, provider, model, release, prompt_version, schema,
        schema_version, ok_first, repaired, degraded, stubbed, circuit_open,
        provider_failed, budget_exhausted, cancelled
    FROM speaking CROSS JOIN moment
    ON CONFLICT (project_id, source, minute, sequence)
        DO UPDATE SET content_hash = outcome.content_hash
    RETURNING source, minute, sequence, outcome.content_hash, xmax = 0 AS is_new
),
counted AS (
    INSERT INTO diagnostics_rollup_delta (
        project_id, minute, is_marked, environment, node, provider, model,
        prompt_version, schema, schema_version, source, release, runs, degraded,
        ok_first, repaired, failed, stubbed, circuit_open, provider_failed,
        budget_exhausted, cancelled
    )
    SELECT
        %(project)s,
        CASE
            WHEN minute > moment.now + <<ahead>> THEN date_trunc('minute', moment.now) ELSE minute
        END,
        minute < moment.now - interval '30 days',
        environment, node, provider, model, prompt_version, schema, schema_version,
        source, release, runs, runs - ok_first - repaired, ok_first, repaired, degraded,
        stubbed, circuit_open, provider_failed, budget_exhausted, nullif(cancelled, 0)
    FROM speaking
    JOIN stored USING (source, minute, sequence)
    CROSS JOIN moment
    WHERE stored.is_new AND (runs > 0 OR cancelled > 0)
)
SELECT
    incoming.index,
    CASE
        WHEN encode(stored.content_hash, 'hex') <> incoming.content_hash THEN 'conflict'
        WHEN stored.is_new AND incoming.index = speaking.index THEN 'created'
        ELSE 'duplicate'
    END AS status,
    CASE
        WHEN NOT stored.is_new OR incoming.index <> speaking.index THEN NULL
        WHEN minute > now + <<ahead>> THEN 'ahead'
        WHEN minute <= now - <<late>> THEN 'late'
    END AS time_mark
FROM incoming
CROSS JOIN moment
JOIN speaking USING (source, minute, sequence)
JOIN stored USING (source, minute, sequence)
ORDER BY incoming.index

-- Store a batch of events exactly once, and say of each what became of it. One whose sender
-- claims a time ahead of this clock happened, for all that counts, when it arrived.
-- What is new is counted in delta rows, by minute, series and version, and failures by
-- their fingerprint; the fold consumes both. It is added to the rows of its runs.
-- Parameters: rows (JSON array), project, is_demo. Returns (index, status, time_mark) in order.
WITH moment AS MATERIALIZED (
    SELECT failsoft_now() AS now
),
incoming AS (
    SELECT *
    FROM json_to_recordset(%(rows)s::json) AS row (
        index integer, event_id uuid, content_hash text, claimed_at timestamptz,
        node text, kind text, correlation_id text, cycle integer, attempt integer,
        attempts integer, provider text, model text, environment text, source text,
        release text, schema text, schema_version text, prompt_version text,
        parse_error_type text, reason text, status text, finish_reason text,
        output_mode text, latency_ms integer, input_tokens integer,
        output_tokens integer, reasoning_tokens integer, served text,
        region text, credential text, upstream text,
        system_fingerprint text, payload json, call_error_type text,
        is_simplified boolean, unchecked text, is_altered boolean,
        fingerprint uuid, fingerprint_version smallint, error_type text, pointer text,
        detail text, rank integer, is_unplaced boolean
    )
),
-- The same id twice in one batch: the first one speaks. Sorted, so that two batches
-- that overlap wait for each other in one order and never for ever.
speaking AS (
    SELECT DISTINCT ON (event_id)
        *,
        -- By its index, however few rows there were when the statement was planned.
        (
            SELECT identity.content_hash
            FROM diagnostics_eventidentity AS identity
            WHERE identity.project_id = %(project)s
                AND identity.event_id = incoming.event_id
        ) AS seen_hash,
        CASE WHEN claimed_at > moment.now + <<ahead>> THEN moment.now ELSE claimed_at END
            AS occurred_at,
        CASE WHEN claimed_at < moment.now - interval '30 days' THEN 'late' END AS time_mark
    FROM incoming CROSS JOIN moment
    ORDER BY event_id, index
),
-- The update changes nothing; it waits for a transaction that is storing the same id
-- right now and then returns the hash that won.
claimed AS (
    INSERT INTO diagnostics_eventidentity AS identity
        (project_id, event_id, occurred_at, content_hash, received_at)
    SELECT
        %(project)s, event_id, occurred_at, decode(content_hash, 'hex'),
        -- One ahead of this clock has another time when it is sent again, so that its id is kept
        -- as long as the event.
        now + CASE WHEN claimed_at > occurred_at THEN <<kept>> ELSE interval '0' END
    FROM speaking
    WHERE seen_hash IS NULL
    ORDER BY event_id
    ON CONFLICT (project_id, event_id)
        DO UPDATE SET content_hash = identity.content_hash
    RETURNING event_id, identity.content_hash, xmax = 0 AS is_new
),
stored AS (
    INSERT INTO diagnostics_event (
        project_id, received_at, claimed_at, <<event_columns>>
    )
    SELECT
        %(project)s, now, nullif(claimed_at, occurred_at), <<event_columns>>
    FROM speaking JOIN claimed USING (event_id)
    WHERE claimed.is_new
    -- An identity is forgotten after 8 days, the event is not.
    ON CONFLICT DO NOTHING
    RETURNING event_id
),
counted AS (
    INSERT INTO diagnostics_rollup_delta (
        project_id, minute, is_marked, is_demo, <<series>>, <<version>>, <<columns>>
    )
    SELECT
        %(project)s, date_trunc('minute', occurred_at), time_mark IS NOT NULL, %(is_demo)s,
        <<series>>, <<version>>, <<measures>>
    FROM (
        SELECT
            speaking.*,
            <<call_columns>>,
            payload ->> 'repairs' <> '[]' AS is_repaired,
            payload ->> 'coerced' <> '[]' AS is_coerced
        FROM speaking JOIN stored USING (event_id)
    ) AS fresh
    GROUP BY date_trunc('minute', occurred_at), time_mark IS NOT NULL, <<series>>, <<version>>
),
<<runs>><<failures>>
SELECT
    incoming.index,
    CASE
        WHEN encode(coalesce(speaking.seen_hash, claimed.content_hash), 'hex')
            <> incoming.content_hash THEN 'conflict'
        WHEN stored.event_id IS NOT NULL AND incoming.index = speaking.index THEN 'created'
        ELSE 'duplicate'
    END AS status,
    CASE
        WHEN stored.event_id IS NULL OR incoming.index <> speaking.index THEN NULL
        WHEN speaking.claimed_at > occurred_at THEN 'ahead'
        WHEN date_trunc('minute', occurred_at) <= now - <<late>> THEN 'late'
    END AS time_mark
FROM incoming
JOIN speaking USING (event_id)
LEFT JOIN claimed USING (event_id)
LEFT JOIN stored USING (event_id)
ORDER BY incoming.index

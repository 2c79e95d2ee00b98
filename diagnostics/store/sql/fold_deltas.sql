-- Add delta rows to every grain and to the running totals, and remove them: one statement,
-- so that a reader sees them either here or there. The upserts are sorted: folders that
-- meet wait for each other in one order. Their series and versions exist already.
-- Parameters: ids (of delta rows that this transaction has locked), minutes_since (older
-- minutes are not kept). Returns the number of rows folded.
WITH <<taken>>,
minutes AS (
    INSERT INTO diagnostics_rollup_minute AS kept
        (project_id, bucket, series_id, <<columns>>)
    SELECT project_id, minute, series_id, <<summed>>
    FROM taken
    WHERE NOT is_marked AND minute >= %(minutes_since)s
    GROUP BY 1, 2, 3
    ORDER BY 1, 2, 3
    ON CONFLICT (project_id, bucket, series_id) DO UPDATE SET <<added>>
),
<<wider>>,
totals AS (
    INSERT INTO diagnostics_rollup_total AS kept (project_id, series_id, <<columns>>)
    SELECT project_id, series_id, <<summed>>
    FROM taken
    -- Counters never go down: what is taken out of the rollups stays counted here.
    WHERE NOT is_demo AND events >= 0
    GROUP BY 1, 2
    ORDER BY 1, 2
    ON CONFLICT (project_id, series_id) DO UPDATE SET <<totalled>>
),
gone AS (
    DELETE FROM diagnostics_rollup_delta AS delta
    USING taken
    WHERE delta.id = taken.id AND delta.project_id = taken.project_id
)
SELECT count(*) FROM taken

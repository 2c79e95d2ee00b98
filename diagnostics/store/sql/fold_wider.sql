-- The part of a fold that adds what is taken to hours or days, by series or by version, too.
<<rollup>> AS (
    INSERT INTO diagnostics_rollup_<<rollup>> AS kept (project_id, bucket, <<keys>>, <<columns>>)
    SELECT project_id, date_trunc('<<unit>>', minute, 'UTC') AS bucket, <<keys>>, <<summed>>
    FROM taken
    GROUP BY project_id, bucket, <<keys>>
    ORDER BY project_id, bucket, <<keys>>
    ON CONFLICT (project_id, bucket, <<keys>>) DO UPDATE SET <<added>>
)

-- The part of a fold that counts failures by hours or days, by series and version.
<<unit>>s AS (
    INSERT INTO diagnostics_group_<<unit>> AS kept
        (project_id, bucket, group_id, series_id, version_id, seen)
    SELECT
        taken.project_id, date_trunc('<<unit>>', taken.bucket, 'UTC'), grouped.id, series_id,
        version_id, least(sum(taken.seen), 2147483647)
    FROM taken JOIN grouped USING (project_id, fingerprint)
    GROUP BY 1, 2, 3, 4, 5
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (project_id, bucket, group_id, series_id, version_id) DO UPDATE
        SET seen = least(kept.seen::bigint + excluded.seen, 2147483647)
)

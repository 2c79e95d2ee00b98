    -- Single events that were found before, with the columns of the other sources.
    SELECT * FROM json_to_recordset(%(found)s::json) AS one (
        group_id bigint, provider text, model text, at timestamptz, seen bigint, environment text,
        prompt_version text, schema_version text, source text, release text
    )
    WHERE %(ids)s::bigint[] IS NULL OR one.group_id = ANY(%(ids)s::bigint[])

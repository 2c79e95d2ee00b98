    -- Single events that meet a selection, where their details are kept.
    SELECT
        kept.id AS group_id, event.provider, event.model, event.occurred_at AS at,
        1::bigint AS seen, event.environment, event.prompt_version, event.schema_version,
        event.source, event.release
    FROM (<<events>>) AS event
    JOIN diagnostics_event_payload AS payload
        ON payload.project_id = %(project)s
        AND payload.event_id = event.event_id
        AND payload.occurred_at = event.occurred_at
        -- Said of the details too: else they are read of all days, not of these.
        AND payload.occurred_at >= %(since)s AND payload.occurred_at < %(until)s
    JOIN diagnostics_failuregroup AS kept
        ON kept.project_id = %(project)s AND kept.fingerprint = payload.fingerprint
    WHERE (%(ids)s::bigint[] IS NULL OR kept.id = ANY(%(ids)s::bigint[])) <<searched>>

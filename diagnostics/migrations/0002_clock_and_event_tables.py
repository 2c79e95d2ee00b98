"""The database clock with its seam, and the event tables that are partitioned by day."""


from django.db import migrations

# Leases and cool-downs ask this clock, never a machine's own (C15). Tests shift it with
# `SET failsoft.clock_shift = '10 minutes'`, on a session or a whole database.
CLOCK = """
CREATE FUNCTION failsoft_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT clock_timestamp()
        + coalesce(nullif(current_setting('failsoft.clock_shift', true), ''), '0')::interval
$$;
"""

EVENTS = """
CREATE TABLE diagnostics_event (
    project_id       bigint      NOT NULL REFERENCES diagnostics_project (id),
    event_id         uuid        NOT NULL,
    occurred_at      timestamptz NOT NULL,
    received_at      timestamptz NOT NULL,
    cycle            integer     NOT NULL,
    attempt          integer,
    attempts         integer,
    latency_ms       integer,
    input_tokens     integer,
    output_tokens    integer,
    node             text        NOT NULL,
    kind             text        NOT NULL,
    correlation_id   text        NOT NULL,
    provider         text,
    model            text,
    environment      text,
    source           text,
    release          text,
    schema           text,
    schema_version   text,
    prompt_version   text,
    parse_error_type text,
    reason           text,
    status           text,
    finish_reason    text,
    output_mode      text,
    CONSTRAINT diagnostics_event_identity PRIMARY KEY (project_id, event_id, occurred_at),
    CONSTRAINT diagnostics_event_kind_known CHECK (
        kind IN ('parse_invalid', 'degraded', 'succeeded', 'provider_error', 'unknown_tool')
    ),
    CONSTRAINT diagnostics_event_provider_not_empty CHECK (provider <> ''),
    CONSTRAINT diagnostics_event_model_not_empty CHECK (model <> '')
) PARTITION BY RANGE (occurred_at);

-- Read by every list and every window: newest first, one project.
CREATE INDEX diagnostics_event_newest
    ON diagnostics_event (project_id, occurred_at DESC, event_id DESC);

-- Read by the goal timeline and by the search for a reference.
CREATE INDEX diagnostics_event_correlation ON diagnostics_event (project_id, correlation_id);

CREATE TABLE diagnostics_event_payload (
    project_id          bigint      NOT NULL REFERENCES diagnostics_project (id),
    event_id            uuid        NOT NULL,
    occurred_at         timestamptz NOT NULL,
    max_output_tokens   integer,
    temperature         double precision,
    raw_output_preview  text,
    validation_errors   jsonb       NOT NULL,
    repairs             jsonb       NOT NULL,
    coerced             jsonb       NOT NULL,
    attributes          jsonb       NOT NULL,
    original_error_type text,
    tool                text,
    redacted_kinds      text[]      NOT NULL,
    CONSTRAINT diagnostics_event_payload_identity PRIMARY KEY (project_id, event_id, occurred_at)
) PARTITION BY RANGE (occurred_at);

-- Whatever lies outside the days that were made ahead: a sender's clock is not ours to refuse.
CREATE TABLE diagnostics_event_default PARTITION OF diagnostics_event DEFAULT;
CREATE TABLE diagnostics_event_payload_default PARTITION OF diagnostics_event_payload DEFAULT;
"""

EVENTS_GONE = """
DROP TABLE diagnostics_event_payload;
DROP TABLE diagnostics_event;
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0001_initial")]

    operations = [
        migrations.RunSQL(CLOCK, "DROP FUNCTION failsoft_now();"),
        migrations.RunSQL(EVENTS, EVENTS_GONE),
    ]

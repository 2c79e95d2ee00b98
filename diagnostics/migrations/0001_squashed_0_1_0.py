"""The tables of events, rollups, alerting and reports as of 0.1.0.

Events and rollups are partitioned by time, which Django does not know: plain SQL makes their
tables. Rollup rows are made from delta rows, which the ingest statement appends and the fold
consumes (`diagnostics.store.aggregation`). All have the same measures; their comments say what each
column counts, readers find them with `\\d+`.
"""

from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.migrations._shorthand import (
    CREATED_AT,
    ID,
    check,
    closed,
    composite_key,
    each,
    foreign,
    index,
    one_of,
    one_to_one,
    optional,
    person,
    project,
    table,
    unique,
)

# Leases and cool-downs ask this clock, never a machine's own (C15). Tests shift it with
# `SET failsoft.clock_shift = '10 minutes'`, on a session or a whole database.
CLOCK = """
CREATE FUNCTION failsoft_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT clock_timestamp()
        + coalesce(nullif(current_setting('failsoft.clock_shift', true), ''), '0')::interval
$$;
"""

# Events name their project without a foreign key; their identities have one. It would cost a row
# lock on the project for every insert, tie every partition to a table that may live elsewhere,
# and keep `flush` from working.
EVENTS = """
CREATE TABLE diagnostics_event (
    project_id       bigint      NOT NULL,
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
    time_mark        text,
    call_error_type  text,
    is_simplified    boolean,
    CONSTRAINT diagnostics_event_identity PRIMARY KEY (project_id, event_id, occurred_at),
    CONSTRAINT diagnostics_event_kind_known CHECK (
        kind IN ('parse_invalid', 'degraded', 'succeeded', 'provider_error', 'unknown_tool')
    ),
    CONSTRAINT diagnostics_event_provider_not_empty CHECK (provider <> ''),
    CONSTRAINT diagnostics_event_model_not_empty CHECK (model <> ''),
    CONSTRAINT diagnostics_event_time_mark_known CHECK (time_mark IN ('late', 'future'))
) PARTITION BY RANGE (occurred_at);

COMMENT ON COLUMN diagnostics_event.time_mark IS
    'late: more than 30 days old on arrival; future: more than 5 minutes ahead; else null';
COMMENT ON COLUMN diagnostics_event.call_error_type IS
    'of provider_error events: timeout, provider_error, rate_limited or what was said';
COMMENT ON COLUMN diagnostics_event.is_simplified IS
    'true: the prompt of this attempt was simplified; null: no, or not said';

-- Read by every list and every window: newest first, one project.
CREATE INDEX diagnostics_event_newest
    ON diagnostics_event (project_id, occurred_at DESC, event_id DESC);

-- Read by lists of failures and by the latest degraded runs: newest first. They pass over good
-- attempts, which are most of the events.
CREATE INDEX diagnostics_event_failures
    ON diagnostics_event (project_id, occurred_at DESC, event_id DESC)
    WHERE kind <> 'succeeded';

-- Read by the goal timeline and by the search for a reference.
CREATE INDEX diagnostics_event_correlation ON diagnostics_event (project_id, correlation_id);

CREATE TABLE diagnostics_event_payload (
    project_id          bigint      NOT NULL,
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
    sampled_out         boolean     NOT NULL DEFAULT false,
    fingerprint         uuid,
    CONSTRAINT diagnostics_event_payload_identity PRIMARY KEY (project_id, event_id, occurred_at)
) PARTITION BY RANGE (occurred_at);

COMMENT ON COLUMN diagnostics_event_payload.fingerprint IS
    'of the kind of failure (diagnostics.core.fingerprints); null: no failure of its own';

-- Read by the samples of a failure group: latest first.
CREATE INDEX diagnostics_event_payload_samples
    ON diagnostics_event_payload (project_id, fingerprint, occurred_at DESC, event_id DESC)
    WHERE fingerprint IS NOT NULL;

-- Whatever lies outside the days that were made ahead: a sender's clock is not ours to refuse.
CREATE TABLE diagnostics_event_default PARTITION OF diagnostics_event DEFAULT;
CREATE TABLE diagnostics_event_payload_default PARTITION OF diagnostics_event_payload DEFAULT;
"""

# Never null, so that they can be added up within a row.
PLAIN = {
    "events": "events stored, of any kind",
    "runs": "runs that ended: succeeded and degraded events, and posted outcomes",
    "degraded": "runs that ended without a usable answer: runs - ok_first - repaired",
    "ok_first": "runs whose first attempt was good",
    "repaired": "runs whose second or later attempt was good",
    "failed": "degraded runs, no stub, for parse failures or without a reason of the below",
    "stubbed": "degraded runs where a stub took over, whatever the reason",
    "circuit_open": "degraded runs, no stub: the breaker was open",
    "provider_failed": "degraded runs, no stub: calls gave no answer",
    "budget_exhausted": "degraded runs, no stub: the budget was spent",
    "timed_out": "degraded runs, no stub: the time was spent",
    "attempts": "calls: succeeded, parse_invalid and provider_error events",
    "invalid": "answers that could not be used: parse_invalid events",
}
INVALID = "not_json schema_invalid empty_output truncated multiple_objects duplicate_key refusal"
LATER = {2: "second", 3: "third", 4: "fourth", 5: "fifth and later"}
# Null where there is none: a row is mostly nulls, and a null takes no room.
COUNTS = {
    **dict.fromkeys(INVALID.split(), "invalid answers of this type"),
    "other_invalid": "invalid answers of any other type",
    "call_timeout": "calls without an answer: timeout",
    "call_provider_error": "calls without an answer: provider_error",
    "call_rate_limited": "calls without an answer: rate_limited",
    "call_other": "calls without an answer: anything else, or not said",
    "unknown_tool": "tools named that nobody registered",
    "succeeded": "good attempts (events; posted outcomes are in ok_first and repaired only)",
    "retries": "calls beyond the first of a run (attempt > 1)",
    "parse_failed": "degraded events whose reason is a parse failure, stubbed ones too",
    "retries_failed": "of parse_failed, those with more than one attempt",
    "simplified": "good attempts with a simplified prompt",
    "json_repaired": "events whose JSON was repaired",
    "coerced": "events with a value taken leniently",
    **{f"tried_{k}": f"{which} attempts" for k, which in LATER.items()},
    **{f"good_{k}": f"{which} attempts that were good" for k, which in LATER.items()},
    "latency_count": "calls whose latency was told",
    "invalid_latency_count": "invalid answers whose latency was told",
}
BOUNDS = [round(100 * 1.6**k) for k in range(15)]
COUNTS |= {
    f"latency_{k:02}": f"calls that took at most {bound} ms, and more than the one before"
    for k, bound in enumerate(BOUNDS)
}
COUNTS["latency_15"] = f"calls that took more than {BOUNDS[-1]} ms"
SUMS = {
    "input_tokens": "tokens sent, where told",
    "output_tokens": "tokens answered, where told",
    "retry_input_tokens": "tokens sent beyond the first call of a run",
    "retry_output_tokens": "tokens answered beyond the first call of a run",
    "invalid_input_tokens": "tokens sent for invalid answers",
    "invalid_output_tokens": "tokens of invalid answers",
    "latency_ms": "milliseconds of all calls, where told",
    "retry_ms": "milliseconds beyond the first call of a run",
    "invalid_latency_ms": "milliseconds of invalid answers",
}
MEASURES = {**PLAIN, **COUNTS, **SUMS}


def measures(count="integer"):
    lines = [f"    {name} {count} NOT NULL DEFAULT 0" for name in PLAIN]
    lines += [f"    {name} {count}" for name in COUNTS]
    return ",\n".join([*lines, *(f"    {name} bigint" for name in SUMS)])


def comments(relation, what):
    yield f"COMMENT ON TABLE {relation} IS '{what}';"
    for name, text in MEASURES.items():
        yield f"COMMENT ON COLUMN {relation}.{name} IS '{text}';"


def rollup(relation, what, extra=(), partitioned=True):
    keys = ["project_id", "bucket", "series_id", *extra]
    columns = "".join(f"    {column} bigint NOT NULL,\n" for column in ("series_id", *extra))
    yield f"""
CREATE TABLE {relation} (
    project_id bigint NOT NULL,
    bucket timestamptz NOT NULL,
{columns}{measures()},
    CONSTRAINT {relation}_once PRIMARY KEY ({", ".join(keys)})
) {"PARTITION BY RANGE (bucket)" if partitioned else "WITH (fillfactor = 80)"};
"""
    if partitioned:
        yield f"CREATE TABLE {relation}_default PARTITION OF {relation} DEFAULT;"
    yield from comments(relation, what)


# The purge of a delta row follows within seconds: its room must be found again as soon.
BUSY = """WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 1)"""

# Of a series, then of a version.
DIMENSIONS = """    environment text,
    node text NOT NULL,
    provider text,
    model text,
    prompt_version text,
    schema text,
    schema_version text,
    source text,
    release text"""

DELTA = f"""
CREATE TABLE diagnostics_rollup_delta (
    id bigint GENERATED ALWAYS AS IDENTITY,
    project_id bigint NOT NULL,
    minute timestamptz NOT NULL,
    is_marked boolean NOT NULL DEFAULT false,
    is_demo boolean NOT NULL DEFAULT false,
{DIMENSIONS},
{measures()},
    CONSTRAINT diagnostics_rollup_delta_once PRIMARY KEY (id, project_id)
) {BUSY};
COMMENT ON COLUMN diagnostics_rollup_delta.minute IS 'when, cut to the minute';
COMMENT ON COLUMN diagnostics_rollup_delta.is_marked IS
    'the time is implausible (time_mark): counts in hours and days, never in minutes';
COMMENT ON COLUMN diagnostics_rollup_delta.is_demo IS
    'invented for a demonstration: does not count in the running totals of /metrics';
"""

TOTAL = f"""
CREATE TABLE diagnostics_rollup_total (
    project_id bigint NOT NULL,
    series_id bigint NOT NULL,
{measures("bigint")},
    CONSTRAINT diagnostics_rollup_total_once PRIMARY KEY (project_id, series_id)
) WITH (fillfactor = 50);
"""

GROUPS = f"""
CREATE TABLE diagnostics_group_delta (
    id bigint GENERATED ALWAYS AS IDENTITY,
    project_id bigint NOT NULL,
    fingerprint uuid NOT NULL,
    fingerprint_version smallint NOT NULL,
    kind text NOT NULL,
    error_type text NOT NULL,
    pointer text NOT NULL,
    detail text NOT NULL,
    bucket timestamptz NOT NULL,
    seen integer NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    last_event_id uuid NOT NULL,
{DIMENSIONS},
    CONSTRAINT diagnostics_group_delta_once PRIMARY KEY (id, project_id)
) {BUSY};
COMMENT ON TABLE diagnostics_group_delta IS
    'failures of one fingerprint stored by one statement; consumed by the fold';
COMMENT ON COLUMN diagnostics_group_delta.bucket IS 'when, cut to the hour';

CREATE TABLE diagnostics_group_hour (
    project_id bigint NOT NULL,
    bucket timestamptz NOT NULL,
    group_id bigint NOT NULL,
    series_id bigint NOT NULL,
    version_id bigint NOT NULL,
    seen integer NOT NULL,
    CONSTRAINT diagnostics_group_hour_once
        PRIMARY KEY (project_id, bucket, group_id, series_id, version_id)
) PARTITION BY RANGE (bucket);
CREATE TABLE diagnostics_group_hour_default PARTITION OF diagnostics_group_hour DEFAULT;
COMMENT ON TABLE diagnostics_group_hour IS
    'failures of a group in an hour, by series and version: trend and where they come from';

-- Read by the page of one group.
CREATE INDEX diagnostics_group_hour_of_group
    ON diagnostics_group_hour (project_id, group_id, bucket DESC);
"""

ROLLUPS = [
    DELTA,
    *comments(
        "diagnostics_rollup_delta",
        "what one ingest statement added to a minute, series and version; "
        "append only, consumed by the fold within seconds",
    ),
    *rollup("diagnostics_rollup_minute", "one row a minute and series; kept 48 hours"),
    *rollup("diagnostics_rollup_hour", "one row an hour and series; kept 13 months"),
    *rollup("diagnostics_rollup_day", "one row a day (UTC) and series; kept", (), False),
    *rollup(
        "diagnostics_rollup_hour_by_version",
        "one row an hour, series and version (prompt, schema, source, release)",
        ("version_id",),
    ),
    TOTAL,
    *comments(
        "diagnostics_rollup_total",
        "running totals of a series since it was first seen: never go down",
    ),
    GROUPS,
]

# Long ranges read a row where the hours have 24.
DAYS = """
CREATE TABLE diagnostics_rollup_day_by_version (
    LIKE diagnostics_rollup_hour_by_version INCLUDING DEFAULTS INCLUDING COMMENTS,
    CONSTRAINT diagnostics_rollup_day_by_version_once
        PRIMARY KEY (project_id, bucket, series_id, version_id)
) PARTITION BY RANGE (bucket);
CREATE TABLE diagnostics_rollup_day_by_version_default
    PARTITION OF diagnostics_rollup_day_by_version DEFAULT;
COMMENT ON TABLE diagnostics_rollup_day_by_version IS
    'one row a day (UTC), series and version (prompt, schema, source, release)';

CREATE TABLE diagnostics_group_day (
    LIKE diagnostics_group_hour INCLUDING DEFAULTS,
    CONSTRAINT diagnostics_group_day_once
        PRIMARY KEY (project_id, bucket, group_id, series_id, version_id)
) PARTITION BY RANGE (bucket);
CREATE TABLE diagnostics_group_day_default PARTITION OF diagnostics_group_day DEFAULT;
COMMENT ON TABLE diagnostics_group_day IS
    'failures of a group in a day (UTC), by series and version';

-- Read by the page of one group.
CREATE INDEX diagnostics_group_day_of_group
    ON diagnostics_group_day (project_id, group_id, bucket DESC);
"""

# What rules look back at: counts as they were known in time, 15 minutes after their minute.
# What comes later is in the rollups and moves no alert (S9).
ALERT_MINUTES = """
CREATE TABLE diagnostics_alert_minute (
    LIKE diagnostics_rollup_minute INCLUDING DEFAULTS,
    CONSTRAINT diagnostics_alert_minute_once PRIMARY KEY (project_id, bucket, series_id)
);
COMMENT ON TABLE diagnostics_alert_minute IS
    'rollup minutes as alert rules know them: frozen 15 minutes later, kept for hours';
"""

# It refers to no other table: an entry outlives the project and the person it names.
AUDIT = """
CREATE TABLE diagnostics_auditentry (
    id       bigint      GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    chain    bigint      NOT NULL,
    number   bigint      NOT NULL,
    at       timestamptz NOT NULL,
    actor_id bigint,
    actor    text        NOT NULL,
    action   text        NOT NULL,
    target   text        NOT NULL,
    details  text        NOT NULL,
    address  text,
    hash     bytea       NOT NULL,
    -- Read by the page of the audit log, by its export and by every walk along a chain.
    CONSTRAINT diagnostics_auditentry_place_once UNIQUE (chain, number),
    CONSTRAINT diagnostics_auditentry_number_counts CHECK (number > 0),
    CONSTRAINT diagnostics_auditentry_hash_whole CHECK (octet_length(hash) = 32)
);

CREATE FUNCTION diagnostics_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only added to' USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER diagnostics_auditentry_stays
    BEFORE UPDATE OR DELETE ON diagnostics_auditentry
    FOR EACH ROW EXECUTE FUNCTION diagnostics_refuse_audit_change();

CREATE TRIGGER diagnostics_auditentry_stays_whole
    BEFORE TRUNCATE ON diagnostics_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION diagnostics_refuse_audit_change();
"""

# Django's database cache: counts of bad sign-ins, shared by every process.
CACHE = """
CREATE TABLE failsoft_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value     text         NOT NULL,
    expires   timestamptz  NOT NULL
);
-- Read by the cache itself when it makes room.
CREATE INDEX failsoft_cache_expires ON failsoft_cache (expires);
"""

CHANNEL_KINDS = {"email": "email", "webhook": "signed webhook", "chat": "chat or paging service"}
DEPLOY_KINDS = {kind: kind for kind in ("release", "prompt", "schema", "validator")}
ROLES = "viewer operator admin"
JOB_STATES = "running done failed"
GROUP_STATES = "new ongoing regressed resolved muted"
GROUP_CHANGES = "found resolved reopened regressed muted unmuted comment"
SEVERITIES = "info warning critical"
SIGNALS = (
    "degraded_ratio first_pass_failure_ratio repair_success_ratio call_failure_ratio"
    " degraded_count new_group regressed_group breaker_open latency_p95 retry_tokens retry_money"
    " ingest_rejects source_silent"
)
DETECTORS = "change threshold count absent burn"
NO_DATA = "keep clear fire"
ALERT_STATES = "ok pending firing acknowledged clearing resolved no_data"
VERDICTS = "quiet fires clears no_data"
INCIDENT_STATES = "open acknowledged resolved"
RESOLUTION_CAUSES = (
    "provider model prompt schema deploy validator false_alarm recovered new_usual_level other"
)
NOTES = "comment assigned linked silenced"
REPEATS = "once daily weekly"
TRANSITIONS = "fired joined worsened acknowledged slice_cleared cleared resolved"
THEMES = "system light dark"
CADENCES = "daily weekdays weekly monthly"
DELIVERY_STATES = "waiting sent failed unchanged no_access cancelled"
REASONS = "fired worsened recovered reminder escalated digest test canary"
NOTIFICATION_STATES = "queued sent failed suppressed digested"
ORIGINS = "own listed"
REPLACED = """
0001_initial 0002_clock_and_event_tables 0003_events_without_foreign_keys
0004_redaction_rules 0005_quotas_outcomes_deploys_rejects 0006_rollups_and_failure_groups
0007_agent_schemas 0008_event_call_errors 0009_failures_index 0010_verdict_marks
0011_channels 0012_saved_views 0013_alerting 0014_audit_profiles_invitations 0015_reports
0016_notifications 0017_prices 0018_channel_probes 0019_channel_kinds 0020_new_usual_level
0021_days_by_version 0022_wording
"""


class Migration(migrations.Migration):
    initial = True
    replaces = [("diagnostics", name) for name in REPLACED.split()]
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        migrations.RunSQL("\n".join([CLOCK, EVENTS, *ROLLUPS, DAYS, ALERT_MINUTES, AUDIT, CACHE])),
        # The SQL above has the columns of this one, of EventPayload and of AuditEntry.
        table(
            "Event",
            composite_key("project event_id occurred_at"),
            db_table="diagnostics_event",
            managed=False,
        ),
        table(
            "EventPayload",
            composite_key("project event_id occurred_at"),
            db_table="diagnostics_event_payload",
            managed=False,
        ),
        table(
            "Heartbeat",
            ("name", models.CharField(primary_key=True, max_length=64, serialize=False)),
            ("at", models.DateTimeField()),
        ),
        table(
            "Project",
            ID,
            ("slug", models.SlugField(max_length=63, unique=True)),
            ("name", models.CharField(max_length=200)),
            CREATED_AT,
        ),
        table(
            "OutboxMessage",
            ID,
            ("task", models.CharField(max_length=200)),
            ("queue", models.CharField(max_length=32)),
            ("kwargs", models.JSONField(default=dict)),
            CREATED_AT,
            ("available_at", models.DateTimeField(db_default=Now())),
            ("sent_at", models.DateTimeField(blank=True, null=True)),
            ("tries", models.PositiveIntegerField(default=0)),
            ("last_error", models.TextField(blank=True, default="")),
            project(blank=True, null=True),
            index("diagnostics_outbox_due", "available_at id", Q(sent_at__isnull=True)),
            index("diagnostics_outbox_sent", "sent_at", Q(sent_at__isnull=False)),
        ),
        table(
            "Membership",
            ID,
            *closed("role", ROLES, "diagnostics_membership_role_known"),
            CREATED_AT,
            foreign("user", settings.AUTH_USER_MODEL, "memberships"),
            project("memberships"),
            unique("diagnostics_membership_once_a_project", "project user"),
        ),
        table(
            "EventIdentity",
            composite_key("project event_id"),
            ("event_id", models.UUIDField()),
            ("occurred_at", models.DateTimeField()),
            ("content_hash", models.BinaryField(max_length=32)),
            ("received_at", models.DateTimeField()),
            project(db_index=False),
            index("diagnostics_identity_age", "received_at"),
            verbose_name_plural="event identities",
        ),
        table(
            "ApiKey",
            ID,
            ("key_id", models.CharField(max_length=32, unique=True)),
            ("name", models.CharField(max_length=200)),
            ("secret_hash", models.BinaryField(max_length=32)),
            ("scopes", ArrayField(models.CharField(max_length=16))),
            CREATED_AT,
            *each(
                "expires_at revoked_at last_used_at", models.DateTimeField(blank=True, null=True)
            ),
            project("api_keys"),
            check(
                "diagnostics_api_key_scopes_known",
                Q(scopes__contained_by=["ingest", "read", "admin"]),
            ),
            verbose_name="API key",
            verbose_name_plural="API keys",
        ),
        table(
            "RedactionRule",
            ID,
            ("name", models.CharField(max_length=80)),
            ("pattern", models.CharField(max_length=500)),
            ("kind", models.CharField(max_length=40)),
            ("enabled", models.BooleanField(default=True)),
            CREATED_AT,
            person("created_by"),
            project("redaction_rules", db_index=False),
            unique("diagnostics_redactionrule_named_once", "project name"),
            check(
                "diagnostics_redactionrule_kind_fits_marker", Q(kind__regex="^[a-z0-9_-]{1,40}$")
            ),
        ),
        table(
            "Rescrub",
            ID,
            *closed(
                "status",
                JOB_STATES,
                "diagnostics_rescrub_status_known",
                default="running",
                db_default="running",
            ),
            ("stage", models.PositiveIntegerField(default=0)),
            ("cursor", models.JSONField(default=list)),
            *each("seen_rows changed_rows", models.BigIntegerField(default=0)),
            ("starts", models.PositiveIntegerField(default=0)),
            ("requested_at", models.DateTimeField(db_default=Now(), editable=False)),
            ("moved_at", models.DateTimeField(db_default=Now())),
            ("finished_at", models.DateTimeField(null=True)),
            project("rescrubs", db_index=False),
            person("requested_by"),
            index("diagnostics_rescrub_recent", "project -requested_at"),
            unique("diagnostics_rescrub_one_at_a_time", "project", Q(status="running")),
        ),
        table(
            "KeyBucket",
            one_to_one("api_key", "diagnostics.apikey", "bucket", primary_key=True),
            ("tokens", models.FloatField()),
            ("refilled_at", models.DateTimeField()),
        ),
        table(
            "Quota",
            one_to_one("project", "diagnostics.project", "quota", primary_key=True),
            *each(
                "key_events_per_second key_burst_events",
                models.PositiveIntegerField(blank=True, null=True),
            ),
            *each(
                "events_per_day events_per_month",
                models.PositiveBigIntegerField(blank=True, null=True),
            ),
            ("spike_events_per_minute", models.PositiveIntegerField(blank=True, null=True)),
        ),
        table(
            "Usage",
            composite_key("project day"),
            ("day", models.DateField()),
            *each("events sampled_out refused", models.BigIntegerField(default=0)),
            ("minute_at", models.DateTimeField(null=True)),
            *each("minute_events last_minute_events", models.BigIntegerField(default=0)),
            project("usage"),
            verbose_name_plural="usage",
        ),
        table(
            "Deploy",
            ID,
            ("at", models.DateTimeField()),
            *closed("kind", DEPLOY_KINDS, "diagnostics_deploy_kind_known"),
            *each("source environment", models.TextField(blank=True, null=True)),
            ("version", models.TextField()),
            ("note", models.TextField(blank=True, default="")),
            CREATED_AT,
            project("deploys", db_index=False),
            unique(
                "diagnostics_deploy_once",
                "project at kind source environment version",
                nulls_distinct=False,
            ),
        ),
        table(
            "Outcome",
            ID,
            ("source", models.TextField()),
            ("minute", models.DateTimeField()),
            ("sequence", models.IntegerField()),
            ("received_at", models.DateTimeField()),
            ("content_hash", models.BinaryField(max_length=32)),
            ("environment", models.TextField(null=True)),
            ("node", models.TextField()),
            *each(
                "provider model release prompt_version schema schema_version",
                models.TextField(null=True),
            ),
            *each(
                "ok_first repaired degraded stubbed circuit_open provider_failed budget_exhausted",
                models.IntegerField(default=0),
            ),
            (
                "project",
                models.ForeignKey(
                    "diagnostics.project",
                    models.DO_NOTHING,
                    related_name="+",
                    db_index=False,
                    db_constraint=False,
                ),
            ),
            index("diagnostics_outcome_age", "minute"),
            unique("diagnostics_outcome_once", "project source minute sequence"),
        ),
        table(
            "Reject",
            ID,
            ("received_at", models.DateTimeField()),
            ("endpoint", models.CharField(max_length=64)),
            ("http_status", models.PositiveSmallIntegerField()),
            ("source", models.TextField(null=True)),
            ("item_index", models.IntegerField(null=True)),
            ("event_id", models.TextField(null=True)),
            *each("code path message", models.TextField()),
            ("errors", models.JSONField(default=list)),
            ("head", models.TextField()),
            ("size_bytes", models.IntegerField()),
            optional("api_key", "diagnostics.apikey", db_index=False),
            project("rejects", db_index=False),
            index("diagnostics_reject_newest", "project -id"),
        ),
        table(
            "FailureGroup",
            ID,
            ("fingerprint", models.UUIDField()),
            ("fingerprint_version", models.PositiveSmallIntegerField()),
            ("node", models.TextField()),
            ("schema", models.TextField(blank=True, null=True)),
            *each("kind error_type", models.TextField()),
            *each("pointer detail", models.TextField(blank=True, default="")),
            *closed("state", GROUP_STATES, "diagnostics_failuregroup_state_known", default="new"),
            *each("first_seen last_seen", models.DateTimeField()),
            ("seen", models.BigIntegerField()),
            ("last_event_id", models.UUIDField()),
            ("resolved_at", models.DateTimeField(blank=True, null=True)),
            ("fixed_in", models.TextField(blank=True, null=True)),
            ("releases_before", models.JSONField(blank=True, default=list)),
            ("muted_until", models.DateTimeField(blank=True, null=True)),
            ("muted_until_seen", models.BigIntegerField(blank=True, null=True)),
            project("failure_groups", db_index=False),
            index("diagnostics_group_latest", "project -last_seen -id"),
            index("diagnostics_group_waiting", "state", Q(state__in=["new", "muted"])),
            unique("diagnostics_failuregroup_once", "project fingerprint"),
        ),
        table(
            "GroupChange",
            ID,
            ("at", models.DateTimeField(db_default=Now())),
            *closed("kind", GROUP_CHANGES, "diagnostics_groupchange_kind_known"),
            ("text", models.TextField(blank=True, default="")),
            person("by", blank=True),
            foreign("group", "diagnostics.failuregroup", "changes"),
        ),
        table(
            "Series",
            ID,
            ("key", models.UUIDField()),
            ("environment", models.TextField(blank=True, null=True)),
            ("node", models.TextField()),
            *each("provider model", models.TextField(blank=True, null=True)),
            ("first_seen", models.DateTimeField(db_default=Now(), editable=False)),
            project(db_index=False),
            unique("diagnostics_series_once", "project key"),
            verbose_name_plural="series",
        ),
        table(
            "Version",
            ID,
            ("key", models.UUIDField()),
            *each(
                "prompt_version schema schema_version source release",
                models.TextField(blank=True, null=True),
            ),
            ("first_seen", models.DateTimeField(db_default=Now(), editable=False)),
            project(db_index=False),
            unique("diagnostics_version_once", "project key"),
        ),
        table(
            "AgentSchema",
            ID,
            ("node", models.CharField(max_length=63)),
            ("version", models.CharField(max_length=200)),
            ("json_schema", models.JSONField()),
            CREATED_AT,
            ("current_since", models.DateTimeField(null=True)),
            project("agent_schemas", db_index=False),
            unique("diagnostics_agentschema_version_once", "project node version"),
            unique(
                "diagnostics_agentschema_one_current",
                "project node",
                Q(current_since__isnull=False),
            ),
        ),
        table(
            "SpanVerdict",
            ID,
            ("trace_id", models.CharField(max_length=32)),
            ("span_id", models.CharField(max_length=16)),
            ("received_at", models.DateTimeField()),
            ("content", models.JSONField()),
            project(db_index=False),
            index("diagnostics_spanverdict_age", "received_at"),
            unique("diagnostics_spanverdict_once", "project trace_id span_id"),
        ),
        table(
            "VerdictMark",
            ID,
            ("cause", models.TextField()),
            ("cause_value", models.TextField(blank=True, default="")),
            ("since", models.DateTimeField()),
            ("is_right", models.BooleanField()),
            ("verdict", models.JSONField()),
            ("at", models.DateTimeField(db_default=Now())),
            person("by", blank=True),
            project("verdict_marks", db_index=False),
            unique("diagnostics_verdictmark_once", "project cause cause_value since"),
        ),
        table(
            "Channel",
            ID,
            ("name", models.CharField(max_length=80)),
            *closed("kind", CHANNEL_KINDS, "diagnostics_channel_kind_known"),
            ("shown", models.CharField(max_length=1000)),
            ("credential", models.CharField(max_length=500, blank=True, default="")),
            ("sealed", models.BinaryField(blank=True, null=True)),
            ("rotated_at", models.DateTimeField(blank=True, null=True)),
            *closed(
                "min_severity", SEVERITIES, "diagnostics_channel_severity_known", default="warning"
            ),
            *each("quiet_from quiet_to", models.TimeField(blank=True, null=True)),
            ("zone", models.CharField(max_length=64, default="UTC")),
            ("digest_above", models.PositiveSmallIntegerField(default=10)),
            *each(
                "renotify_minutes escalate_after_minutes",
                models.PositiveIntegerField(blank=True, null=True),
            ),
            ("has_canary", models.BooleanField(default=False)),
            ("enabled", models.BooleanField(default=True)),
            *each(
                "last_sent_at failing_since probed_at", models.DateTimeField(blank=True, null=True)
            ),
            ("last_error", models.TextField(blank=True, default="")),
            CREATED_AT,
            person("created_by"),
            optional("escalate_to", "diagnostics.channel", blank=True),
            project("channels", db_index=False),
            ("uid", models.UUIDField(default=uuid4, editable=False)),
            ("is_unreachable", models.BooleanField(default=False)),
            unique("diagnostics_channel_named_once", "project name"),
            check(
                "diagnostics_channel_quiet_has_both_ends",
                Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
            ),
            check(
                "diagnostics_channel_credential_is_a_reference",
                Q(credential="")
                | Q(credential__startswith="env:")
                | Q(credential__startswith="file:"),
            ),
        ),
        table(
            "SavedView",
            ID,
            ("name", models.CharField(max_length=100)),
            ("page", models.CharField(max_length=64)),
            ("query", models.TextField(blank=True, default="")),
            ("is_shared", models.BooleanField(default=False)),
            CREATED_AT,
            foreign("owner", settings.AUTH_USER_MODEL, "saved_views"),
            project("saved_views", db_index=False),
            unique("diagnostics_savedview_name_once_an_owner", "project owner name"),
            check("diagnostics_savedview_is_named", ~Q(name="")),
        ),
        table(
            "AlertRule",
            ID,
            ("name", models.CharField(max_length=200)),
            ("filter", models.TextField(blank=True, default="")),
            ("group_by", ArrayField(models.CharField(max_length=16), blank=True, default=list)),
            *closed("signal", SIGNALS, "diagnostics_alertrule_signal_known", length=32),
            *closed("detector", DETECTORS, "diagnostics_alertrule_detector_known"),
            ("parameters", models.JSONField(blank=True, default=dict)),
            *closed(
                "severity", SEVERITIES, "diagnostics_alertrule_severity_known", default="warning"
            ),
            *each("for_seconds clear_seconds", models.PositiveIntegerField(default=0)),
            *closed(
                "no_data", NO_DATA, "diagnostics_alertrule_no_data_known", length=8, default="keep"
            ),
            ("no_data_seconds", models.PositiveIntegerField(default=21600)),
            ("is_latching", models.BooleanField(default=False)),
            ("routing", models.JSONField(blank=True, default=list)),
            *each(
                "renotify_seconds escalate_seconds",
                models.PositiveIntegerField(blank=True, null=True),
            ),
            ("escalation", models.JSONField(blank=True, default=list)),
            ("is_enabled", models.BooleanField(default=True)),
            ("standard", models.CharField(max_length=32, blank=True, null=True)),
            ("version", models.PositiveIntegerField(default=1)),
            CREATED_AT,
            ("updated_at", models.DateTimeField(db_default=Now())),
            ("archived_at", models.DateTimeField(blank=True, null=True)),
            person("owner", blank=True),
            project("alert_rules"),
            unique("diagnostics_alertrule_name_once", "project name", Q(archived_at__isnull=True)),
            unique(
                "diagnostics_alertrule_standard_once", "project standard", Q(standard__isnull=False)
            ),
            check(
                "diagnostics_alertrule_group_by_known",
                Q(group_by__contained_by=["environment", "node", "provider", "model"]),
            ),
            check(
                "diagnostics_alertrule_waits_bounded",
                Q(clear_seconds__lte=604800, for_seconds__lte=604800),
            ),
        ),
        table(
            "AlertSlot",
            ID,
            *each("slot at", models.DateTimeField()),
            *each("slices duration_ms", models.PositiveIntegerField(default=0)),
            project(db_index=False),
            index("diagnostics_alertslot_age", "slot"),
            unique("diagnostics_alertslot_once", "project slot"),
        ),
        table(
            "AlertState",
            ID,
            ("slice", models.JSONField(default=dict)),
            ("key", models.UUIDField()),
            *closed("state", ALERT_STATES, "diagnostics_alertstate_state_known", default="ok"),
            ("since", models.DateTimeField()),
            *each("detector_state memory", models.JSONField(default=dict)),
            ("rule_version", models.PositiveIntegerField(default=1)),
            ("last_data_at", models.DateTimeField(blank=True, null=True)),
            foreign("rule", "diagnostics.alertrule", "states"),
            unique("diagnostics_alertstate_once", "rule key"),
        ),
        table(
            "Evaluation",
            ID,
            ("slot", models.DateTimeField()),
            *each("k n", models.BigIntegerField()),
            *each("value bound", models.FloatField()),
            ("rule_version", models.PositiveIntegerField()),
            *closed("verdict", VERDICTS, "diagnostics_evaluation_verdict_known", length=8),
            ("state_after", one_of(ALERT_STATES)),
            ("is_backfilled", models.BooleanField(default=False)),
            foreign("state", "diagnostics.alertstate", "evaluations", db_index=False),
            index("diagnostics_evaluation_age", "slot"),
            unique("diagnostics_evaluation_once", "state slot"),
        ),
        table(
            "Incident",
            ID,
            ("title", models.CharField(max_length=300)),
            *closed("state", INCIDENT_STATES, "diagnostics_incident_state_known", default="open"),
            *closed(
                "severity", SEVERITIES, "diagnostics_incident_severity_known", default="warning"
            ),
            *each("onset fired_at", models.DateTimeField()),
            *each("acknowledged_at cleared_at", models.DateTimeField(blank=True, null=True)),
            ("cause", models.CharField(max_length=32, blank=True, default="")),
            ("cause_value", models.TextField(blank=True, default="")),
            *each("verdict verdict_now", models.JSONField(default=dict)),
            ("verdict_at", models.DateTimeField(blank=True, null=True)),
            ("filter", models.TextField(blank=True, default="")),
            ("tracker_url", models.URLField(max_length=500, blank=True, default="")),
            *closed(
                "resolution_cause",
                RESOLUTION_CAUSES,
                "diagnostics_incident_cause_known",
                or_null=True,
                blank=True,
                null=True,
            ),
            ("is_backfilled", models.BooleanField(default=False)),
            person("acknowledged_by", blank=True),
            person("assignee", blank=True),
            project("incidents", db_index=False),
            person("resolved_by", blank=True),
            index("diagnostics_incident_latest", "project -fired_at -id"),
            index("diagnostics_incident_open", "project", Q(cleared_at__isnull=True)),
            check(
                "diagnostics_incident_cleared_when_resolved",
                Q(cleared_at__isnull=False, state="resolved")
                | ~Q(state="resolved") & Q(cleared_at__isnull=True),
            ),
        ),
        table(
            "IncidentNote",
            ID,
            *closed("kind", NOTES, "diagnostics_incidentnote_kind_known", default="comment"),
            ("at", models.DateTimeField()),
            ("text", models.TextField(blank=True, default="")),
            person("by", blank=True),
            foreign("incident", "diagnostics.incident", "notes"),
        ),
        table(
            "IncidentSlice",
            ID,
            ("rule_version", models.PositiveIntegerField()),
            *closed("severity", SEVERITIES, "diagnostics_incidentslice_severity_known"),
            ("slice", models.JSONField(default=dict)),
            *each("onset fired_at", models.DateTimeField()),
            ("cleared_at", models.DateTimeField(blank=True, null=True)),
            *each("k n", models.BigIntegerField()),
            *each("value bound", models.FloatField()),
            ("baseline", models.FloatField(blank=True, null=True)),
            foreign("incident", "diagnostics.incident", "slices"),
            foreign("rule", "diagnostics.alertrule", "incident_slices"),
            foreign("state", "diagnostics.alertstate", "incidents"),
            unique("diagnostics_incidentslice_one_open", "state", Q(cleared_at__isnull=True)),
        ),
        table(
            "MaintenanceWindow",
            ID,
            ("name", models.CharField(max_length=200)),
            ("filter", models.TextField(blank=True, default="")),
            *each("starts_at ends_at", models.DateTimeField()),
            *closed(
                "repeats",
                REPEATS,
                "diagnostics_maintenancewindow_repeats_known",
                length=8,
                default="once",
            ),
            ("zone", models.CharField(max_length=64, default="UTC")),
            ("is_enabled", models.BooleanField(default=True)),
            person("created_by", blank=True),
            project("maintenance_windows"),
            check("diagnostics_maintenancewindow_ends", Q(ends_at__gt=models.F("starts_at"))),
        ),
        table(
            "Silence",
            ID,
            ("filter", models.TextField(blank=True, default="")),
            *each("starts_at ends_at", models.DateTimeField()),
            ("reason", models.TextField(blank=True, default="")),
            CREATED_AT,
            person("created_by", blank=True),
            project("silences"),
            foreign("rule", "diagnostics.alertrule", "silences", blank=True, null=True),
            index("diagnostics_silence_now", "project ends_at"),
            check("diagnostics_silence_ends", Q(ends_at__gte=models.F("starts_at"))),
        ),
        table(
            "Transition",
            ID,
            *closed("kind", TRANSITIONS, "diagnostics_transition_kind_known"),
            ("at", models.DateTimeField()),
            *closed("severity", SEVERITIES, "diagnostics_transition_severity_known"),
            ("is_silenced", models.BooleanField(default=False)),
            ("processed_at", models.DateTimeField(blank=True, null=True)),
            person("by", blank=True),
            foreign("incident", "diagnostics.incident", "transitions", db_index=False),
            foreign("slice", "diagnostics.incidentslice", blank=True, null=True),
            unique("diagnostics_transition_once", "incident kind at slice", nulls_distinct=False),
            unique(
                "diagnostics_transition_ends_once",
                "incident kind",
                Q(kind__in=["fired", "cleared", "resolved"]),
            ),
        ),
        table(
            "AuditEntry",
            ID,
            verbose_name_plural="audit entries",
            db_table="diagnostics_auditentry",
            managed=False,
        ),
        table(
            "Profile",
            one_to_one("user", settings.AUTH_USER_MODEL, "profile", primary_key=True),
            ("zone", models.CharField(max_length=64, blank=True, default="")),
            *closed(
                "theme",
                THEMES,
                "diagnostics_profile_theme_known",
                length=8,
                default="system",
                db_default="system",
            ),
        ),
        table(
            "Invitation",
            ID,
            *closed("role", ROLES, "diagnostics_invitation_role_known"),
            ("email", models.EmailField(max_length=254, blank=True, default="")),
            ("token_hash", models.BinaryField(max_length=32, unique=True)),
            CREATED_AT,
            ("expires_at", models.DateTimeField()),
            *each("used_at revoked_at", models.DateTimeField(null=True)),
            person("created_by"),
            project("invitations", db_index=False),
            person("used_by"),
            index(
                "diagnostics_invitation_open",
                "project -created_at",
                Q(revoked_at=None, used_at=None),
            ),
        ),
        table(
            "KeyMinute",
            ID,
            ("source", models.CharField(max_length=200, blank=True, default="")),
            ("minute", models.DateTimeField()),
            ("slot", models.PositiveSmallIntegerField(default=0)),
            *each("stored duplicate conflict invalid rejected", models.BigIntegerField(default=0)),
            foreign("api_key", "diagnostics.apikey", db_index=False),
            project(db_index=False),
            unique("diagnostics_keyminute_once", "project minute api_key source slot"),
        ),
        table(
            "Report",
            ID,
            ("title", models.CharField(max_length=200)),
            ("query", models.TextField(blank=True, default="")),
            *closed("cadence", CADENCES, "diagnostics_report_cadence_known"),
            ("zone", models.CharField(max_length=64)),
            *each("period_start period_end", models.DateTimeField()),
            ("digest", models.CharField(max_length=32)),
            ("subject", models.CharField(max_length=200)),
            ("document", models.JSONField()),
            ("has_news", models.BooleanField()),
            ("created_at", models.DateTimeField()),
            project("reports", db_index=False),
            optional("view", "diagnostics.savedview", blank=True),
            index("diagnostics_report_newest", "project -period_end -id"),
            index("diagnostics_report_made", "created_at"),
            unique("diagnostics_report_once_a_period", "project digest period_start period_end"),
            check(
                "diagnostics_report_period_is_not_empty", Q(period_end__gt=models.F("period_start"))
            ),
        ),
        table(
            "Subscription",
            ID,
            ("address", models.EmailField(max_length=254, blank=True, default="")),
            ("query", models.TextField(blank=True, default="")),
            *closed(
                "cadence", CADENCES, "diagnostics_subscription_cadence_known", default="weekly"
            ),
            *each("weekday month_day", models.PositiveSmallIntegerField(blank=True, null=True)),
            ("at", models.TimeField()),
            ("zone", models.CharField(max_length=64, default="UTC")),
            ("only_when_changed", models.BooleanField(default=False)),
            ("next_at", models.DateTimeField()),
            *each("paused_until unsubscribed_at", models.DateTimeField(blank=True, null=True)),
            ("token", models.CharField(max_length=32)),
            CREATED_AT,
            person("created_by"),
            project("subscriptions", db_index=False),
            foreign("user", settings.AUTH_USER_MODEL, "subscriptions", blank=True, null=True),
            optional("view", "diagnostics.savedview", blank=True),
            index("diagnostics_subscription_due", "next_at", Q(unsubscribed_at__isnull=True)),
            index("diagnostics_subscription_mine", "project user"),
            check(
                "diagnostics_subscription_has_one_reader",
                Q(address="", user__isnull=False) | Q(user__isnull=True) & ~Q(address=""),
            ),
            check(
                "diagnostics_subscription_weekday_when_weekly",
                Q(cadence="weekly", weekday__range=[0, 6])
                | ~Q(cadence="weekly") & Q(weekday__isnull=True),
            ),
            check(
                "diagnostics_subscription_day_when_monthly",
                Q(cadence="monthly", month_day__range=[1, 31])
                | ~Q(cadence="monthly") & Q(month_day__isnull=True),
            ),
        ),
        table(
            "ReportDelivery",
            ID,
            *each("period_start period_end", models.DateTimeField()),
            ("skipped", models.JSONField(blank=True, default=list)),
            *closed(
                "state",
                DELIVERY_STATES,
                "diagnostics_reportdelivery_state_known",
                default="waiting",
            ),
            ("tries", models.PositiveSmallIntegerField(default=0)),
            ("next_attempt_at", models.DateTimeField()),
            ("claim", models.PositiveIntegerField(default=0)),
            ("lease_until", models.DateTimeField(blank=True, null=True)),
            ("message_id", models.CharField(max_length=255)),
            ("last_error", models.TextField(blank=True, default="")),
            ("created_at", models.DateTimeField()),
            ("sent_at", models.DateTimeField(blank=True, null=True)),
            project(db_index=False),
            optional("report", "diagnostics.report", "deliveries", blank=True),
            foreign("subscription", "diagnostics.subscription", "deliveries", db_index=False),
            index("diagnostics_delivery_due", "next_attempt_at id", Q(state="waiting")),
            index("diagnostics_delivery_failed", "project -created_at", Q(state="failed")),
            index("diagnostics_delivery_made", "created_at"),
            unique("diagnostics_reportdelivery_once_a_period", "subscription period_start"),
            verbose_name_plural="report deliveries",
        ),
        table(
            "Notification",
            ID,
            *closed("reason", REASONS, "diagnostics_notification_reason_known"),
            ("round", models.PositiveSmallIntegerField(default=0)),
            ("severity", models.CharField(max_length=16)),
            *closed(
                "state",
                NOTIFICATION_STATES,
                "diagnostics_notification_state_known",
                default="queued",
            ),
            ("why", models.TextField(blank=True, default="")),
            ("facts", models.JSONField(default=dict)),
            ("key", models.UUIDField(unique=True, default=uuid4, editable=False)),
            *each("created_at next_attempt_at", models.DateTimeField()),
            ("tries", models.PositiveIntegerField(default=0)),
            ("lease_until", models.DateTimeField(blank=True, null=True)),
            ("fencing", models.PositiveIntegerField(default=0)),
            ("sent_at", models.DateTimeField(blank=True, null=True)),
            *each("answer last_error", models.TextField(blank=True, default="")),
            *each("seen_at link_used_at", models.DateTimeField(blank=True, null=True)),
            foreign("channel", "diagnostics.channel", "notifications", db_index=False),
            optional("digest", "diagnostics.notification", "digested", blank=True),
            foreign("incident", "diagnostics.incident", "notifications", blank=True, null=True),
            project("notifications", db_index=False),
            foreign("transition", "diagnostics.transition", "notifications", blank=True, null=True),
            index("diagnostics_notification_due", "next_attempt_at id", Q(state="queued")),
            index("diagnostics_notification_log", "channel -created_at"),
            index("diagnostics_notif_failed", "project", Q(seen_at__isnull=True, state="failed")),
            unique("diagnostics_notification_once", "incident transition channel reason round"),
            check(
                "diagnostics_notification_sent_has_time",
                ~Q(state="sent") | Q(sent_at__isnull=False),
            ),
            unique(
                "diagnostics_notification_one_digest",
                "channel",
                Q(reason="digest", state="queued", tries=0),
            ),
        ),
        table(
            "Price",
            ID,
            ("provider", models.CharField(max_length=100)),
            ("model", models.CharField(max_length=200)),
            *closed("origin", ORIGINS, "diagnostics_price_origin_known", length=8, default="own"),
            *each(
                "input_per_million output_per_million",
                models.DecimalField(blank=True, null=True, max_digits=12, decimal_places=6),
            ),
            ("currency", models.CharField(max_length=3, default="USD")),
            ("valid_from", models.DateField()),
            ("edition", models.CharField(max_length=64, blank=True, default="")),
            CREATED_AT,
            project("prices", db_index=False),
            unique("diagnostics_price_once_a_day", "project provider model origin valid_from"),
            check("diagnostics_price_in_usd", Q(currency="USD")),
            check(
                "diagnostics_price_is_a_price",
                Q(
                    input_per_million__gte=0,
                    input_per_million__isnull=False,
                    output_per_million__gte=0,
                    output_per_million__isnull=False,
                )
                | Q(
                    input_per_million__isnull=True, origin="listed", output_per_million__isnull=True
                ),
            ),
            ordering=["provider", "model", "-valid_from"],
        ),
    ]

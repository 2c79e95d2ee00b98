"""Rollups, failure groups, the mark of implausible times.

Rollup rows are made from delta rows, which the ingest statement appends and the fold
consumes (`diagnostics.storage.folding`). All have the same measures; their comments say what each
column counts, readers find them with `\\d+`.
"""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

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
# Null where there is none: a row is mostly nulls, and a null takes no room.
COUNTS = {
    "not_json": "invalid answers of this type",
    "schema_invalid": "invalid answers of this type",
    "empty_output": "invalid answers of this type",
    "truncated": "invalid answers of this type",
    "multiple_objects": "invalid answers of this type",
    "duplicate_key": "invalid answers of this type",
    "refusal": "invalid answers of this type",
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
    "tried_2": "second attempts",
    "tried_3": "third attempts",
    "tried_4": "fourth attempts",
    "tried_5": "fifth and later attempts",
    "good_2": "second attempts that were good",
    "good_3": "third attempts that were good",
    "good_4": "fourth attempts that were good",
    "good_5": "fifth and later attempts that were good",
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


def comments(table, what):
    yield f"COMMENT ON TABLE {table} IS '{what}';"
    for name, text in MEASURES.items():
        yield f"COMMENT ON COLUMN {table}.{name} IS '{text}';"


def rollup(table, what, extra=(), partitioned=True):
    keys = ["project_id", "bucket", "series_id", *extra]
    columns = "".join(f"    {key} bigint NOT NULL,\n" for key in ("series_id", *extra))
    yield f"""
CREATE TABLE {table} (
    project_id bigint NOT NULL,
    bucket timestamptz NOT NULL,
{columns}{measures()},
    CONSTRAINT {table}_once PRIMARY KEY ({", ".join(keys)})
) {"PARTITION BY RANGE (bucket)" if partitioned else "WITH (fillfactor = 80)"};
"""
    if partitioned:
        yield f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT;"
    yield from comments(table, what)


# The purge of a delta row follows within seconds: its room must be found again as soon.
BUSY = """WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 1)"""

DELTA = f"""
CREATE TABLE diagnostics_rollup_delta (
    id bigint GENERATED ALWAYS AS IDENTITY,
    project_id bigint NOT NULL,
    minute timestamptz NOT NULL,
    is_marked boolean NOT NULL DEFAULT false,
    is_demo boolean NOT NULL DEFAULT false,
    environment text,
    node text NOT NULL,
    provider text,
    model text,
    prompt_version text,
    schema text,
    schema_version text,
    source text,
    release text,
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
    environment text,
    node text NOT NULL,
    provider text,
    model text,
    prompt_version text,
    schema text,
    schema_version text,
    source text,
    release text,
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

MARKS = """
ALTER TABLE diagnostics_event ADD COLUMN time_mark text
    CONSTRAINT diagnostics_event_time_mark_known CHECK (time_mark IN ('late', 'future'));
COMMENT ON COLUMN diagnostics_event.time_mark IS
    'late: more than 30 days old on arrival; future: more than 5 minutes ahead; else null';

ALTER TABLE diagnostics_event_payload ADD COLUMN fingerprint uuid;
COMMENT ON COLUMN diagnostics_event_payload.fingerprint IS
    'of the kind of failure (diagnostics.core.fingerprints); null: no failure of its own';

-- Read by the samples of a failure group: latest first.
CREATE INDEX diagnostics_event_payload_samples
    ON diagnostics_event_payload (project_id, fingerprint, occurred_at DESC, event_id DESC)
    WHERE fingerprint IS NOT NULL;
"""

MARKS_GONE = """
DROP INDEX diagnostics_event_payload_samples;
ALTER TABLE diagnostics_event_payload DROP COLUMN fingerprint;
ALTER TABLE diagnostics_event DROP COLUMN time_mark;
"""

TABLES = [
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

NAMES = (
    "rollup_delta",
    "rollup_minute",
    "rollup_hour",
    "rollup_day",
    "rollup_hour_by_version",
    "rollup_total",
    "group_delta",
    "group_hour",
)
TABLES_GONE = "".join(f"DROP TABLE diagnostics_{name};" for name in NAMES)


class Migration(migrations.Migration):
    dependencies = [
        ("diagnostics", "0005_quotas_outcomes_deploys_rejects"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL("\n".join(TABLES), TABLES_GONE),
        migrations.RunSQL(MARKS, MARKS_GONE),
        migrations.CreateModel(
            name='FailureGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('fingerprint', models.UUIDField()),
                ('fingerprint_version', models.PositiveSmallIntegerField()),
                ('node', models.TextField()),
                ('schema', models.TextField(blank=True, null=True)),
                ('kind', models.TextField()),
                ('error_type', models.TextField()),
                ('pointer', models.TextField(blank=True, default='')),
                ('detail', models.TextField(blank=True, default='')),
                ('state', models.CharField(choices=[('new', 'New'), ('ongoing', 'Ongoing'), ('regressed', 'Regressed'), ('resolved', 'Resolved'), ('muted', 'Muted')], default='new', max_length=16)),
                ('first_seen', models.DateTimeField()),
                ('last_seen', models.DateTimeField()),
                ('seen', models.BigIntegerField()),
                ('last_event_id', models.UUIDField()),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
                ('fixed_in', models.TextField(blank=True, null=True)),
                ('releases_before', models.JSONField(blank=True, default=list)),
                ('muted_until', models.DateTimeField(blank=True, null=True)),
                ('muted_until_seen', models.BigIntegerField(blank=True, null=True)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='failure_groups', to='diagnostics.project')),
            ],
            options={
                'db_table': 'diagnostics_failuregroup',
            },
        ),
        migrations.CreateModel(
            name='GroupChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('kind', models.CharField(choices=[('found', 'Found'), ('resolved', 'Resolved'), ('reopened', 'Reopened'), ('regressed', 'Regressed'), ('muted', 'Muted'), ('unmuted', 'Unmuted'), ('comment', 'Comment')], max_length=16)),
                ('text', models.TextField(blank=True, default='')),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('group', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='diagnostics.failuregroup')),
            ],
            options={
                'db_table': 'diagnostics_groupchange',
            },
        ),
        migrations.CreateModel(
            name='Series',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.UUIDField()),
                ('environment', models.TextField(blank=True, null=True)),
                ('node', models.TextField()),
                ('provider', models.TextField(blank=True, null=True)),
                ('model', models.TextField(blank=True, null=True)),
                ('first_seen', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='diagnostics.project')),
            ],
            options={
                'verbose_name_plural': 'series',
                'db_table': 'diagnostics_series',
            },
        ),
        migrations.CreateModel(
            name='Version',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.UUIDField()),
                ('prompt_version', models.TextField(blank=True, null=True)),
                ('schema', models.TextField(blank=True, null=True)),
                ('schema_version', models.TextField(blank=True, null=True)),
                ('source', models.TextField(blank=True, null=True)),
                ('release', models.TextField(blank=True, null=True)),
                ('first_seen', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='diagnostics.project')),
            ],
            options={
                'db_table': 'diagnostics_version',
            },
        ),
        migrations.AddIndex(
            model_name='failuregroup',
            index=models.Index(fields=['project', '-last_seen', '-id'], name='diagnostics_group_latest'),
        ),
        migrations.AddIndex(
            model_name='failuregroup',
            index=models.Index(condition=models.Q(('state__in', ['new', 'muted'])), fields=['state'], name='diagnostics_group_waiting'),
        ),
        migrations.AddConstraint(
            model_name='failuregroup',
            constraint=models.UniqueConstraint(fields=('project', 'fingerprint'), name='diagnostics_failuregroup_once'),
        ),
        migrations.AddConstraint(
            model_name='failuregroup',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['new', 'ongoing', 'regressed', 'resolved', 'muted'])), name='diagnostics_failuregroup_state_known'),
        ),
        migrations.AddConstraint(
            model_name='groupchange',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['found', 'resolved', 'reopened', 'regressed', 'muted', 'unmuted', 'comment'])), name='diagnostics_groupchange_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='series',
            constraint=models.UniqueConstraint(fields=('project', 'key'), name='diagnostics_series_once'),
        ),
        migrations.AddConstraint(
            model_name='version',
            constraint=models.UniqueConstraint(fields=('project', 'key'), name='diagnostics_version_once'),
        ),
    ]

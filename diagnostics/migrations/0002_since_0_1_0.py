"""All that has changed since 0.1.0: tables, columns, and the rows that go on under them."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import Q, Value, When
from django.utils import timezone

from diagnostics.ingest.models import NameKind
from diagnostics.ingest.series_names import choose_names
from diagnostics.migrations._shorthand import (
    ID,
    closed,
    composite_key,
    each,
    foreign,
    index,
    known,
    one_of,
    one_to_one,
    project,
    table,
    unique,
)

EVENTS = """
ALTER TABLE diagnostics_event
    ADD COLUMN served text,
    ADD COLUMN upstream text,
    ADD COLUMN system_fingerprint text,
    ADD COLUMN reasoning_tokens integer,
    ADD COLUMN unchecked text,
    ADD COLUMN is_altered boolean,
    ADD COLUMN claimed_at timestamptz,
    ADD COLUMN region text,
    ADD COLUMN credential text,
    DROP CONSTRAINT diagnostics_event_kind_known,
    -- Rows that exist have one of the others: they are not read again.
    ADD CONSTRAINT diagnostics_event_kind_known CHECK (
        kind IN (
            'parse_invalid', 'degraded', 'succeeded', 'provider_error', 'unknown_tool', 'cancelled'
        )
    ) NOT VALID;

COMMENT ON COLUMN diagnostics_event.served IS
    'who answered, as "model at upstream"; null: the requested model as far as told';
COMMENT ON COLUMN diagnostics_event.upstream IS 'the provider behind a gateway, or its host';
COMMENT ON COLUMN diagnostics_event.reasoning_tokens IS 'part of output_tokens, where told';
COMMENT ON COLUMN diagnostics_event.unchecked IS 'why nothing checked the answer of a success';
COMMENT ON COLUMN diagnostics_event.is_altered IS 'a success whose reading changed a value';
COMMENT ON COLUMN diagnostics_event.claimed_at IS
    'the time as sent, if more than 5 minutes ahead on arrival; occurred_at is when it arrived';
COMMENT ON COLUMN diagnostics_event.time_mark IS
    'late: more than 30 days old on arrival; else null. future: ahead, before claimed_at was kept';
COMMENT ON COLUMN diagnostics_event.region IS 'where the call was served, else made';
COMMENT ON COLUMN diagnostics_event.credential IS 'the name of the credential, never itself';
"""

COUNTS = {
    "unchecked_no_schema": "answers not checked: no schema, and JSON was not asked for",
    "unchecked_no_answer": "answers not checked: the telemetry had no text",
    "unchecked_over_budget": "answers not checked: out of time for one request",
    "ok_altered": "of ok_first, those whose reading changed a value",
    "cancelled": "cancelled by the caller: calls that were given up, and runs; in none of the rates",
}
ROLLUPS = ("delta", "minute", "hour", "day", "hour_by_version", "day_by_version")


def counted(relation, kind="integer"):
    """Return the statements that add the counts; without a default no row is rewritten."""
    columns = ", ".join(f"ADD COLUMN {name} {kind}" for name in COUNTS)
    yield f"ALTER TABLE {relation} {columns};"
    for name, text in COUNTS.items():
        yield f"COMMENT ON COLUMN {relation}.{name} IS '{text}';"


def by_version(relation):
    """Return the statements for the deltas: what versions say, and an index of the project.

    The index is read by every fold, and by every sum of one project.
    """
    columns = ", ".join(f"ADD COLUMN {name} text" for name in ("served", "region", "credential"))
    yield f"ALTER TABLE {relation} {columns};"
    yield f"CREATE INDEX {relation}_of_project ON {relation} (project_id, id);"


COLUMNS = [
    EVENTS,
    *by_version("diagnostics_rollup_delta"),
    *by_version("diagnostics_group_delta"),
    *(line for name in ROLLUPS for line in counted(f"diagnostics_rollup_{name}")),
    *counted("diagnostics_rollup_total", "bigint"),
    *counted("diagnostics_alert_minute"),
]

# As diagnostics.store.sql.add_keys writes it.
KEYS = """
UPDATE diagnostics_version
   SET key = md5(json_build_array(
           prompt_version, schema, schema_version, source, release, served, region, credential
       )::text)::uuid
"""

# "Repeated degradation" is no longer built in: `change` covers it. Only where nobody changed what
# it judges. What it fires for ends with it.
RETIRE = """
WITH retired AS (
    UPDATE diagnostics_alertrule SET archived_at = failsoft_now(), is_enabled = false
    WHERE standard = 'degraded_count' AND version = 1 AND archived_at IS NULL
    RETURNING id
), ended AS (
    UPDATE diagnostics_incidentslice SET cleared_at = failsoft_now()
    WHERE rule_id IN (SELECT id FROM retired) AND cleared_at IS NULL
    RETURNING id, incident_id, state_id
), calmed AS (
    UPDATE diagnostics_alertstate SET state = 'resolved', since = failsoft_now()
    WHERE id IN (SELECT state_id FROM ended)
)
UPDATE diagnostics_incident SET state = 'resolved', cleared_at = failsoft_now()
WHERE cleared_at IS NULL
    AND id IN (SELECT incident_id FROM ended)
    AND NOT EXISTS (
        SELECT FROM diagnostics_incidentslice AS slice
        WHERE slice.incident_id = diagnostics_incident.id
            AND slice.cleared_at IS NULL
            AND slice.id NOT IN (SELECT id FROM ended)
    )
"""

# The built-in rule is called by what it watches, where nobody has named it otherwise.
RENAME = """
UPDATE diagnostics_alertrule AS rule
SET name = 'Failure rate above baseline'
WHERE standard = 'change' AND name = 'Worse than usual'
    AND NOT EXISTS (
        SELECT FROM diagnostics_alertrule AS other
        WHERE other.project_id = rule.project_id
            AND other.name = 'Failure rate above baseline'
            AND other.archived_at IS NULL
    )
"""

# Saved views of goals and of the tail open the list of runs.
MOVE_VIEWS = """
UPDATE diagnostics_savedview
SET page = 'runs',
    query = CASE
        WHEN page = 'live' THEN concat_ws('&', nullif(query, ''), 'follow=calls') ELSE query
    END
WHERE page IN ('goals', 'live')
"""

# What was sent before is known only with the slices that processes reserve for the limits.
FILL_SENT = "UPDATE diagnostics_usage SET sent = events"

TOLD = ("release", "prompt", "schema", "validator")
OBSERVED = ("observed_model", "observed_upstream", "observed_fingerprint")
KINDS = {kind: kind for kind in (*TOLD, *OBSERVED)}
TRANSITIONS = "fired joined worsened acknowledged slice_cleared cleared resolved reopened"
DETECTORS = "change threshold count absent"
MARK = " (was a burn-rate rule)"
LONGEST_NAME = 200
STEPS = {"daily": 1, "weekly": 7}


def keep_names(apps, _schema):
    """Give the names of series that exist their keys: they stay as they are spelled."""
    series, names = (apps.get_model("diagnostics", name) for name in ("Series", "SeriesName"))
    existing = {}
    for project_id, *row in series.objects.order_by("pk").values_list("project_id", *NameKind):
        for kind, name in zip(NameKind, row, strict=True):
            if name:
                existing.setdefault((project_id, kind), []).append(name)
    rows = [
        names(project_id=project_id, kind=kind.value, key=key, name=name)
        for (project_id, kind), found in existing.items()
        for key, name in choose_names(kind, found)
    ]
    names.objects.bulk_create(rows, batch_size=1_000)


def plan_silences(apps: Any, _schema: object) -> None:
    """Write a silence for each maintenance window that is on or to come.

    A window that repeats is one more silence each time: only the next one is written, what nobody
    plans anew is reported again.
    """
    silence = apps.get_model("diagnostics", "Silence")
    now = timezone.now()
    for window in apps.get_model("diagnostics", "MaintenanceWindow").objects.all():
        begin, end = next_stretch(window, now)
        if window.is_enabled and end > now:
            reason = f"{window.name} (maintenance window, {window.repeats})"
            silence.objects.create(
                project_id=window.project_id,
                filter=window.filter,
                starts_at=begin,
                ends_at=end,
                reason=reason,
                created_by_id=window.created_by_id,
            )


def next_stretch(window: Any, now: datetime) -> tuple[datetime, datetime]:
    """Return when a window begins and ends, at its local time, the first time that is not over."""
    begin, length = window.starts_at, window.ends_at - window.starts_at
    step = STEPS.get(window.repeats)
    if step and begin + length <= now:
        local = begin.astimezone(ZoneInfo(window.zone))
        days = (now - length - begin).days // step * step
        while local + timedelta(days=days) + length <= now:
            days += step
        begin = (local + timedelta(days=days)).astimezone(begin.tzinfo)
    return begin, begin + length


def judge_by_change(apps: Any, _schema: object) -> None:
    """Make burn-rate rules rules of change detection; what is firing goes on until it is well."""
    rules = apps.get_model("diagnostics", "AlertRule").objects.filter(detector="burn")
    for rule in rules:
        apps.get_model("diagnostics", "AlertState").objects.filter(rule=rule).update(
            detector_state={"watch": {"fire": None}}, memory={}
        )
        rule.name = f"{rule.name[: LONGEST_NAME - len(MARK)]}{MARK}"
        rule.detector, rule.parameters = "change", {}
        rule.save(update_fields=["name", "detector", "parameters"])


def added(model, names, field):
    """Return the operations that add columns of one kind."""
    return [migrations.AddField(model, name, field.clone()) for name in names.split()]


def exchanged(model, column, words, known_as, length=16):
    """Return the operations that give a column of `words` others."""
    return [
        migrations.RemoveConstraint(model, known_as),
        migrations.AlterField(model, column, one_of(words, length)),
        migrations.AddConstraint(model, known(known_as, column, words)),
    ]


NEW_TABLES = [
    table(
        "ProjectStatus",
        one_to_one("project", "diagnostics.project", "+", primary_key=True),
        ("at", models.DateTimeField()),
        *each("verdict series", models.JSONField()),
        ("left_out", models.IntegerField(default=0, db_default=0)),
    ),
    table(
        "Answerer",
        ID,
        ("slot", models.UUIDField()),
        *each("environment provider", models.TextField(null=True)),
        ("model", models.TextField()),
        *closed(
            "kind",
            {kind: kind for kind in OBSERVED},
            "diagnostics_answerer_kind_known",
            length=20,
        ),
        ("value", models.TextField()),
        *each("first_seen last_seen", models.DateTimeField()),
        project(db_index=False),
        unique("diagnostics_answerer_once", "project slot value"),
        index("diagnostics_answerer_age", "last_seen"),
    ),
    table(
        "SpanCall",
        ID,
        project(db_index=False),
        ("trace_id", models.CharField(max_length=32)),
        *each("span_id parent_id", models.CharField(max_length=16)),
        ("scope", models.UUIDField()),
        ("response", models.UUIDField(null=True)),
        *each("started_at ended_at", models.DateTimeField()),
        ("event_id", models.UUIDField()),
        ("weight", models.PositiveSmallIntegerField()),
        ("is_joined", models.BooleanField()),
        ("received_at", models.DateTimeField()),
        unique("diagnostics_spancall_once", "project trace_id span_id"),
        index("diagnostics_spancall_response", "project response", Q(response__isnull=False)),
        index("diagnostics_spancall_age", "received_at"),
    ),
    table(
        "AgentRun",
        composite_key("project correlation_id"),
        ("correlation_id", models.TextField(db_collation="C")),
        *each("began_at ended_at", models.DateTimeField()),
        *each("calls attempts ok_first recovered degraded", models.IntegerField(db_default=0)),
        *each("input_tokens output_tokens", models.BigIntegerField(db_default=0)),
        *each("nodes called_models", ArrayField(models.TextField(), db_default=Value("{}"))),
        ("decided_at", models.DateTimeField(null=True)),
        ("decided_by", models.UUIDField(null=True)),
        *each(
            "provider model environment source release prompt_version", models.TextField(null=True)
        ),
        ("settles_at", models.DateTimeField(null=True)),
        (
            "project",
            models.ForeignKey(
                "diagnostics.project",
                models.DO_NOTHING,
                related_name="+",
                db_constraint=False,
                db_index=False,
            ),
        ),
        ("kinds", ArrayField(models.TextField(), db_default=Value("{}"))),
        ("schema", models.TextField(null=True)),
        *each("unchecked cancelled", models.IntegerField(db_default=0)),
        (
            "outcome",
            models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    When(degraded__gt=0, then=Value("degraded")),
                    When(cancelled__gt=0, then=Value("cancelled")),
                    When(recovered__gt=0, then=Value("recovered")),
                    When(unchecked__gt=0, then=Value("unchecked")),
                    When(ok_first__gt=0, then=Value("ok_first")),
                    default=Value("open"),
                ),
                output_field=models.TextField(),
            ),
        ),
        index("diagnostics_agentrun_newest", "project -began_at -correlation_id"),
        index("diagnostics_agentrun_due", "settles_at", Q(settles_at__isnull=False)),
        index(
            "diagnostics_agentrun_failures", "project -began_at -correlation_id", ~Q(kinds=[])
        ),
    ),
    table(
        "AgentSpan",
        ID,
        ("trace_id", models.CharField(max_length=32)),
        ("span_id", models.CharField(max_length=16)),
        *each("received_at started_at ended_at", models.DateTimeField()),
        project(db_index=False),
        index("diagnostics_agentspan_age", "received_at"),
        unique("diagnostics_agentspan_once", "project trace_id span_id"),
    ),
    table(
        "UnplacedCall",
        ID,
        ("correlation_id", models.TextField()),
        ("event_id", models.UUIDField()),
        *each("occurred_at received_at started_at", models.DateTimeField()),
        ("trace_id", models.CharField(max_length=32)),
        ("parent_id", models.CharField(blank=True, max_length=16)),
        ("cycle", models.IntegerField(default=1)),
        ("is_end", models.BooleanField(default=False)),
        project(db_index=False),
        index("diagnostics_unplacedcall_run", "project correlation_id"),
        index("diagnostics_unplacedcall_age", "received_at"),
        unique("diagnostics_unplacedcall_once", "project event_id"),
    ),
    table(
        "Assessment",
        ID,
        ("correlation_id", models.TextField(db_collation="C")),
        ("source", models.TextField()),
        ("subject", models.CharField(blank=True, max_length=36)),
        *closed("verdict", "good bad", "diagnostics_assessment_verdict_known", length=4),
        ("score", models.FloatField(null=True)),
        ("reason", models.TextField(null=True)),
        *each("assessed_at received_at", models.DateTimeField()),
        ("trace_id", models.CharField(blank=True, max_length=32)),
        ("response", models.UUIDField(null=True)),
        ("is_linked", models.BooleanField(default=True)),
        project(db_index=False),
        index("diagnostics_assessment_trace", "project trace_id", Q(is_linked=False)),
        index("diagnostics_assessment_reply", "project response", Q(is_linked=False)),
        index("diagnostics_assessment_age", "received_at"),
        unique("diagnostics_assessment_once", "project correlation_id source subject"),
    ),
    table(
        "RuleDay",
        composite_key("rule day"),
        ("day", models.DateField()),
        ("evaluations", models.BigIntegerField()),
        foreign("rule", "diagnostics.alertrule", "days", db_index=False),
    ),
    # Events, as Django's administration reads them.
    table(
        "StoredEvent",
        ("event_id", models.UUIDField(primary_key=True, serialize=False)),
        *each("occurred_at received_at", models.DateTimeField()),
        *each("node kind correlation_id", models.TextField()),
        ("attempt", models.IntegerField(null=True)),
        *each(
            "provider model environment source parse_error_type call_error_type",
            models.TextField(null=True),
        ),
        *each("latency_ms input_tokens output_tokens", models.IntegerField(null=True)),
        verbose_name="event",
        db_table="diagnostics_event",
        managed=False,
    ),
    table(
        "SeriesName",
        ID,
        *closed(
            "kind",
            {kind: kind for kind in ("provider", "model")},
            "diagnostics_seriesname_kind_known",
            length=8,
        ),
        *each("key name", models.TextField()),
        project(db_index=False),
        unique("diagnostics_seriesname_once", "project key kind"),
    ),
    table(
        "ProjectTurn",
        one_to_one("project", "diagnostics.project", "turn", primary_key=True),
        *each("minute began_at ended_at", models.DateTimeField()),
        ("judged_at", models.DateTimeField(null=True)),
        ("passed_over", ArrayField(models.TextField(), default=list)),
    ),
    table(
        "SeriesDetector",
        one_to_one("series", "diagnostics.series", "+", primary_key=True),
        project(),
        ("at", models.DateTimeField()),
        *each("detector_state memory", models.JSONField(default=dict)),
    ),
]
REPLACED = """
0002_who_answered 0003_project_status 0004_observed_answerers 0005_span_calls
0006_one_builtin_rule 0007_runs 0008_assessments 0009_rule_day 0010_run_kinds
0011_saved_views_of_runs 0012_events_in_administration 0013_reopened_incidents 0014_wallboard
0015_rename_built_in_rule 0016_mail_receipts 0017_unchecked_answers 0018_claimed_times
0019_usage_sent 0020_series_names 0021_drop_wallboards 0022_plan_work_by_silences
0023_project_turns 0024_left_out_series 0025_regions_and_credentials 0026_cancelled
0027_burn_rate_rules_to_change 0028_series_detectors
"""


class Migration(migrations.Migration):
    replaces = [("diagnostics", name) for name in REPLACED.split()]
    dependencies = [("diagnostics", "0001_squashed_0_1_0")]
    operations = [
        migrations.RunSQL("\n".join(COLUMNS)),
        *NEW_TABLES,
        # A row is written again and again: room beside it keeps it where it is.
        migrations.RunSQL("ALTER TABLE diagnostics_agentrun SET (fillfactor = 85)"),
        *added("version", "served region credential", models.TextField(blank=True, null=True)),
        *added("deploy", "provider model previous", models.TextField(blank=True, null=True)),
        *exchanged("deploy", "kind", KINDS, "diagnostics_deploy_kind_known", length=20),
        migrations.RemoveConstraint("deploy", "diagnostics_deploy_once"),
        migrations.AddConstraint(
            "deploy",
            unique(
                "diagnostics_deploy_once",
                "project at kind source environment version",
                Q(kind__in=TOLD),
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex("deploy", index("diagnostics_deploy_newest", "project -at -id")),
        *added(
            "keyminute",
            "unchecked not_understood ahead late",
            models.BigIntegerField(default=0, db_default=0),
        ),
        *exchanged("transition", "kind", TRANSITIONS, "diagnostics_transition_kind_known"),
        migrations.RemoveConstraint("transition", "diagnostics_transition_ends_once"),
        migrations.AddConstraint(
            "transition",
            unique("diagnostics_transition_fires_once", "incident kind", Q(kind="fired")),
        ),
        migrations.AddField("notification", "receipts", models.JSONField(default=dict)),
        *added("usage", "sent", models.BigIntegerField(default=0, db_default=0)),
        *added("outcome", "cancelled", models.IntegerField(default=0, db_default=0)),
        migrations.RunPython(judge_by_change),
        *exchanged("alertrule", "detector", DETECTORS, "diagnostics_alertrule_detector_known"),
        migrations.RunSQL(";".join([KEYS, RETIRE, RENAME, MOVE_VIEWS, FILL_SENT])),
        migrations.RunPython(keep_names),
        migrations.RunPython(plan_silences),
        migrations.DeleteModel("MaintenanceWindow"),
    ]

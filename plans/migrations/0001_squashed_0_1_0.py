"""The tables of runs, tools and completion checks as of 0.1.0."""

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
    each,
    foreign,
    index,
    known,
    one_of,
    optional,
    person,
    project,
    table,
    unique,
)
from plans.models.run import ExactJSONField

RUNNERS = "inline distributed"
RUN_STATES = "queued running ended poison"
TASK_STATUSES = "COMPLETED PARTIAL FAILED BLOCKED"
STEP_STATES = "pending started final"
RESOLUTIONS = "done not_done resume"
CHECKERS = "tool model command"
CHECK_STATES = "running decided interrupted failed"
DECISIONS = "complete incomplete undecidable"
SOURCES = "file-json file-text stdout-json marker none"
REPLACED = """
0001_initial 0002_tools 0003_runners 0004_completion_checks 0005_exact_outputs
0006_steps_in_place
"""


class Migration(migrations.Migration):
    initial = True
    replaces = [("plans", name) for name in REPLACED.split()]
    dependencies = [
        ("diagnostics", "0001_squashed_0_1_0"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        table(
            "Run",
            ("id", models.UUIDField(primary_key=True, editable=False, serialize=False)),
            ("correlation_id", models.CharField(max_length=200)),
            ("cycle", models.PositiveIntegerField(default=1)),
            ("payload", models.JSONField()),
            ("contract_version", models.CharField(max_length=32)),
            *closed("runner", RUNNERS, "plans_run_runner_known", default="inline"),
            *closed("state", RUN_STATES, "plans_run_state_known", default="queued"),
            *closed(
                "task_status",
                TASK_STATUSES,
                "plans_run_task_status_known",
                or_null=True,
                blank=True,
                null=True,
            ),
            ("meta", models.JSONField(blank=True, null=True)),
            ("contract_violations", models.JSONField(blank=True, default=list)),
            ("on_end_task", models.CharField(max_length=200, blank=True, default="")),
            ("on_end_kwargs", models.JSONField(blank=True, default=dict)),
            ("lease_until", models.DateTimeField(blank=True, null=True)),
            ("fencing_token", models.BigIntegerField(default=0)),
            ("starts", models.PositiveIntegerField(default=0)),
            *each("cancel_requested_at deadline_at", models.DateTimeField(blank=True, null=True)),
            CREATED_AT,
            *each("started_at ended_at", models.DateTimeField(blank=True, null=True)),
            project(),
            ("first_refused_at", models.DateTimeField(blank=True, null=True)),
            *each("open_steps refusals", models.PositiveIntegerField(default=0)),
            ("refused_reason", models.TextField(blank=True, default="")),
            ("release", models.CharField(max_length=64, blank=True, default="")),
            ("requested_by", models.CharField(max_length=200, blank=True, default="")),
            ("rerun_from", models.PositiveIntegerField(blank=True, null=True)),
            optional("rerun_of", "plans.run", "reruns", blank=True),
            ("strict_degraded", models.BooleanField(default=False)),
            ("tool_digests", models.JSONField(blank=True, default=dict)),
            index("plans_run_of_goal", "project correlation_id cycle"),
            index("plans_run_unfinished", "lease_until", Q(state__in=["queued", "running"])),
            check(
                "plans_run_ended_has_task_status",
                Q(state="ended", task_status__isnull=False) | ~Q(state="ended"),
            ),
        ),
        table(
            "RunStep",
            ID,
            ("position", models.PositiveIntegerField()),
            ("step_id", models.TextField()),
            ("title", models.TextField(blank=True, default="")),
            ("tool", models.TextField(blank=True, null=True)),
            ("dependencies", ArrayField(models.TextField(), blank=True, default=list)),
            *closed("state", STEP_STATES, "plans_run_step_state_known", default="pending"),
            *each("ok skipped", models.BooleanField(blank=True, null=True)),
            *each("reason error", models.TextField(blank=True, null=True)),
            # jsonb forgets the order of keys; results are to be the same to the byte.
            ("output", ExactJSONField(blank=True, null=True)),
            ("fencing_token", models.BigIntegerField(default=0)),
            *each("started_at ended_at", models.DateTimeField(blank=True, null=True)),
            project(),
            foreign("run", "plans.run", "steps", db_index=False),
            ("call_group", models.PositiveIntegerField(default=1)),
            ("lease_until", models.DateTimeField(blank=True, null=True)),
            ("resolution", one_of(RESOLUTIONS, blank=True, default="")),
            ("resolved_at", models.DateTimeField(blank=True, null=True)),
            ("resolved_by", models.CharField(max_length=200, blank=True, default="")),
            *each("starts waits_for", models.PositiveIntegerField(default=0)),
            ("root_position", models.PositiveIntegerField(blank=True, null=True)),
            index("plans_run_step_leased", "lease_until", Q(lease_until__isnull=False)),
            unique("plans_run_step_position_once", "run position"),
            check(
                "plans_run_step_final_is_decided",
                ~Q(state="final") | Q(ok__isnull=False, skipped__isnull=False),
            ),
            check("plans_run_step_skipped_is_not_ok", ~Q(ok=True, skipped=True)),
            check("plans_run_step_ok_has_no_error", ~Q(error__isnull=False, ok=True)),
            known("plans_run_step_resolution_known", "resolution", ("", *RESOLUTIONS.split())),
            ordering=["run", "position"],
        ),
        table(
            "WorkingItem",
            ID,
            ("owner", models.CharField(max_length=80)),
            ("name", models.CharField(max_length=200)),
            ("ciphertext", models.BinaryField()),
            CREATED_AT,
            ("expires_at", models.DateTimeField(blank=True, null=True)),
            project(),
            index("plans_working_item_expiry", "expires_at", Q(expires_at__isnull=False)),
            unique("plans_working_item_named_once", "project owner name"),
        ),
        table(
            "McpServer",
            ID,
            ("name", models.CharField(max_length=30, unique=True)),
            ("transport", models.CharField(max_length=8)),
            ("server_name", models.CharField(max_length=200, blank=True, default="")),
            ("server_version", models.CharField(max_length=100, blank=True, default="")),
            ("protocol_version", models.CharField(max_length=32, blank=True, default="")),
            ("digest", models.CharField(max_length=64, blank=True, default="")),
            *each("asked_at seen_at", models.DateTimeField(blank=True, null=True)),
            ("last_error", models.TextField(blank=True, default="")),
            ("error_at", models.DateTimeField(blank=True, null=True)),
            verbose_name="MCP server",
        ),
        table(
            "McpTool",
            ID,
            ("name", models.CharField(max_length=64, unique=True)),
            ("remote_name", models.TextField()),
            ("description", models.TextField(blank=True, default="")),
            ("input_schema", models.JSONField()),
            ("digest", models.CharField(max_length=64)),
            ("side_effects", models.BooleanField(default=True)),
            ("idempotent", models.BooleanField(default=False)),
            ("discovered_at", models.DateTimeField(db_default=Now())),
            foreign("server", "plans.mcpserver", "tools"),
            verbose_name="MCP tool",
            ordering=["name"],
        ),
        table(
            "ToolSlot",
            ID,
            ("tool", models.CharField(max_length=64)),
            ("number", models.PositiveIntegerField()),
            ("holder", models.UUIDField(blank=True, null=True)),
            ("lease_until", models.DateTimeField(blank=True, null=True)),
            unique("plans_tool_slot_once", "tool number"),
        ),
        table(
            "ProjectToolPolicy",
            ID,
            ("tool", models.CharField(max_length=64)),
            ("allowed", models.BooleanField()),
            ("changed_at", models.DateTimeField(db_default=Now())),
            person("changed_by", blank=True),
            project(),
            unique("plans_project_tool_policy_once", "project tool"),
            verbose_name_plural="project tool policies",
        ),
        table(
            "CompletionCheck",
            ID,
            ("owner", models.CharField(max_length=80)),
            ("correlation_id", models.CharField(max_length=200)),
            *each("cycle iteration", models.PositiveIntegerField()),
            ("number", models.PositiveIntegerField(default=1)),
            ("check_id", models.CharField(max_length=64, unique=True)),
            *closed("kind", CHECKERS, "plans_check_kind_known", length=8),
            ("checker", models.CharField(max_length=300, blank=True, default="")),
            *closed("state", CHECK_STATES, "plans_check_state_known", length=12, default="running"),
            *closed(
                "decision",
                DECISIONS,
                "plans_check_decision_known",
                or_null=True,
                length=12,
                blank=True,
                null=True,
            ),
            *closed("source", SOURCES, "plans_check_source_known", length=12, default="none"),
            ("check_id_match", models.BooleanField(blank=True, null=True)),
            ("reason", models.TextField(blank=True, null=True)),
            *each("reasons fingerprints", models.JSONField(blank=True, default=list)),
            *each("undecidable_in_a_row same_in_a_row", models.PositiveIntegerField(default=0)),
            ("stalled", models.BooleanField(default=False)),
            ("preview", models.TextField(blank=True, default="")),
            ("started_at", models.DateTimeField(db_default=Now())),
            ("ended_at", models.DateTimeField(blank=True, null=True)),
            project(),
            optional("run", "plans.run", blank=True),
            index("plans_check_of_loop", "project owner id"),
            unique(
                "plans_check_of_iteration_once",
                "project owner iteration",
                Q(state__in=["running", "decided", "failed"]),
            ),
            check(
                "plans_check_decided_has_decision",
                Q(decision__isnull=False, state="decided")
                | ~Q(state="decided") & Q(decision__isnull=True),
            ),
            ordering=["owner", "pk"],
        ),
        # Steps are updated in their place: half a page is kept free.
        migrations.RunSQL("ALTER TABLE plans_runstep SET (fillfactor = 50)"),
    ]

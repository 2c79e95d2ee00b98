"""The tables of goals, models and what is learnt of them, as of 0.1.0."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.migrations._shorthand import (
    CREATED_AT,
    ID,
    check,
    foreign,
    index,
    known,
    one_of,
    one_to_one,
    optional,
    person,
    project,
    table,
    unique,
)

ADAPTERS = {"openai": "OpenAI", "anthropic": "Anthropic", "scripted": "Scripted"}
OUTPUT_MODES = ("text", "json", "schema", "tools")
GOAL_MODES = ("plan", "next_step", "actions")
GOAL_STATUSES = ("queued", "running", "waiting_user", "completed", "failed", "cancelled")
OUTCOMES = (
    "ok_first",
    "repaired",
    "degraded",
    "stubbed",
    "circuit_open",
    "provider_failed",
    "budget_exhausted",
    "cancelled",
)
PHASES = ("plan", "do", "check", "act")
ATTEMPT_STATES = ("calling", "valid", "invalid", "call_failed")
CATEGORIES = ("todo", "note", "reminder", "idea", "list", "habit", "question", "thought")
CADENCES = ("daily", "weekdays", "weekly", "monthly")
ENTRY_STATUSES = ("active", "snoozed", "completed", "archived")
BREAKER_KINDS = ("transport", "quality")
BREAKER_STATES = ("closed", "open", "half_open", "isolated")
FIX_DECISIONS = ("approved", "rejected")
FIX_MODES = ("off", "auto", "approve")
CHECK_STATUSES = ("asked", "done")
PURGE_STATUSES = ("running", "done", "refused")
DEMO_VERBS = ("load", "remove")
DEMO_STATUSES = ("running", "done", "failed")


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("agents", "0001_initial"),
        ("agents", "0002_actions"),
        ("agents", "0003_breakers"),
        ("agents", "0004_fix_patterns"),
        ("agents", "0005_completion_checks"),
        ("agents", "0006_settings_orders"),
        ("agents", "0007_demo_orders"),
        ("agents", "0008_wording"),
    ]
    dependencies = [
        ("diagnostics", "0001_squashed_0_1_0"),
        ("plans", "0001_squashed_0_1_0"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        table(
            "Provider",
            [
                ID,
                ("name", models.CharField(max_length=100)),
                ("adapter", one_of(ADAPTERS)),
                ("base_url", models.CharField(max_length=500, blank=True, default="")),
                ("credential", models.CharField(max_length=500, blank=True, default="")),
                ("enabled", models.BooleanField(default=True)),
                CREATED_AT,
                project("providers"),
            ],
            constraints=[
                unique("agents_provider_name_once_a_project", "project name"),
                known("agents_provider_adapter_known", "adapter", ADAPTERS),
                check(
                    "agents_provider_credential_is_a_reference",
                    Q(credential="")
                    | Q(credential__startswith="env:")
                    | Q(credential__startswith="file:"),
                ),
            ],
        ),
        table(
            "LanguageModel",
            [
                ID,
                ("name", models.CharField(max_length=200)),
                ("is_default", models.BooleanField(default=False)),
                ("enabled", models.BooleanField(default=True)),
                ("output_mode", one_of(OUTPUT_MODES, length=8, default="text")),
                ("last_output_mode", one_of(OUTPUT_MODES, length=8, default="text")),
                (
                    "supported_output_modes",
                    ArrayField(one_of(OUTPUT_MODES, length=8), blank=True, default=list),
                ),
                ("max_output_tokens", models.PositiveIntegerField(default=1024)),
                ("temperature", models.FloatField(default=0.2)),
                ("attempt_timeout_seconds", models.PositiveIntegerField(default=60)),
                ("prompt_version", models.CharField(max_length=100, blank=True, default="")),
                CREATED_AT,
                project("language_models"),
                foreign("provider", "agents.provider", "language_models"),
                ("streaming", models.BooleanField(default=False)),
            ],
            constraints=[
                unique("agents_language_model_name_once_a_provider", "provider name"),
                unique(
                    "agents_language_model_one_default", "project", condition=Q(is_default=True)
                ),
                check(
                    "agents_language_model_output_modes_known",
                    Q(output_mode__in=OUTPUT_MODES) & Q(last_output_mode__in=OUTPUT_MODES),
                ),
            ],
        ),
        table(
            "Goal",
            [
                ("id", models.UUIDField(primary_key=True, editable=False, serialize=False)),
                ("correlation_id", models.CharField(max_length=200)),
                ("mode", one_of(GOAL_MODES, default="plan")),
                ("text_preview", models.TextField()),
                ("status", one_of(GOAL_STATUSES, default="queued")),
                ("outcome", one_of(OUTCOMES, length=20, blank=True, null=True)),
                ("plan_source", models.CharField(max_length=16, default="planner")),
                ("pdca_phase", one_of(PHASES, length=8, default="plan")),
                ("cycle", models.PositiveIntegerField(default=1)),
                ("max_iterations", models.PositiveIntegerField(default=3)),
                ("runner", models.CharField(max_length=16, default="inline")),
                ("tools", ArrayField(models.TextField(), blank=True, null=True)),
                ("constraints", models.JSONField(blank=True, default=list)),
                ("retry", models.JSONField(blank=True, default=dict)),
                ("budget", models.JSONField(blank=True, default=dict)),
                ("environment", models.CharField(max_length=100, blank=True, null=True)),
                ("source", models.CharField(max_length=100, blank=True, null=True)),
                ("last_validation_error", models.JSONField(blank=True, null=True)),
                ("execution_eval", models.JSONField(blank=True, null=True)),
                ("next_user_question", models.TextField(blank=True, null=True)),
                ("user_text", models.TextField(blank=True, default="")),
                ("help", models.JSONField(blank=True, default=list)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("fencing_token", models.BigIntegerField(default=0)),
                ("starts", models.PositiveIntegerField(default=0)),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True)),
                ("idempotency_key", models.CharField(max_length=200, blank=True, null=True)),
                ("request_hash", models.BinaryField(max_length=32, blank=True, null=True)),
                CREATED_AT,
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                optional("current_run", "plans.run", blank=True),
                project("goals"),
                (
                    "language_model",
                    models.ForeignKey(
                        "agents.languagemodel",
                        models.PROTECT,
                        related_name="+",
                        blank=True,
                        null=True,
                    ),
                ),
                ("toolset", models.CharField(max_length=64, blank=True, null=True)),
                ("completion_check", models.JSONField(blank=True, null=True)),
            ],
            indexes=[
                index("agents_goal_newest", "project -id"),
                index("agents_goal_by_status", "project status -id"),
                index(
                    "agents_goal_unfinished",
                    "lease_until",
                    condition=Q(status__in=["queued", "running"]),
                ),
            ],
            constraints=[
                unique("agents_goal_correlation_id_once", "project correlation_id"),
                unique(
                    "agents_goal_idempotency_key_once",
                    "project idempotency_key",
                    condition=Q(idempotency_key__isnull=False),
                ),
                known("agents_goal_status_known", "status", GOAL_STATUSES),
                known("agents_goal_phase_known", "pdca_phase", PHASES),
                known("agents_goal_outcome_known", "outcome", OUTCOMES, or_null=True),
                check(
                    "agents_goal_failed_asks_nothing",
                    ~Q(next_user_question__isnull=False, status="failed"),
                ),
                known("agents_goal_mode_known", "mode", GOAL_MODES),
            ],
        ),
        table(
            "Attempt",
            [
                ID,
                ("node", models.CharField(max_length=64)),
                ("cycle", models.PositiveIntegerField()),
                ("attempt", models.PositiveIntegerField()),
                ("state", one_of(ATTEMPT_STATES, default="calling")),
                ("provider", models.CharField(max_length=100, blank=True, null=True)),
                ("model", models.CharField(max_length=200, blank=True, null=True)),
                ("output_mode", models.CharField(max_length=8)),
                ("simplified", models.BooleanField(default=False)),
                ("dropped_constraints", models.JSONField(blank=True, default=list)),
                ("max_output_tokens", models.PositiveIntegerField()),
                ("temperature", models.FloatField(blank=True, null=True)),
                ("timeout_seconds", models.PositiveIntegerField()),
                ("feedback", models.TextField(blank=True, default="")),
                ("error_type", models.CharField(max_length=32, blank=True, null=True)),
                ("errors", models.JSONField(blank=True, default=list)),
                ("preview", models.TextField(blank=True, default="")),
                ("repairs", models.JSONField(blank=True, default=list)),
                ("coerced", models.JSONField(blank=True, default=list)),
                ("finish_reason", models.CharField(max_length=64, blank=True, null=True)),
                ("latency_ms", models.PositiveIntegerField(blank=True, null=True)),
                ("input_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("output_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("transport_retries", models.PositiveIntegerField(default=0)),
                ("called_at", models.DateTimeField()),
                ("occurred_at", models.DateTimeField(blank=True, null=True)),
                project(),
                foreign("goal", "agents.goal", "attempts"),
                ("told_patterns", ArrayField(models.BigIntegerField(), blank=True, default=list)),
                (
                    "withheld_patterns",
                    ArrayField(models.BigIntegerField(), blank=True, default=list),
                ),
            ],
            ordering=["goal", "cycle", "node", "attempt"],
            constraints=[
                unique("agents_attempt_numbered_once", "goal cycle node attempt"),
                known("agents_attempt_state_known", "state", ATTEMPT_STATES),
                check("agents_attempt_counts_from_one", Q(attempt__gte=1)),
            ],
        ),
        table(
            "ActionBatch",
            [
                ID,
                ("toolset", models.CharField(max_length=64)),
                ("applied", models.JSONField(blank=True, default=list)),
                ("parse_failures", models.JSONField(blank=True, default=list)),
                ("execution_failures", models.JSONField(blank=True, default=list)),
                ("parse_failed", models.PositiveIntegerField(default=0)),
                ("execution_failed", models.PositiveIntegerField(default=0)),
                ("summary", models.TextField(blank=True, default="")),
                CREATED_AT,
                ("undone_at", models.DateTimeField(blank=True, null=True)),
                ("kept", models.JSONField(blank=True, default=list)),
                one_to_one("goal", "agents.goal", "action_batch"),
                project(),
            ],
            verbose_name_plural="action batches",
        ),
        table(
            "Entry",
            [
                (
                    "id",
                    models.CharField(
                        primary_key=True, max_length=32, editable=False, serialize=False
                    ),
                ),
                ("content", models.TextField()),
                ("summary", models.TextField(blank=True, null=True)),
                ("source_text", models.TextField(blank=True, null=True)),
                ("category", one_of(CATEGORIES, default="note")),
                ("priority", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("due_text", models.CharField(max_length=200, blank=True, null=True)),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("cadence", one_of(CADENCES, blank=True, null=True)),
                ("status", one_of(ENTRY_STATUSES, default="active")),
                ("snooze_until", models.DateTimeField(blank=True, null=True)),
                ("revision", models.PositiveIntegerField(default=1)),
                CREATED_AT,
                project("entries"),
            ],
            verbose_name_plural="entries",
            indexes=[index("agents_entry_open", "project status priority")],
            constraints=[
                known("agents_entry_category_known", "category", CATEGORIES),
                known("agents_entry_cadence_known", "cadence", CADENCES, or_null=True),
                known("agents_entry_status_known", "status", ENTRY_STATUSES),
                check(
                    "agents_entry_priority_in_range",
                    Q(priority__isnull=True) | Q(priority__gte=1, priority__lte=5),
                ),
            ],
        ),
        table(
            "Breaker",
            [
                ID,
                ("provider", models.CharField(max_length=100)),
                ("model", models.CharField(max_length=200)),
                ("operation", models.CharField(max_length=64)),
                ("kind", one_of(BREAKER_KINDS)),
                ("state", one_of(BREAKER_STATES, default="closed")),
                ("cause", models.CharField(max_length=32, blank=True, null=True)),
                ("epoch", models.PositiveBigIntegerField(default=0)),
                ("faults_in_row", models.PositiveIntegerField(default=0)),
                ("window", models.JSONField(blank=True, default=list)),
                ("trips", models.PositiveIntegerField(default=0)),
                ("good_probes", models.PositiveIntegerField(default=0)),
                ("open_until", models.DateTimeField(blank=True, null=True)),
                ("probe_token", models.PositiveBigIntegerField(default=0)),
                ("probe_until", models.DateTimeField(blank=True, null=True)),
                ("changed_at", models.DateTimeField(db_default=Now(), editable=False)),
                project("breakers"),
            ],
            ordering=["project", "provider", "model", "operation", "kind"],
            constraints=[
                unique("agents_breaker_one_each", "project provider model operation kind"),
                known("agents_breaker_kind_known", "kind", BREAKER_KINDS),
                known("agents_breaker_state_known", "state", BREAKER_STATES),
                check(
                    "agents_breaker_cools_down_when_open",
                    Q(open_until__isnull=False, state="open")
                    | (~Q(state="open") & Q(open_until__isnull=True)),
                ),
                check(
                    "agents_breaker_probes_when_half_open",
                    Q(probe_until__isnull=True) | Q(state="half_open"),
                ),
            ],
        ),
        table(
            "BreakerTransition",
            [
                ID,
                ("from_state", one_of(BREAKER_STATES)),
                ("to_state", one_of(BREAKER_STATES)),
                ("at", models.DateTimeField()),
                ("cause", models.CharField(max_length=32)),
                ("actor", models.CharField(max_length=200, blank=True, default="")),
                ("epoch", models.PositiveBigIntegerField()),
                foreign("breaker", "agents.breaker", "transitions"),
                ("reason", models.CharField(max_length=500, blank=True, default="")),
            ],
            ordering=["-id"],
            constraints=[
                check(
                    "agents_breakertransition_states_known",
                    Q(from_state__in=BREAKER_STATES, to_state__in=BREAKER_STATES),
                ),
                check(
                    "agents_breakertransition_changes_state", ~Q(from_state=models.F("to_state"))
                ),
            ],
        ),
        table(
            "FixPattern",
            [
                ID,
                ("schema", models.CharField(max_length=64)),
                ("error_class", models.CharField(max_length=32)),
                ("code", models.CharField(max_length=64)),
                ("pointer", models.CharField(max_length=200, blank=True)),
                ("change", models.CharField(max_length=16)),
                ("before", models.CharField(max_length=16)),
                ("after", models.CharField(max_length=16)),
                ("successes", models.PositiveIntegerField(default=0)),
                ("last_success_at", models.DateTimeField()),
                CREATED_AT,
                ("decision", one_of(FIX_DECISIONS, length=8, blank=True, null=True, default=None)),
                ("decided_by", models.CharField(max_length=200, blank=True, default="")),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("expired_at", models.DateTimeField(blank=True, null=True)),
                ("told_runs", models.PositiveIntegerField(default=0)),
                ("told_good", models.PositiveIntegerField(default=0)),
                ("withheld_runs", models.PositiveIntegerField(default=0)),
                ("withheld_good", models.PositiveIntegerField(default=0)),
                project("fix_patterns"),
            ],
            ordering=["-last_success_at", "-id"],
            constraints=[
                unique(
                    "agents_fixpattern_once_a_project",
                    "project schema error_class code pointer change before after",
                ),
                known(
                    "agents_fixpattern_change_known",
                    "change",
                    ["added", "removed", "renamed", "retyped", "replaced", "rewritten"],
                ),
                check(
                    "agents_fixpattern_holds_names_only",
                    Q(pointer__regex="^(/[a-z_*]{1,40}){0,12}$") & Q(code__regex="^[a-z_]{1,64}$"),
                ),
                known("agents_fixpattern_decision_known", "decision", FIX_DECISIONS, or_null=True),
                check(
                    "agents_fixpattern_shares_are_shares",
                    Q(
                        told_good__lte=models.F("told_runs"),
                        withheld_good__lte=models.F("withheld_runs"),
                    ),
                ),
            ],
        ),
        table(
            "FixPolicy",
            [
                ID,
                ("mode", one_of(FIX_MODES, length=8, default="auto")),
                ("changed_by", models.CharField(max_length=200, blank=True, default="")),
                ("changed_at", models.DateTimeField(db_default=Now())),
                one_to_one("project", "diagnostics.project", "fix_policy"),
            ],
            verbose_name_plural="fix policies",
            constraints=[known("agents_fixpolicy_mode_known", "mode", FIX_MODES)],
        ),
        table(
            "FixSuccess",
            [
                ID,
                ("correlation_id", models.CharField(max_length=200)),
                ("at", models.DateTimeField()),
                foreign("pattern", "agents.fixpattern", "seen"),
            ],
            verbose_name_plural="fix successes",
            constraints=[unique("agents_fixsuccess_once_a_run", "pattern correlation_id")],
        ),
        table(
            "ModelCheck",
            [
                one_to_one("language_model", "agents.languagemodel", "check_row", primary_key=True),
                ("status", one_of(CHECK_STATUSES, length=8, default="asked", db_default="asked")),
                ("asked_at", models.DateTimeField(db_default=Now())),
                ("done_at", models.DateTimeField(null=True)),
                ("latency_ms", models.PositiveIntegerField(null=True)),
                ("fault", models.CharField(max_length=32, blank=True, default="")),
                ("said", models.CharField(max_length=500, blank=True, default="")),
                project(db_index=False),
            ],
            constraints=[known("agents_modelcheck_status_known", "status", CHECK_STATUSES)],
        ),
        table(
            "PlanningStop",
            [
                ID,
                ("reason", models.CharField(max_length=200, blank=True, default="")),
                ("at", models.DateTimeField(db_default=Now(), editable=False)),
                person("by"),
                project(null=True, db_index=False),
            ],
            constraints=[unique("agents_planningstop_once", "project", nulls_distinct=False)],
        ),
        table(
            "PurgeOrder",
            [
                ID,
                ("correlation_id", models.CharField(max_length=200, blank=True, default="")),
                (
                    "status",
                    one_of(PURGE_STATUSES, length=8, default="running", db_default="running"),
                ),
                ("at", models.DateTimeField(db_default=Now(), editable=False)),
                ("finished_at", models.DateTimeField(null=True)),
                ("goals", models.BigIntegerField(default=0)),
                ("runs", models.BigIntegerField(default=0)),
                ("events", models.BigIntegerField(default=0)),
                person("by"),
                project("purge_orders", db_index=False),
            ],
            indexes=[index("agents_purgeorder_recent", "project -at")],
            constraints=[known("agents_purgeorder_status_known", "status", PURGE_STATUSES)],
        ),
        table(
            "DemoOrder",
            [
                ID,
                ("verb", one_of(DEMO_VERBS, length=8)),
                (
                    "status",
                    one_of(DEMO_STATUSES, length=8, default="running", db_default="running"),
                ),
                ("at", models.DateTimeField(db_default=Now(), editable=False)),
                ("finished_at", models.DateTimeField(null=True)),
                ("events", models.BigIntegerField(default=0)),
                ("goals", models.BigIntegerField(default=0)),
                person("by"),
                project("demo_orders", db_index=False),
            ],
            indexes=[index("agents_demoorder_recent", "project -at")],
            constraints=[
                known("agents_demoorder_verb_known", "verb", DEMO_VERBS),
                known("agents_demoorder_status_known", "status", DEMO_STATUSES),
                unique("agents_demoorder_one_at_work", "project", condition=Q(status="running")),
            ],
        ),
    ]

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
    closed,
    each,
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
OUTPUT_MODES = "text json schema tools"
GOAL_MODES = "plan next_step actions"
GOAL_STATUSES = "queued running waiting_user completed failed cancelled"
OUTCOMES = (
    "ok_first repaired degraded stubbed circuit_open provider_failed budget_exhausted cancelled"
)
PHASES = "plan do check act"
ATTEMPT_STATES = "calling valid invalid call_failed"
CATEGORIES = "todo note reminder idea list habit question thought"
CADENCES = "daily weekdays weekly monthly"
ENTRY_STATUSES = "active snoozed completed archived"
BREAKER_KINDS = "transport quality"
BREAKER_STATES = "closed open half_open isolated"
FIX_DECISIONS = "approved rejected"
FIX_MODES = "off auto approve"
CHECK_STATUSES = "asked done"
PURGE_STATUSES = "running done refused"
DEMO_VERBS = "load remove"
DEMO_STATUSES = "running done failed"
REPLACED = """
0001_initial 0002_actions 0003_breakers 0004_fix_patterns 0005_completion_checks
0006_settings_orders 0007_demo_orders 0008_wording
"""


class Migration(migrations.Migration):
    initial = True
    replaces = [("agents", name) for name in REPLACED.split()]
    dependencies = [
        ("diagnostics", "0001_squashed_0_1_0"),
        ("plans", "0001_squashed_0_1_0"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        table(
            "Provider",
            ID,
            ("name", models.CharField(max_length=100)),
            *closed("adapter", ADAPTERS, "agents_provider_adapter_known"),
            *each("base_url credential", models.CharField(max_length=500, blank=True, default="")),
            ("enabled", models.BooleanField(default=True)),
            CREATED_AT,
            project("providers"),
            unique("agents_provider_name_once_a_project", "project name"),
            check(
                "agents_provider_credential_is_a_reference",
                Q(credential="")
                | Q(credential__startswith="env:")
                | Q(credential__startswith="file:"),
            ),
        ),
        table(
            "LanguageModel",
            ID,
            ("name", models.CharField(max_length=200)),
            ("is_default", models.BooleanField(default=False)),
            ("enabled", models.BooleanField(default=True)),
            *each("output_mode last_output_mode", one_of(OUTPUT_MODES, length=8, default="text")),
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
            unique("agents_language_model_name_once_a_provider", "provider name"),
            unique("agents_language_model_one_default", "project", Q(is_default=True)),
            known(
                "agents_language_model_output_modes_known",
                "output_mode last_output_mode",
                OUTPUT_MODES,
            ),
        ),
        table(
            "Goal",
            ("id", models.UUIDField(primary_key=True, editable=False, serialize=False)),
            ("correlation_id", models.CharField(max_length=200)),
            *closed("mode", GOAL_MODES, "agents_goal_mode_known", default="plan"),
            ("text_preview", models.TextField()),
            *closed("status", GOAL_STATUSES, "agents_goal_status_known", default="queued"),
            *closed(
                "outcome",
                OUTCOMES,
                "agents_goal_outcome_known",
                or_null=True,
                length=20,
                blank=True,
                null=True,
            ),
            ("plan_source", models.CharField(max_length=16, default="planner")),
            *closed("pdca_phase", PHASES, "agents_goal_phase_known", length=8, default="plan"),
            ("cycle", models.PositiveIntegerField(default=1)),
            ("max_iterations", models.PositiveIntegerField(default=3)),
            ("runner", models.CharField(max_length=16, default="inline")),
            ("tools", ArrayField(models.TextField(), blank=True, null=True)),
            ("constraints", models.JSONField(blank=True, default=list)),
            *each("retry budget", models.JSONField(blank=True, default=dict)),
            *each("environment source", models.CharField(max_length=100, blank=True, null=True)),
            *each("last_validation_error execution_eval", models.JSONField(blank=True, null=True)),
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
            *each("started_at ended_at", models.DateTimeField(blank=True, null=True)),
            optional("current_run", "plans.run", blank=True),
            project("goals"),
            (
                "language_model",
                models.ForeignKey(
                    "agents.languagemodel", models.PROTECT, related_name="+", blank=True, null=True
                ),
            ),
            ("toolset", models.CharField(max_length=64, blank=True, null=True)),
            ("completion_check", models.JSONField(blank=True, null=True)),
            index("agents_goal_newest", "project -id"),
            index("agents_goal_by_status", "project status -id"),
            index("agents_goal_unfinished", "lease_until", Q(status__in=["queued", "running"])),
            unique("agents_goal_correlation_id_once", "project correlation_id"),
            unique(
                "agents_goal_idempotency_key_once",
                "project idempotency_key",
                Q(idempotency_key__isnull=False),
            ),
            check(
                "agents_goal_failed_asks_nothing",
                ~Q(next_user_question__isnull=False, status="failed"),
            ),
        ),
        table(
            "Attempt",
            ID,
            ("node", models.CharField(max_length=64)),
            *each("cycle attempt", models.PositiveIntegerField()),
            *closed("state", ATTEMPT_STATES, "agents_attempt_state_known", default="calling"),
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
            *each("repairs coerced", models.JSONField(blank=True, default=list)),
            ("finish_reason", models.CharField(max_length=64, blank=True, null=True)),
            *each(
                "latency_ms input_tokens output_tokens",
                models.PositiveIntegerField(blank=True, null=True),
            ),
            ("transport_retries", models.PositiveIntegerField(default=0)),
            ("called_at", models.DateTimeField()),
            ("occurred_at", models.DateTimeField(blank=True, null=True)),
            project(),
            foreign("goal", "agents.goal", "attempts"),
            *each(
                "told_patterns withheld_patterns",
                ArrayField(models.BigIntegerField(), blank=True, default=list),
            ),
            unique("agents_attempt_numbered_once", "goal cycle node attempt"),
            check("agents_attempt_counts_from_one", Q(attempt__gte=1)),
            ordering=["goal", "cycle", "node", "attempt"],
        ),
        table(
            "ActionBatch",
            ID,
            ("toolset", models.CharField(max_length=64)),
            *each(
                "applied parse_failures execution_failures",
                models.JSONField(blank=True, default=list),
            ),
            *each("parse_failed execution_failed", models.PositiveIntegerField(default=0)),
            ("summary", models.TextField(blank=True, default="")),
            CREATED_AT,
            ("undone_at", models.DateTimeField(blank=True, null=True)),
            ("kept", models.JSONField(blank=True, default=list)),
            one_to_one("goal", "agents.goal", "action_batch"),
            project(),
            verbose_name_plural="action batches",
        ),
        table(
            "Entry",
            (
                "id",
                models.CharField(primary_key=True, max_length=32, editable=False, serialize=False),
            ),
            ("content", models.TextField()),
            *each("summary source_text", models.TextField(blank=True, null=True)),
            *closed("category", CATEGORIES, "agents_entry_category_known", default="note"),
            ("priority", models.PositiveSmallIntegerField(blank=True, null=True)),
            ("due_text", models.CharField(max_length=200, blank=True, null=True)),
            ("due_at", models.DateTimeField(blank=True, null=True)),
            *closed(
                "cadence",
                CADENCES,
                "agents_entry_cadence_known",
                or_null=True,
                blank=True,
                null=True,
            ),
            *closed("status", ENTRY_STATUSES, "agents_entry_status_known", default="active"),
            ("snooze_until", models.DateTimeField(blank=True, null=True)),
            ("revision", models.PositiveIntegerField(default=1)),
            CREATED_AT,
            project("entries"),
            index("agents_entry_open", "project status priority"),
            check(
                "agents_entry_priority_in_range",
                Q(priority__isnull=True) | Q(priority__gte=1, priority__lte=5),
            ),
            verbose_name_plural="entries",
        ),
        table(
            "Breaker",
            ID,
            ("provider", models.CharField(max_length=100)),
            ("model", models.CharField(max_length=200)),
            ("operation", models.CharField(max_length=64)),
            *closed("kind", BREAKER_KINDS, "agents_breaker_kind_known"),
            *closed("state", BREAKER_STATES, "agents_breaker_state_known", default="closed"),
            ("cause", models.CharField(max_length=32, blank=True, null=True)),
            ("epoch", models.PositiveBigIntegerField(default=0)),
            ("faults_in_row", models.PositiveIntegerField(default=0)),
            ("window", models.JSONField(blank=True, default=list)),
            *each("trips good_probes", models.PositiveIntegerField(default=0)),
            ("open_until", models.DateTimeField(blank=True, null=True)),
            ("probe_token", models.PositiveBigIntegerField(default=0)),
            ("probe_until", models.DateTimeField(blank=True, null=True)),
            ("changed_at", models.DateTimeField(db_default=Now(), editable=False)),
            project("breakers"),
            unique("agents_breaker_one_each", "project provider model operation kind"),
            check(
                "agents_breaker_cools_down_when_open",
                Q(open_until__isnull=False, state="open")
                | ~Q(state="open") & Q(open_until__isnull=True),
            ),
            check(
                "agents_breaker_probes_when_half_open",
                Q(probe_until__isnull=True) | Q(state="half_open"),
            ),
            ordering=["project", "provider", "model", "operation", "kind"],
        ),
        table(
            "BreakerTransition",
            ID,
            *each("from_state to_state", one_of(BREAKER_STATES)),
            ("at", models.DateTimeField()),
            ("cause", models.CharField(max_length=32)),
            ("actor", models.CharField(max_length=200, blank=True, default="")),
            ("epoch", models.PositiveBigIntegerField()),
            foreign("breaker", "agents.breaker", "transitions"),
            ("reason", models.CharField(max_length=500, blank=True, default="")),
            known("agents_breakertransition_states_known", "from_state to_state", BREAKER_STATES),
            check("agents_breakertransition_changes_state", ~Q(from_state=models.F("to_state"))),
            ordering=["-id"],
        ),
        table(
            "FixPattern",
            ID,
            ("schema", models.CharField(max_length=64)),
            ("error_class", models.CharField(max_length=32)),
            ("code", models.CharField(max_length=64)),
            ("pointer", models.CharField(max_length=200, blank=True)),
            *each("change before after", models.CharField(max_length=16)),
            ("successes", models.PositiveIntegerField(default=0)),
            ("last_success_at", models.DateTimeField()),
            CREATED_AT,
            *closed(
                "decision",
                FIX_DECISIONS,
                "agents_fixpattern_decision_known",
                or_null=True,
                length=8,
                blank=True,
                null=True,
                default=None,
            ),
            ("decided_by", models.CharField(max_length=200, blank=True, default="")),
            *each("decided_at expired_at", models.DateTimeField(blank=True, null=True)),
            *each(
                "told_runs told_good withheld_runs withheld_good",
                models.PositiveIntegerField(default=0),
            ),
            project("fix_patterns"),
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
            check(
                "agents_fixpattern_shares_are_shares",
                Q(
                    told_good__lte=models.F("told_runs"),
                    withheld_good__lte=models.F("withheld_runs"),
                ),
            ),
            ordering=["-last_success_at", "-id"],
        ),
        table(
            "FixPolicy",
            ID,
            *closed("mode", FIX_MODES, "agents_fixpolicy_mode_known", length=8, default="auto"),
            ("changed_by", models.CharField(max_length=200, blank=True, default="")),
            ("changed_at", models.DateTimeField(db_default=Now())),
            one_to_one("project", "diagnostics.project", "fix_policy"),
            verbose_name_plural="fix policies",
        ),
        table(
            "FixSuccess",
            ID,
            ("correlation_id", models.CharField(max_length=200)),
            ("at", models.DateTimeField()),
            foreign("pattern", "agents.fixpattern", "seen"),
            unique("agents_fixsuccess_once_a_run", "pattern correlation_id"),
            verbose_name_plural="fix successes",
        ),
        table(
            "ModelCheck",
            one_to_one("language_model", "agents.languagemodel", "check_row", primary_key=True),
            *closed(
                "status",
                CHECK_STATUSES,
                "agents_modelcheck_status_known",
                length=8,
                default="asked",
                db_default="asked",
            ),
            ("asked_at", models.DateTimeField(db_default=Now())),
            ("done_at", models.DateTimeField(null=True)),
            ("latency_ms", models.PositiveIntegerField(null=True)),
            ("fault", models.CharField(max_length=32, blank=True, default="")),
            ("said", models.CharField(max_length=500, blank=True, default="")),
            project(db_index=False),
        ),
        table(
            "PlanningStop",
            ID,
            ("reason", models.CharField(max_length=200, blank=True, default="")),
            ("at", models.DateTimeField(db_default=Now(), editable=False)),
            person("by"),
            project(null=True, db_index=False),
            unique("agents_planningstop_once", "project", nulls_distinct=False),
        ),
        table(
            "PurgeOrder",
            ID,
            ("correlation_id", models.CharField(max_length=200, blank=True, default="")),
            *closed(
                "status",
                PURGE_STATUSES,
                "agents_purgeorder_status_known",
                length=8,
                default="running",
                db_default="running",
            ),
            ("at", models.DateTimeField(db_default=Now(), editable=False)),
            ("finished_at", models.DateTimeField(null=True)),
            *each("goals runs events", models.BigIntegerField(default=0)),
            person("by"),
            project("purge_orders", db_index=False),
            index("agents_purgeorder_recent", "project -at"),
        ),
        table(
            "DemoOrder",
            ID,
            *closed("verb", DEMO_VERBS, "agents_demoorder_verb_known", length=8),
            *closed(
                "status",
                DEMO_STATUSES,
                "agents_demoorder_status_known",
                length=8,
                default="running",
                db_default="running",
            ),
            ("at", models.DateTimeField(db_default=Now(), editable=False)),
            ("finished_at", models.DateTimeField(null=True)),
            *each("events goals", models.BigIntegerField(default=0)),
            person("by"),
            project("demo_orders", db_index=False),
            index("agents_demoorder_recent", "project -at"),
            unique("agents_demoorder_one_at_work", "project", Q(status="running")),
        ),
    ]

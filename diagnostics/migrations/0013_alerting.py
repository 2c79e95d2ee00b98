"""Alert rules, how they stand, incidents; the minutes that rules look back at."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# What rules look back at: counts as they were known in time, 15 minutes after their minute.
# What comes later is in the rollups and moves no alert (S9).
MINUTES = """
CREATE TABLE diagnostics_alert_minute (
    LIKE diagnostics_rollup_minute INCLUDING DEFAULTS,
    CONSTRAINT diagnostics_alert_minute_once PRIMARY KEY (project_id, bucket, series_id)
);
COMMENT ON TABLE diagnostics_alert_minute IS
    'rollup minutes as alert rules know them: frozen 15 minutes later, kept for hours';
"""


class Migration(migrations.Migration):
    dependencies = [
        ("diagnostics", "0012_saved_views"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("filter", models.TextField(blank=True, default="")),
                (
                    "group_by",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "signal",
                    models.CharField(
                        choices=[
                            ("degraded_ratio", "Degraded Ratio"),
                            ("first_pass_failure_ratio", "First Pass Failure Ratio"),
                            ("repair_success_ratio", "Repair Success Ratio"),
                            ("call_failure_ratio", "Call Failure Ratio"),
                            ("degraded_count", "Degraded Count"),
                            ("new_group", "New Group"),
                            ("regressed_group", "Regressed Group"),
                            ("breaker_open", "Breaker Open"),
                            ("latency_p95", "Latency P95"),
                            ("retry_tokens", "Retry Tokens"),
                            ("retry_money", "Retry Money"),
                            ("ingest_rejects", "Ingest Rejects"),
                            ("source_silent", "Source Silent"),
                        ],
                        max_length=32,
                    ),
                ),
                (
                    "detector",
                    models.CharField(
                        choices=[
                            ("change", "Change"),
                            ("threshold", "Threshold"),
                            ("count", "Count"),
                            ("absent", "Absent"),
                            ("burn", "Burn"),
                        ],
                        max_length=16,
                    ),
                ),
                ("parameters", models.JSONField(blank=True, default=dict)),
                (
                    "severity",
                    models.CharField(
                        choices=[
                            ("info", "Info"),
                            ("warning", "Warning"),
                            ("critical", "Critical"),
                        ],
                        default="warning",
                        max_length=16,
                    ),
                ),
                ("for_seconds", models.PositiveIntegerField(default=0)),
                ("clear_seconds", models.PositiveIntegerField(default=0)),
                (
                    "no_data",
                    models.CharField(
                        choices=[
                            ("keep", "Keep"),
                            ("clear", "Clear"),
                            ("fire", "Fire"),
                        ],
                        default="keep",
                        max_length=8,
                    ),
                ),
                ("no_data_seconds", models.PositiveIntegerField(default=21600)),
                ("is_latching", models.BooleanField(default=False)),
                ("routing", models.JSONField(blank=True, default=list)),
                (
                    "renotify_seconds",
                    models.PositiveIntegerField(blank=True, null=True),
                ),
                (
                    "escalate_seconds",
                    models.PositiveIntegerField(blank=True, null=True),
                ),
                ("escalation", models.JSONField(blank=True, default=list)),
                ("is_enabled", models.BooleanField(default=True)),
                ("standard", models.CharField(blank=True, max_length=32, null=True)),
                ("version", models.PositiveIntegerField(default=1)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now()
                    ),
                ),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alert_rules",
                        to="diagnostics.project",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_alertrule",
            },
        ),
        migrations.CreateModel(
            name="AlertSlot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("slot", models.DateTimeField()),
                ("at", models.DateTimeField()),
                ("slices", models.PositiveIntegerField(default=0)),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="diagnostics.project",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_alertslot",
            },
        ),
        migrations.CreateModel(
            name="AlertState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("slice", models.JSONField(default=dict)),
                ("key", models.UUIDField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ok", "Ok"),
                            ("pending", "Pending"),
                            ("firing", "Firing"),
                            ("acknowledged", "Acknowledged"),
                            ("clearing", "Clearing"),
                            ("resolved", "Resolved"),
                            ("no_data", "No Data"),
                        ],
                        default="ok",
                        max_length=16,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("detector_state", models.JSONField(default=dict)),
                ("memory", models.JSONField(default=dict)),
                ("rule_version", models.PositiveIntegerField(default=1)),
                ("last_data_at", models.DateTimeField(blank=True, null=True)),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="states",
                        to="diagnostics.alertrule",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_alertstate",
            },
        ),
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("slot", models.DateTimeField()),
                ("k", models.BigIntegerField()),
                ("n", models.BigIntegerField()),
                ("value", models.FloatField()),
                ("bound", models.FloatField()),
                ("rule_version", models.PositiveIntegerField()),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("quiet", "Quiet"),
                            ("fires", "Fires"),
                            ("clears", "Clears"),
                            ("no_data", "No Data"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "state_after",
                    models.CharField(
                        choices=[
                            ("ok", "Ok"),
                            ("pending", "Pending"),
                            ("firing", "Firing"),
                            ("acknowledged", "Acknowledged"),
                            ("clearing", "Clearing"),
                            ("resolved", "Resolved"),
                            ("no_data", "No Data"),
                        ],
                        max_length=16,
                    ),
                ),
                ("is_backfilled", models.BooleanField(default=False)),
                (
                    "state",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="evaluations",
                        to="diagnostics.alertstate",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_evaluation",
            },
        ),
        migrations.CreateModel(
            name="Incident",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("title", models.CharField(max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("acknowledged", "Acknowledged"),
                            ("resolved", "Resolved"),
                        ],
                        default="open",
                        max_length=16,
                    ),
                ),
                (
                    "severity",
                    models.CharField(
                        choices=[
                            ("info", "Info"),
                            ("warning", "Warning"),
                            ("critical", "Critical"),
                        ],
                        default="warning",
                        max_length=16,
                    ),
                ),
                ("onset", models.DateTimeField()),
                ("fired_at", models.DateTimeField()),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True)),
                ("cleared_at", models.DateTimeField(blank=True, null=True)),
                ("cause", models.CharField(blank=True, default="", max_length=32)),
                ("cause_value", models.TextField(blank=True, default="")),
                ("verdict", models.JSONField(default=dict)),
                ("verdict_now", models.JSONField(default=dict)),
                ("verdict_at", models.DateTimeField(blank=True, null=True)),
                ("filter", models.TextField(blank=True, default="")),
                (
                    "tracker_url",
                    models.URLField(blank=True, default="", max_length=500),
                ),
                (
                    "resolution_cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("provider", "Provider"),
                            ("model", "Model"),
                            ("prompt", "Prompt"),
                            ("schema", "Schema"),
                            ("deploy", "Deploy"),
                            ("validator", "Validator"),
                            ("false_alarm", "False Alarm"),
                            ("recovered", "Recovered"),
                            ("other", "Other"),
                        ],
                        max_length=16,
                        null=True,
                    ),
                ),
                ("is_backfilled", models.BooleanField(default=False)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="incidents",
                        to="diagnostics.project",
                    ),
                ),
                (
                    "resolved_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_incident",
            },
        ),
        migrations.CreateModel(
            name="IncidentNote",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("comment", "Comment"),
                            ("assigned", "Assigned"),
                            ("linked", "Linked"),
                            ("silenced", "Silenced"),
                        ],
                        default="comment",
                        max_length=16,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("text", models.TextField(blank=True, default="")),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "incident",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notes",
                        to="diagnostics.incident",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_incidentnote",
            },
        ),
        migrations.CreateModel(
            name="IncidentSlice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("rule_version", models.PositiveIntegerField()),
                (
                    "severity",
                    models.CharField(
                        choices=[
                            ("info", "Info"),
                            ("warning", "Warning"),
                            ("critical", "Critical"),
                        ],
                        max_length=16,
                    ),
                ),
                ("slice", models.JSONField(default=dict)),
                ("onset", models.DateTimeField()),
                ("fired_at", models.DateTimeField()),
                ("cleared_at", models.DateTimeField(blank=True, null=True)),
                ("k", models.BigIntegerField()),
                ("n", models.BigIntegerField()),
                ("value", models.FloatField()),
                ("bound", models.FloatField()),
                ("baseline", models.FloatField(blank=True, null=True)),
                (
                    "incident",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="slices",
                        to="diagnostics.incident",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="incident_slices",
                        to="diagnostics.alertrule",
                    ),
                ),
                (
                    "state",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="incidents",
                        to="diagnostics.alertstate",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_incidentslice",
            },
        ),
        migrations.CreateModel(
            name="MaintenanceWindow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("filter", models.TextField(blank=True, default="")),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                (
                    "repeats",
                    models.CharField(
                        choices=[
                            ("once", "Once"),
                            ("daily", "Daily"),
                            ("weekly", "Weekly"),
                        ],
                        default="once",
                        max_length=8,
                    ),
                ),
                ("zone", models.CharField(default="UTC", max_length=64)),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="maintenance_windows",
                        to="diagnostics.project",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_maintenancewindow",
            },
        ),
        migrations.CreateModel(
            name="Silence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("filter", models.TextField(blank=True, default="")),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("reason", models.TextField(blank=True, default="")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="silences",
                        to="diagnostics.project",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="silences",
                        to="diagnostics.alertrule",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_silence",
            },
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("fired", "Fired"),
                            ("joined", "Joined"),
                            ("worsened", "Worsened"),
                            ("acknowledged", "Acknowledged"),
                            ("slice_cleared", "Slice Cleared"),
                            ("cleared", "Cleared"),
                            ("resolved", "Resolved"),
                        ],
                        max_length=16,
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "severity",
                    models.CharField(
                        choices=[
                            ("info", "Info"),
                            ("warning", "Warning"),
                            ("critical", "Critical"),
                        ],
                        max_length=16,
                    ),
                ),
                ("is_silenced", models.BooleanField(default=False)),
                ("processed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "incident",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="transitions",
                        to="diagnostics.incident",
                    ),
                ),
                (
                    "slice",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="diagnostics.incidentslice",
                    ),
                ),
            ],
            options={
                "db_table": "diagnostics_transition",
            },
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.UniqueConstraint(
                condition=models.Q(("archived_at__isnull", True)),
                fields=("project", "name"),
                name="diagnostics_alertrule_name_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.UniqueConstraint(
                condition=models.Q(("standard__isnull", False)),
                fields=("project", "standard"),
                name="diagnostics_alertrule_standard_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "signal__in",
                        [
                            "degraded_ratio",
                            "first_pass_failure_ratio",
                            "repair_success_ratio",
                            "call_failure_ratio",
                            "degraded_count",
                            "new_group",
                            "regressed_group",
                            "breaker_open",
                            "latency_p95",
                            "retry_tokens",
                            "retry_money",
                            "ingest_rejects",
                            "source_silent",
                        ],
                    )
                ),
                name="diagnostics_alertrule_signal_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("detector__in", ["change", "threshold", "count", "absent", "burn"])
                ),
                name="diagnostics_alertrule_detector_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("severity__in", ["info", "warning", "critical"])),
                name="diagnostics_alertrule_severity_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("no_data__in", ["keep", "clear", "fire"])),
                name="diagnostics_alertrule_no_data_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "group_by__contained_by",
                        ["environment", "node", "provider", "model"],
                    )
                ),
                name="diagnostics_alertrule_group_by_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("clear_seconds__lte", 604800), ("for_seconds__lte", 604800)
                ),
                name="diagnostics_alertrule_waits_bounded",
            ),
        ),
        migrations.AddIndex(
            model_name="alertslot",
            index=models.Index(fields=["slot"], name="diagnostics_alertslot_age"),
        ),
        migrations.AddConstraint(
            model_name="alertslot",
            constraint=models.UniqueConstraint(
                fields=("project", "slot"), name="diagnostics_alertslot_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="alertstate",
            constraint=models.UniqueConstraint(
                fields=("rule", "key"), name="diagnostics_alertstate_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="alertstate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "ok",
                            "pending",
                            "firing",
                            "acknowledged",
                            "clearing",
                            "resolved",
                            "no_data",
                        ],
                    )
                ),
                name="diagnostics_alertstate_state_known",
            ),
        ),
        migrations.AddIndex(
            model_name="evaluation",
            index=models.Index(fields=["slot"], name="diagnostics_evaluation_age"),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.UniqueConstraint(
                fields=("state", "slot"), name="diagnostics_evaluation_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("verdict__in", ["quiet", "fires", "clears", "no_data"])
                ),
                name="diagnostics_evaluation_verdict_known",
            ),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                fields=["project", "-fired_at", "-id"],
                name="diagnostics_incident_latest",
            ),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                condition=models.Q(("cleared_at__isnull", True)),
                fields=["project"],
                name="diagnostics_incident_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["open", "acknowledged", "resolved"])),
                name="diagnostics_incident_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(("severity__in", ["info", "warning", "critical"])),
                name="diagnostics_incident_severity_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cleared_at__isnull", False), ("state", "resolved")),
                    models.Q(
                        models.Q(("state", "resolved"), _negated=True),
                        ("cleared_at__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="diagnostics_incident_cleared_when_resolved",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("resolution_cause__isnull", True),
                    (
                        "resolution_cause__in",
                        [
                            "provider",
                            "model",
                            "prompt",
                            "schema",
                            "deploy",
                            "validator",
                            "false_alarm",
                            "recovered",
                            "other",
                        ],
                    ),
                    _connector="OR",
                ),
                name="diagnostics_incident_cause_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="incidentnote",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["comment", "assigned", "linked", "silenced"])
                ),
                name="diagnostics_incidentnote_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="incidentslice",
            constraint=models.UniqueConstraint(
                condition=models.Q(("cleared_at__isnull", True)),
                fields=("state",),
                name="diagnostics_incidentslice_one_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="incidentslice",
            constraint=models.CheckConstraint(
                condition=models.Q(("severity__in", ["info", "warning", "critical"])),
                name="diagnostics_incidentslice_severity_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="maintenancewindow",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gt", models.F("starts_at"))),
                name="diagnostics_maintenancewindow_ends",
            ),
        ),
        migrations.AddConstraint(
            model_name="maintenancewindow",
            constraint=models.CheckConstraint(
                condition=models.Q(("repeats__in", ["once", "daily", "weekly"])),
                name="diagnostics_maintenancewindow_repeats_known",
            ),
        ),
        migrations.AddIndex(
            model_name="silence",
            index=models.Index(
                fields=["project", "ends_at"], name="diagnostics_silence_now"
            ),
        ),
        migrations.AddConstraint(
            model_name="silence",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gte", models.F("starts_at"))),
                name="diagnostics_silence_ends",
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.UniqueConstraint(
                fields=("incident", "kind", "at", "slice"),
                name="diagnostics_transition_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind__in", ["fired", "cleared", "resolved"])),
                fields=("incident", "kind"),
                name="diagnostics_transition_ends_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "fired",
                            "joined",
                            "worsened",
                            "acknowledged",
                            "slice_cleared",
                            "cleared",
                            "resolved",
                        ],
                    )
                ),
                name="diagnostics_transition_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.CheckConstraint(
                condition=models.Q(("severity__in", ["info", "warning", "critical"])),
                name="diagnostics_transition_severity_known",
            ),
        ),
        migrations.RunSQL(MINUTES, "DROP TABLE diagnostics_alert_minute;"),
    ]

"""A row per run, and what the attempts of runs that spans tell are numbered by."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0006_one_builtin_rule")]

    operations = [
        migrations.CreateModel(
            name="AgentRun",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "project",
                        "correlation_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("correlation_id", models.TextField(db_collation="C")),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("calls", models.IntegerField(db_default=0)),
                ("attempts", models.IntegerField(db_default=0)),
                ("ok_first", models.IntegerField(db_default=0)),
                ("recovered", models.IntegerField(db_default=0)),
                ("degraded", models.IntegerField(db_default=0)),
                ("input_tokens", models.BigIntegerField(db_default=0)),
                ("output_tokens", models.BigIntegerField(db_default=0)),
                (
                    "nodes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), db_default=models.Value("{}"), size=None
                    ),
                ),
                (
                    "called_models",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), db_default=models.Value("{}"), size=None
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                ("decided_by", models.UUIDField(null=True)),
                ("provider", models.TextField(null=True)),
                ("model", models.TextField(null=True)),
                ("environment", models.TextField(null=True)),
                ("source", models.TextField(null=True)),
                ("release", models.TextField(null=True)),
                ("prompt_version", models.TextField(null=True)),
                ("settles_at", models.DateTimeField(null=True)),
                (
                    "outcome",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Case(
                            models.When(degraded__gt=0, then=models.Value("degraded")),
                            models.When(recovered__gt=0, then=models.Value("recovered")),
                            models.When(ok_first__gt=0, then=models.Value("ok_first")),
                            default=models.Value("open"),
                        ),
                        output_field=models.TextField(),
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="diagnostics.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["project", "-began_at", "-correlation_id"],
                        name="diagnostics_agentrun_newest",
                    ),
                    models.Index(
                        condition=models.Q(("settles_at__isnull", False)),
                        fields=["settles_at"],
                        name="diagnostics_agentrun_due",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="AgentSpan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("trace_id", models.CharField(max_length=32)),
                ("span_id", models.CharField(max_length=16)),
                ("received_at", models.DateTimeField()),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
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
                "indexes": [models.Index(fields=["received_at"], name="diagnostics_agentspan_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "trace_id", "span_id"), name="diagnostics_agentspan_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UnplacedCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("correlation_id", models.TextField()),
                ("event_id", models.UUIDField()),
                ("occurred_at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                ("started_at", models.DateTimeField()),
                ("trace_id", models.CharField(max_length=32)),
                ("parent_id", models.CharField(blank=True, max_length=16)),
                ("cycle", models.IntegerField(default=1)),
                ("is_end", models.BooleanField(default=False)),
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
                "indexes": [
                    models.Index(
                        fields=["project", "correlation_id"], name="diagnostics_unplacedcall_run"
                    ),
                    models.Index(fields=["received_at"], name="diagnostics_unplacedcall_age"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "event_id"), name="diagnostics_unplacedcall_once"
                    )
                ],
            },
        ),
        # A row is written again and again: room beside it keeps it where it is.
        migrations.RunSQL(
            "ALTER TABLE diagnostics_agentrun SET (fillfactor = 85)", migrations.RunSQL.noop
        ),
    ]

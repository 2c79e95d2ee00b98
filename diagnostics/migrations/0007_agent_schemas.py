import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0006_rollups_and_failure_groups")]

    operations = [
        migrations.CreateModel(
            name="AgentSchema",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("node", models.CharField(max_length=63)),
                ("version", models.CharField(max_length=200)),
                ("json_schema", models.JSONField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ("current_since", models.DateTimeField(null=True)),
                ("project", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="agent_schemas", to="diagnostics.project")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "node", "version"), name="diagnostics_agentschema_version_once"),
                    models.UniqueConstraint(condition=models.Q(("current_since__isnull", False)), fields=("project", "node"), name="diagnostics_agentschema_one_current"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SpanVerdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("trace_id", models.CharField(max_length=32)),
                ("span_id", models.CharField(max_length=16)),
                ("received_at", models.DateTimeField()),
                ("content", models.JSONField()),
                ("project", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="diagnostics.project")),
            ],
            options={
                "indexes": [models.Index(fields=["received_at"], name="diagnostics_spanverdict_age")],
                "constraints": [models.UniqueConstraint(fields=("project", "trace_id", "span_id"), name="diagnostics_spanverdict_once")],
            },
        ),
    ]

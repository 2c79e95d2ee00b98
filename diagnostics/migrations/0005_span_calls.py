"""Which spans of the last day told which event, and how much of what came says nothing."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0004_observed_answerers")]

    operations = [
        migrations.CreateModel(
            "SpanCall",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        "diagnostics.project",
                        django.db.models.deletion.CASCADE,
                        related_name="+",
                        db_index=False,
                    ),
                ),
                ("trace_id", models.CharField(max_length=32)),
                ("span_id", models.CharField(max_length=16)),
                ("parent_id", models.CharField(max_length=16)),
                ("scope", models.UUIDField()),
                ("response", models.UUIDField(null=True)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("event_id", models.UUIDField()),
                ("weight", models.PositiveSmallIntegerField()),
                ("is_joined", models.BooleanField()),
                ("received_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "trace_id", "span_id"),
                        name="diagnostics_spancall_once",
                    )
                ],
                "indexes": [
                    models.Index(
                        fields=["project", "response"],
                        condition=Q(("response__isnull", False)),
                        name="diagnostics_spancall_response",
                    ),
                    models.Index(fields=["received_at"], name="diagnostics_spancall_age"),
                ],
            },
        ),
        *(
            migrations.AddField(
                "KeyMinute", name, models.BigIntegerField(default=0, db_default=0)
            )
            for name in ("unanswered", "unchecked", "not_understood")
        ),
    ]

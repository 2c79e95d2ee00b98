"""The turns of projects in the work of every minute, and deltas by project."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

DELTAS = ("diagnostics_rollup_delta", "diagnostics_group_delta")


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0022_plan_work_by_silences")]

    operations = [
        migrations.CreateModel(
            "ProjectTurn",
            [
                (
                    "project",
                    models.OneToOneField(
                        "diagnostics.project",
                        django.db.models.deletion.CASCADE,
                        related_name="turn",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("minute", models.DateTimeField()),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("judged_at", models.DateTimeField(null=True)),
                (
                    "passed_over",
                    django.contrib.postgres.fields.ArrayField(models.TextField(), default=list),
                ),
            ],
        ),
        # Read by every fold, and by every sum of one project.
        *(
            migrations.RunSQL(
                f"CREATE INDEX {table}_of_project ON {table} (project_id, id)",
                f"DROP INDEX {table}_of_project",
            )
            for table in DELTAS
        ),
    ]

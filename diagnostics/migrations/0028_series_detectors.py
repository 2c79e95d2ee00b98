"""The detector of every series, whatever rules a project has; it begins with stored counts."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0027_burn_rate_rules_to_change")]

    operations = [
        migrations.CreateModel(
            "SeriesDetector",
            [
                (
                    "series",
                    models.OneToOneField(
                        "diagnostics.series",
                        django.db.models.deletion.CASCADE,
                        related_name="+",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        "diagnostics.project", django.db.models.deletion.CASCADE, related_name="+"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("detector_state", models.JSONField(default=dict)),
                ("memory", models.JSONField(default=dict)),
            ],
        )
    ]

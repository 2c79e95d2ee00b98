"""How the series of a project stand, stored every minute; it is computed anew, never moved."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0002_who_answered")]

    operations = [
        migrations.CreateModel(
            "ProjectStatus",
            [
                (
                    "project",
                    models.OneToOneField(
                        "diagnostics.project",
                        django.db.models.deletion.CASCADE,
                        related_name="+",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("verdict", models.JSONField()),
                ("series", models.JSONField()),
            ],
        )
    ]

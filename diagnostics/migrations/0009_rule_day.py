"""How often each rule was evaluated, by days: kept for longer than evaluations."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0008_assessments")]

    operations = [
        migrations.CreateModel(
            name="RuleDay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "rule", "day", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("day", models.DateField()),
                ("evaluations", models.BigIntegerField()),
                (
                    "rule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="days",
                        to="diagnostics.alertrule",
                    ),
                ),
            ],
        ),
    ]

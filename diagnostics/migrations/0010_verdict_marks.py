from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("diagnostics", "0009_failures_index"),
    ]

    operations = [
        migrations.CreateModel(
            name="VerdictMark",
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
                ("cause", models.TextField()),
                ("cause_value", models.TextField(blank=True, default="")),
                ("since", models.DateTimeField()),
                ("is_right", models.BooleanField()),
                ("verdict", models.JSONField()),
                ("at", models.DateTimeField(db_default=Now())),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="verdict_marks",
                        to="diagnostics.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "cause", "cause_value", "since"),
                        name="diagnostics_verdictmark_once",
                    ),
                ],
            },
        ),
    ]

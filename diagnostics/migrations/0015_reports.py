import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("diagnostics", "0014_audit_profiles_invitations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Report",
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
                ("title", models.CharField(max_length=200)),
                ("query", models.TextField(blank=True, default="")),
                (
                    "cadence",
                    models.CharField(
                        choices=[
                            ("daily", "Daily"),
                            ("weekdays", "Weekdays"),
                            ("weekly", "Weekly"),
                            ("monthly", "Monthly"),
                        ],
                        max_length=16,
                    ),
                ),
                ("zone", models.CharField(max_length=64)),
                ("period_start", models.DateTimeField()),
                ("period_end", models.DateTimeField()),
                ("digest", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=200)),
                ("document", models.JSONField()),
                ("has_news", models.BooleanField()),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ReportDelivery",
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
                ("period_start", models.DateTimeField()),
                ("period_end", models.DateTimeField()),
                ("skipped", models.JSONField(blank=True, default=list)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("sent", "Sent"),
                            ("failed", "Failed"),
                            ("unchanged", "Unchanged"),
                            ("no_access", "No Access"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField()),
                ("claim", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("message_id", models.CharField(max_length=255)),
                ("last_error", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Subscription",
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
                ("address", models.EmailField(blank=True, default="", max_length=254)),
                ("query", models.TextField(blank=True, default="")),
                (
                    "cadence",
                    models.CharField(
                        choices=[
                            ("daily", "Daily"),
                            ("weekdays", "Weekdays"),
                            ("weekly", "Weekly"),
                            ("monthly", "Monthly"),
                        ],
                        default="weekly",
                        max_length=16,
                    ),
                ),
                ("weekday", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("month_day", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("at", models.TimeField()),
                ("zone", models.CharField(default="UTC", max_length=64)),
                ("only_when_changed", models.BooleanField(default=False)),
                ("next_at", models.DateTimeField()),
                ("paused_until", models.DateTimeField(blank=True, null=True)),
                ("unsubscribed_at", models.DateTimeField(blank=True, null=True)),
                ("token", models.CharField(max_length=32)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="report",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reports",
                to="diagnostics.project",
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="view",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="diagnostics.savedview",
            ),
        ),
        migrations.AddField(
            model_name="reportdelivery",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="diagnostics.project",
            ),
        ),
        migrations.AddField(
            model_name="reportdelivery",
            name="report",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="deliveries",
                to="diagnostics.report",
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="created_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="subscriptions",
                to="diagnostics.project",
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="user",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="subscriptions",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="view",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="diagnostics.savedview",
            ),
        ),
        migrations.AddField(
            model_name="reportdelivery",
            name="subscription",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="diagnostics.subscription",
            ),
        ),
        migrations.AddIndex(
            model_name="report",
            index=models.Index(
                fields=["project", "-period_end", "-id"],
                name="diagnostics_report_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="report",
            index=models.Index(fields=["created_at"], name="diagnostics_report_made"),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(
                fields=("project", "digest", "period_start", "period_end"),
                name="diagnostics_report_once_a_period",
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("cadence__in", ("daily", "weekdays", "weekly", "monthly"))
                ),
                name="diagnostics_report_cadence_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.CheckConstraint(
                condition=models.Q(("period_end__gt", models.F("period_start"))),
                name="diagnostics_report_period_is_not_empty",
            ),
        ),
        migrations.AddIndex(
            model_name="subscription",
            index=models.Index(
                condition=models.Q(("unsubscribed_at__isnull", True)),
                fields=["next_at"],
                name="diagnostics_subscription_due",
            ),
        ),
        migrations.AddIndex(
            model_name="subscription",
            index=models.Index(
                fields=["project", "user"], name="diagnostics_subscription_mine"
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("address", ""), ("user__isnull", False)),
                    models.Q(
                        ("user__isnull", True), models.Q(("address", ""), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="diagnostics_subscription_has_one_reader",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("cadence__in", ("daily", "weekdays", "weekly", "monthly"))
                ),
                name="diagnostics_subscription_cadence_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cadence", "weekly"), ("weekday__range", (0, 6))),
                    models.Q(
                        models.Q(("cadence", "weekly"), _negated=True),
                        ("weekday__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="diagnostics_subscription_weekday_when_weekly",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cadence", "monthly"), ("month_day__range", (1, 31))),
                    models.Q(
                        models.Q(("cadence", "monthly"), _negated=True),
                        ("month_day__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="diagnostics_subscription_day_when_monthly",
            ),
        ),
        migrations.AddIndex(
            model_name="reportdelivery",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["next_attempt_at", "id"],
                name="diagnostics_delivery_due",
            ),
        ),
        migrations.AddIndex(
            model_name="reportdelivery",
            index=models.Index(
                condition=models.Q(("state", "failed")),
                fields=["project", "-created_at"],
                name="diagnostics_delivery_failed",
            ),
        ),
        migrations.AddIndex(
            model_name="reportdelivery",
            index=models.Index(fields=["created_at"], name="diagnostics_delivery_made"),
        ),
        migrations.AddConstraint(
            model_name="reportdelivery",
            constraint=models.UniqueConstraint(
                fields=("subscription", "period_start"),
                name="diagnostics_reportdelivery_once_a_period",
            ),
        ),
        migrations.AddConstraint(
            model_name="reportdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "waiting",
                            "sent",
                            "failed",
                            "unchanged",
                            "no_access",
                            "cancelled",
                        ],
                    )
                ),
                name="diagnostics_reportdelivery_state_known",
            ),
        ),
    ]

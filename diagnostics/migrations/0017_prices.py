import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("diagnostics", "0016_notifications"),
    ]

    operations = [
        migrations.CreateModel(
            name="Price",
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
                ("provider", models.CharField(max_length=100)),
                ("model", models.CharField(max_length=200)),
                (
                    "origin",
                    models.CharField(
                        choices=[("own", "Own"), ("listed", "Listed")],
                        default="own",
                        max_length=8,
                    ),
                ),
                (
                    "input_per_million",
                    models.DecimalField(
                        blank=True, decimal_places=6, max_digits=12, null=True
                    ),
                ),
                (
                    "output_per_million",
                    models.DecimalField(
                        blank=True, decimal_places=6, max_digits=12, null=True
                    ),
                ),
                ("currency", models.CharField(default="USD", max_length=3)),
                ("valid_from", models.DateField()),
                ("edition", models.CharField(blank=True, default="", max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                    ),
                ),
            ],
            options={
                "ordering": ["provider", "model", "-valid_from"],
            },
        ),
        migrations.AddField(
            model_name="price",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="prices",
                to="diagnostics.project",
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.UniqueConstraint(
                fields=("project", "provider", "model", "origin", "valid_from"),
                name="diagnostics_price_once_a_day",
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(("origin__in", ["own", "listed"])),
                name="diagnostics_price_origin_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(("currency", "USD")), name="diagnostics_price_in_usd"
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    input_per_million__isnull=False,
                    output_per_million__isnull=False,
                    input_per_million__gte=0,
                    output_per_million__gte=0,
                )
                | models.Q(
                    origin="listed",
                    input_per_million__isnull=True,
                    output_per_million__isnull=True,
                ),
                name="diagnostics_price_is_a_price",
            ),
        ),
    ]

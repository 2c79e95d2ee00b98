"""Who answers a model's calls, watched; a change of it stands among the deploys."""

from django.db import migrations, models

from diagnostics.constraints import index, known, unique

TOLD = ("release", "prompt", "schema", "validator")
OBSERVED = ("observed_model", "observed_upstream", "observed_fingerprint")
KINDS = (*TOLD, *OBSERVED)


def _kind(words: tuple[str, ...]) -> models.CharField:
    return models.CharField(max_length=20, choices=[(word, word) for word in words])


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0003_project_status")]

    operations = [
        migrations.CreateModel(
            "Answerer",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slot", models.UUIDField()),
                ("environment", models.TextField(null=True)),
                ("provider", models.TextField(null=True)),
                ("model", models.TextField()),
                ("kind", _kind(OBSERVED)),
                ("value", models.TextField()),
                ("first_seen", models.DateTimeField()),
                ("last_seen", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        "diagnostics.project", models.CASCADE, related_name="+", db_index=False
                    ),
                ),
            ],
            {
                "constraints": [
                    unique("diagnostics_answerer_once", "project slot value"),
                    known("diagnostics_answerer_kind_known", "kind", OBSERVED),
                ],
                "indexes": [index("diagnostics_answerer_age", "last_seen")],
            },
        ),
        migrations.RemoveConstraint("deploy", "diagnostics_deploy_kind_known"),
        migrations.RemoveConstraint("deploy", "diagnostics_deploy_once"),
        *(
            migrations.AddField("deploy", name, models.TextField(blank=True, null=True))
            for name in ("provider", "model", "previous")
        ),
        migrations.AlterField("deploy", "kind", _kind(KINDS)),
        migrations.AddConstraint("deploy", known("diagnostics_deploy_kind_known", "kind", KINDS)),
        migrations.AddConstraint(
            "deploy",
            unique(
                "diagnostics_deploy_once",
                "project at kind source environment version",
                models.Q(kind__in=TOLD),
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex("deploy", index("diagnostics_deploy_newest", "project -at -id")),
    ]

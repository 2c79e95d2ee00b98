"""One name for all spellings of a provider or model; series that exist keep theirs."""

import django.db.models.deletion
from django.db import migrations, models

from diagnostics.constraints import known, unique
from diagnostics.ingest.names import NameKind, choose_names


def keep_names(apps, schema_editor):
    series, names = (apps.get_model("diagnostics", name) for name in ("Series", "SeriesName"))
    existing = {}
    for project, *row in series.objects.order_by("pk").values_list("project_id", *NameKind):
        for kind, name in zip(NameKind, row, strict=True):
            if name:
                existing.setdefault((project, kind), []).append(name)
    rows = [
        names(project_id=project, kind=kind.value, key=key, name=name)
        for (project, kind), found in existing.items()
        for key, name in choose_names(kind, found)
    ]
    names.objects.bulk_create(rows, batch_size=1_000)


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0019_usage_sent")]

    operations = [
        migrations.CreateModel(
            name="SeriesName",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("provider", "provider"), ("model", "model")], max_length=8
                    ),
                ),
                ("key", models.TextField()),
                ("name", models.TextField()),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="diagnostics.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    unique("diagnostics_seriesname_once", "project key kind"),
                    known("diagnostics_seriesname_kind_known", "kind", "provider model"),
                ],
            },
        ),
        migrations.RunPython(keep_names, migrations.RunPython.noop),
    ]

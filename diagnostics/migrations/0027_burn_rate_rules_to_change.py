"""Burn-rate rules become rules of change detection, and their names say so."""

from typing import Any

from django.db import migrations, models

from diagnostics.constraints import known

DETECTORS = ("change", "threshold", "count", "absent")
MARK = " (was a burn-rate rule)"
LONGEST_NAME = 200


def judge_by_change(apps: Any, _schema: object) -> None:  # noqa: ANN401 - Django's
    """Rewrite the rules; what is firing goes on until the calls are well."""
    rules = apps.get_model("diagnostics", "AlertRule").objects.filter(detector="burn")
    for rule in rules:
        apps.get_model("diagnostics", "AlertState").objects.filter(rule=rule).update(
            detector_state={"watch": {"fire": None}}, memory={}
        )
        rule.name = f"{rule.name[: LONGEST_NAME - len(MARK)]}{MARK}"
        rule.detector, rule.parameters = "change", {}
        rule.save(update_fields=["name", "detector", "parameters"])


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0026_cancelled")]

    operations = [
        migrations.RunPython(judge_by_change, migrations.RunPython.noop),
        migrations.RemoveConstraint("AlertRule", "diagnostics_alertrule_detector_known"),
        migrations.AlterField(
            "AlertRule",
            "detector",
            models.CharField(choices=[(name, name.title()) for name in DETECTORS], max_length=16),
        ),
        migrations.AddConstraint(
            "AlertRule", known("diagnostics_alertrule_detector_known", "detector", DETECTORS)
        ),
    ]

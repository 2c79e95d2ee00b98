"""Answers that nothing checked, and answers whose reading changed a value, are counted apart."""

from django.db import migrations, models
from django.db.models import Value, When

COUNTS = {
    "unchecked_no_schema": "answers not checked: no schema, and JSON was not asked for",
    "unchecked_no_answer": "answers not checked: the telemetry had no text",
    "unchecked_over_budget": "answers not checked: out of time for one request",
    "ok_altered": "of ok_first, those whose reading changed a value",
}
ROLLUPS = ("delta", "minute", "hour", "day", "hour_by_version", "day_by_version")


def _counted(table, kind="integer"):
    """Add the columns; without a default no row is rewritten."""
    columns = ", ".join(f"ADD COLUMN {name} {kind}" for name in COUNTS)
    comments = "".join(
        f"COMMENT ON COLUMN {table}.{name} IS '{text}';" for name, text in COUNTS.items()
    )
    return f"ALTER TABLE {table} {columns};{comments}"


COLUMNS = """
ALTER TABLE diagnostics_event ADD COLUMN unchecked text, ADD COLUMN is_altered boolean;
COMMENT ON COLUMN diagnostics_event.unchecked IS 'why nothing checked the answer of a success';
COMMENT ON COLUMN diagnostics_event.is_altered IS 'a success whose reading changed a value';
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0016_mail_receipts")]

    operations = [
        migrations.RunSQL(COLUMNS),
        *(migrations.RunSQL(_counted(f"diagnostics_rollup_{name}")) for name in ROLLUPS),
        migrations.RunSQL(_counted("diagnostics_rollup_total", "bigint")),
        migrations.RunSQL(_counted("diagnostics_alert_minute")),
        migrations.AddField("agentrun", "unchecked", models.IntegerField(db_default=0)),
        # The expression of a generated column cannot be changed.
        migrations.RemoveField("agentrun", "outcome"),
        migrations.AddField(
            "agentrun",
            "outcome",
            models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    When(degraded__gt=0, then=Value("degraded")),
                    When(recovered__gt=0, then=Value("recovered")),
                    When(unchecked__gt=0, then=Value("unchecked")),
                    When(ok_first__gt=0, then=Value("ok_first")),
                    default=Value("open"),
                ),
                output_field=models.TextField(),
            ),
        ),
        # Counted by node and reason instead.
        migrations.RemoveField("keyminute", "unanswered"),
    ]

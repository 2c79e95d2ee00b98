"""What the caller cancelled is counted apart, in none of the rates."""

from django.db import migrations, models
from django.db.models import Value, When

ROLLUPS = ("delta", "minute", "hour", "day", "hour_by_version", "day_by_version")
# Rows that exist have one of the others: they are not read again.
KNOWN = """
ALTER TABLE diagnostics_event
    DROP CONSTRAINT diagnostics_event_kind_known,
    ADD CONSTRAINT diagnostics_event_kind_known CHECK (
        kind IN (
            'parse_invalid', 'degraded', 'succeeded', 'provider_error', 'unknown_tool', 'cancelled'
        )
    ) NOT VALID
"""
COMMENT = "cancelled by the caller: calls that were given up, and runs; in none of the rates"


def _counted(table, kind="integer"):
    """Add the column; without a default no row is rewritten."""
    return (
        f"ALTER TABLE {table} ADD COLUMN cancelled {kind};"
        f"COMMENT ON COLUMN {table}.cancelled IS '{COMMENT}';"
    )


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0025_regions_and_credentials")]

    operations = [
        migrations.RunSQL(KNOWN),
        *(migrations.RunSQL(_counted(f"diagnostics_rollup_{name}")) for name in ROLLUPS),
        migrations.RunSQL(_counted("diagnostics_rollup_total", "bigint")),
        migrations.RunSQL(_counted("diagnostics_alert_minute")),
        migrations.AddField("outcome", "cancelled", models.IntegerField(default=0, db_default=0)),
        migrations.AddField("agentrun", "cancelled", models.IntegerField(db_default=0)),
        # The expression of a generated column cannot be changed.
        migrations.RemoveField("agentrun", "outcome"),
        migrations.AddField(
            "agentrun",
            "outcome",
            models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    When(degraded__gt=0, then=Value("degraded")),
                    When(cancelled__gt=0, then=Value("cancelled")),
                    When(recovered__gt=0, then=Value("recovered")),
                    When(unchecked__gt=0, then=Value("unchecked")),
                    When(ok_first__gt=0, then=Value("ok_first")),
                    default=Value("open"),
                ),
                output_field=models.TextField(),
            ),
        ),
    ]

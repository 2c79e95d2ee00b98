"""The events that have arrived, apart from those that processes reserve for the limits."""

from django.db import migrations, models

# What was sent before is known only with the reserved slices.
FILL = "UPDATE diagnostics_usage SET sent = events"


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0018_claimed_times")]

    operations = [
        migrations.AddField("usage", "sent", models.BigIntegerField(default=0, db_default=0)),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]

"""The time that a sender claims, where it is ahead of the database's clock; counts of such."""

from django.db import migrations, models

COLUMN = """
ALTER TABLE diagnostics_event ADD COLUMN claimed_at timestamptz;
COMMENT ON COLUMN diagnostics_event.claimed_at IS
    'the time as sent, if more than 5 minutes ahead on arrival; occurred_at is when it arrived';
COMMENT ON COLUMN diagnostics_event.time_mark IS
    'late: more than 30 days old on arrival; else null. future: ahead, before claimed_at was kept';
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0017_unchecked_answers")]

    operations = [
        migrations.RunSQL(COLUMN),
        *(
            migrations.AddField(
                "keyminute", name, models.BigIntegerField(default=0, db_default=0)
            )
            for name in ("ahead", "late")
        ),
    ]

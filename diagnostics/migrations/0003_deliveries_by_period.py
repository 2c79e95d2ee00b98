from django.db import migrations

from diagnostics.constraints import unique

ONCE = "diagnostics_reportdelivery_once_a_period"


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0002_since_0_1_0")]
    operations = [
        migrations.RemoveConstraint("reportdelivery", ONCE),
        migrations.AddConstraint(
            "reportdelivery", unique(ONCE, "subscription period_start period_end")
        ),
    ]

"""Steps are updated in their place: half a page is kept free, and one index less."""

import django.db.models.deletion
from django.db import migrations, models

FILL = "ALTER TABLE plans_runstep SET (fillfactor = 50)"
FILL_WHOLE = "ALTER TABLE plans_runstep RESET (fillfactor)"


class Migration(migrations.Migration):
    dependencies = [("plans", "0005_exact_outputs")]

    operations = [
        migrations.AlterField(
            model_name="runstep",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="steps",
                to="plans.run",
            ),
        ),
        migrations.RunSQL(FILL, FILL_WHOLE),
    ]

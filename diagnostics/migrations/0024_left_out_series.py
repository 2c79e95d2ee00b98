"""How many series of a large project are not judged."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0023_project_turns")]

    operations = [
        migrations.AddField(
            "projectstatus", "left_out", models.IntegerField(default=0, db_default=0)
        )
    ]

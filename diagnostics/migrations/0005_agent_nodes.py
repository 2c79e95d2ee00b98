from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0004_given_addresses")]
    operations = [
        migrations.AddField(
            "agentspan",
            "node",
            models.CharField(blank=True, db_default="", default="", max_length=63),
        ),
        migrations.AddField(
            "unplacedcall", "names_node", models.BooleanField(db_default=True, default=True)
        ),
    ]

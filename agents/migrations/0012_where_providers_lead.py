from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0011_purge_retries")]
    operations = [
        migrations.AddField(
            "provider", "allows_private", models.BooleanField(db_default=True, default=True)
        ),
    ]

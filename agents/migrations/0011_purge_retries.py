from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("agents", "0010_who_answered")]
    operations = [
        migrations.AddField(
            "purgeorder", "deletes_project", models.BooleanField(db_default=False, default=False)
        ),
        migrations.AddField(
            "purgeorder", "retry_at", models.DateTimeField(db_default=Now(), editable=False)
        ),
    ]

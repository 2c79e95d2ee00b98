from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0018_channel_probes")]

    operations = [
        migrations.AlterField(
            model_name="channel",
            name="kind",
            field=models.CharField(
                choices=[
                    ("email", "e-mail"),
                    ("webhook", "signed webhook"),
                    ("chat", "chat or paging service"),
                ],
                max_length=16,
            ),
        ),
    ]

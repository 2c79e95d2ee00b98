from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0017_prices")]

    operations = [
        migrations.AddField(
            model_name="channel",
            name="is_unreachable",
            field=models.BooleanField(default=False),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0012_where_providers_lead")]
    operations = [
        migrations.AlterField(
            "languagemodel", "temperature", models.FloatField(blank=True, null=True)
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0009_idempotency_digest")]
    operations = [
        migrations.AddField(
            "attempt", "reasoning_tokens", models.PositiveIntegerField(blank=True, null=True)
        ),
        *(
            migrations.AddField(
                "attempt", name, models.CharField(blank=True, max_length=200, null=True)
            )
            for name in ("served_model", "upstream", "system_fingerprint")
        ),
    ]

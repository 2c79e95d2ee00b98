"""Runs are narrowed by kind of failure and by schema."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('diagnostics', '0009_rule_day'),
    ]

    operations = [
        migrations.AddField(
            model_name='agentrun',
            name='kinds',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), db_default=models.Value('{}'), size=None),
        ),
        migrations.AddField(
            model_name='agentrun',
            name='schema',
            field=models.TextField(null=True),
        ),
        migrations.AddIndex(
            model_name='agentrun',
            index=models.Index(condition=models.Q(('kinds', []), _negated=True), fields=['project', '-began_at', '-correlation_id'], name='diagnostics_agentrun_failures'),
        ),
    ]

"""Events, as Django administration takes them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('diagnostics', '0011_saved_views_of_runs'),
    ]

    operations = [
        migrations.CreateModel(
            name='StoredEvent',
            fields=[
                ('event_id', models.UUIDField(primary_key=True, serialize=False)),
                ('occurred_at', models.DateTimeField()),
                ('received_at', models.DateTimeField()),
                ('node', models.TextField()),
                ('kind', models.TextField()),
                ('correlation_id', models.TextField()),
                ('attempt', models.IntegerField(null=True)),
                ('provider', models.TextField(null=True)),
                ('model', models.TextField(null=True)),
                ('environment', models.TextField(null=True)),
                ('source', models.TextField(null=True)),
                ('parse_error_type', models.TextField(null=True)),
                ('call_error_type', models.TextField(null=True)),
                ('latency_ms', models.IntegerField(null=True)),
                ('input_tokens', models.IntegerField(null=True)),
                ('output_tokens', models.IntegerField(null=True)),
            ],
            options={
                'verbose_name': 'event',
                'db_table': 'diagnostics_event',
                'managed': False,
            },
        ),
    ]

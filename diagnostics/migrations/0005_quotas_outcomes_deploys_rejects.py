"""Quotas and what they have counted, pre-counted outcomes, deploys, and what was refused.

A preview that was not kept, because its project sent too much at once, is marked.
"""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

SAMPLED_OUT = """
ALTER TABLE diagnostics_event_payload ADD COLUMN sampled_out boolean NOT NULL DEFAULT false;
"""
SAMPLED_OUT_GONE = "ALTER TABLE diagnostics_event_payload DROP COLUMN sampled_out;"


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0004_redaction_rules")]

    operations = [
        migrations.CreateModel(
            name='KeyBucket',
            fields=[
                ('api_key', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='bucket', serialize=False, to='diagnostics.apikey')),
                ('tokens', models.FloatField()),
                ('refilled_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Quota',
            fields=[
                ('project', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='quota', serialize=False, to='diagnostics.project')),
                ('key_events_per_second', models.PositiveIntegerField(blank=True, null=True)),
                ('key_burst_events', models.PositiveIntegerField(blank=True, null=True)),
                ('events_per_day', models.PositiveBigIntegerField(blank=True, null=True)),
                ('events_per_month', models.PositiveBigIntegerField(blank=True, null=True)),
                ('spike_events_per_minute', models.PositiveIntegerField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Usage',
            fields=[
                ('pk', models.CompositePrimaryKey('project', 'day', blank=True, editable=False, primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('events', models.BigIntegerField(default=0)),
                ('sampled_out', models.BigIntegerField(default=0)),
                ('refused', models.BigIntegerField(default=0)),
                ('minute_at', models.DateTimeField(null=True)),
                ('minute_events', models.BigIntegerField(default=0)),
                ('last_minute_events', models.BigIntegerField(default=0)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='usage', to='diagnostics.project')),
            ],
            options={
                'verbose_name_plural': 'usage',
            },
        ),
        migrations.CreateModel(
            name='Deploy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('kind', models.CharField(choices=[('release', 'release'), ('prompt', 'prompt'), ('schema', 'schema'), ('validator', 'validator')], max_length=16)),
                ('source', models.TextField(blank=True, null=True)),
                ('environment', models.TextField(blank=True, null=True)),
                ('version', models.TextField()),
                ('note', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deploys', to='diagnostics.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'at', 'kind', 'source', 'environment', 'version'), name='diagnostics_deploy_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('kind__in', ['release', 'prompt', 'schema', 'validator'])), name='diagnostics_deploy_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='Outcome',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.TextField()),
                ('minute', models.DateTimeField()),
                ('sequence', models.IntegerField()),
                ('received_at', models.DateTimeField()),
                ('content_hash', models.BinaryField(max_length=32)),
                ('environment', models.TextField(null=True)),
                ('node', models.TextField()),
                ('provider', models.TextField(null=True)),
                ('model', models.TextField(null=True)),
                ('release', models.TextField(null=True)),
                ('prompt_version', models.TextField(null=True)),
                ('schema', models.TextField(null=True)),
                ('schema_version', models.TextField(null=True)),
                ('ok_first', models.IntegerField(default=0)),
                ('repaired', models.IntegerField(default=0)),
                ('degraded', models.IntegerField(default=0)),
                ('stubbed', models.IntegerField(default=0)),
                ('circuit_open', models.IntegerField(default=0)),
                ('provider_failed', models.IntegerField(default=0)),
                ('budget_exhausted', models.IntegerField(default=0)),
                ('project', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='diagnostics.project')),
            ],
            options={
                'indexes': [models.Index(fields=['minute'], name='diagnostics_outcome_age')],
                'constraints': [models.UniqueConstraint(fields=('project', 'source', 'minute', 'sequence'), name='diagnostics_outcome_once')],
            },
        ),
        migrations.CreateModel(
            name='Reject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('received_at', models.DateTimeField()),
                ('endpoint', models.CharField(max_length=64)),
                ('http_status', models.PositiveSmallIntegerField()),
                ('source', models.TextField(null=True)),
                ('item_index', models.IntegerField(null=True)),
                ('event_id', models.TextField(null=True)),
                ('code', models.TextField()),
                ('path', models.TextField()),
                ('message', models.TextField()),
                ('errors', models.JSONField(default=list)),
                ('head', models.TextField()),
                ('size_bytes', models.IntegerField()),
                ('api_key', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='diagnostics.apikey')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='rejects', to='diagnostics.project')),
            ],
            options={
                'indexes': [models.Index(fields=['project', '-id'], name='diagnostics_reject_newest')],
            },
        ),
        migrations.RunSQL(
            SAMPLED_OUT,
            SAMPLED_OUT_GONE,
            state_operations=[
                migrations.AddField(
                    model_name='eventpayload',
                    name='sampled_out',
                    field=models.BooleanField(db_default=False),
                ),
            ],
        ),
    ]

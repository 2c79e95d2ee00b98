"""What users and evaluators say later of the answers of runs."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('diagnostics', '0007_runs'),
    ]

    operations = [
        migrations.CreateModel(
            name='Assessment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('correlation_id', models.TextField(db_collation='C')),
                ('source', models.TextField()),
                ('subject', models.CharField(blank=True, max_length=36)),
                ('verdict', models.CharField(choices=[('good', 'Good'), ('bad', 'Bad')], max_length=4)),
                ('score', models.FloatField(null=True)),
                ('reason', models.TextField(null=True)),
                ('assessed_at', models.DateTimeField()),
                ('received_at', models.DateTimeField()),
                ('trace_id', models.CharField(blank=True, max_length=32)),
                ('response', models.UUIDField(null=True)),
                ('is_linked', models.BooleanField(default=True)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='diagnostics.project')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('is_linked', False)), fields=['project', 'trace_id'], name='diagnostics_assessment_trace'), models.Index(condition=models.Q(('is_linked', False)), fields=['project', 'response'], name='diagnostics_assessment_reply'), models.Index(fields=['received_at'], name='diagnostics_assessment_age')],
                'constraints': [models.UniqueConstraint(fields=('project', 'correlation_id', 'source', 'subject'), name='diagnostics_assessment_once'), models.CheckConstraint(condition=models.Q(('verdict__in', ['good', 'bad'])), name='diagnostics_assessment_verdict_known')],
            },
        ),
    ]

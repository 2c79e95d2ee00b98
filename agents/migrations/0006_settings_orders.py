import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0005_completion_checks'),
        ('diagnostics', '0014_audit_profiles_invitations'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelCheck',
            fields=[
                ('language_model', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='check_row', serialize=False, to='agents.languagemodel')),
                ('status', models.CharField(choices=[('asked', 'Asked'), ('done', 'Done')], db_default='asked', default='asked', max_length=8)),
                ('asked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('done_at', models.DateTimeField(null=True)),
                ('latency_ms', models.PositiveIntegerField(null=True)),
                ('fault', models.CharField(blank=True, default='', max_length=32)),
                ('said', models.CharField(blank=True, default='', max_length=500)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='diagnostics.project')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['asked', 'done'])), name='agents_modelcheck_status_known')],
            },
        ),
        migrations.CreateModel(
            name='PlanningStop',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(blank=True, default='', max_length=200)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='diagnostics.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project',), name='agents_planningstop_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='PurgeOrder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('correlation_id', models.CharField(blank=True, default='', max_length=200)),
                ('status', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('refused', 'Refused')], db_default='running', default='running', max_length=8)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('finished_at', models.DateTimeField(null=True)),
                ('goals', models.BigIntegerField(default=0)),
                ('runs', models.BigIntegerField(default=0)),
                ('events', models.BigIntegerField(default=0)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='purge_orders', to='diagnostics.project')),
            ],
            options={
                'indexes': [models.Index(fields=['project', '-at'], name='agents_purgeorder_recent')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['running', 'done', 'refused'])), name='agents_purgeorder_status_known')],
            },
        ),
    ]

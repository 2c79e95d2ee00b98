from django.db import migrations, models

# As agents.goals.submission.digest_key writes it. The rows are written anew, so the keys go with
# the next VACUUM of the table.
DIGEST_KEYS = """
UPDATE agents_goal
   SET idempotency_key = encode(
           sha256(convert_to(project_id || ':' || idempotency_key, 'UTF8')), 'hex')
 WHERE idempotency_key IS NOT NULL
"""


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_squashed_0_1_0'),
    ]

    operations = [
        migrations.RunSQL(DIGEST_KEYS, migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name='goal',
            name='agents_goal_idempotency_key_once',
        ),
        migrations.RenameField(
            model_name='goal',
            old_name='idempotency_key',
            new_name='idempotency_digest',
        ),
        migrations.AlterField(
            model_name='goal',
            name='idempotency_digest',
            field=models.CharField(blank=True, max_length=64, null=True),
        ),
        migrations.AddConstraint(
            model_name='goal',
            constraint=models.UniqueConstraint(
                condition=models.Q(('idempotency_digest__isnull', False)),
                fields=('project', 'idempotency_digest'),
                name='agents_goal_idempotency_key_once',
            ),
        ),
    ]

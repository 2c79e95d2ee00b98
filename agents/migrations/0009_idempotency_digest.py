from django.db import migrations, models
from django.db.models import Q

from diagnostics.migrations._shorthand import unique

# As agents.goals.submission.digest_key writes it. The rows are written anew, so the keys go with
# the next VACUUM of the table.
DIGEST_KEYS = """
UPDATE agents_goal
   SET idempotency_key = encode(
           sha256(convert_to(project_id || ':' || idempotency_key, 'UTF8')), 'hex')
 WHERE idempotency_key IS NOT NULL
"""
ONCE = "agents_goal_idempotency_key_once"


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_squashed_0_1_0")]
    operations = [
        migrations.RunSQL(DIGEST_KEYS, migrations.RunSQL.noop),
        migrations.RemoveConstraint("goal", ONCE),
        migrations.RenameField("goal", "idempotency_key", "idempotency_digest"),
        migrations.AlterField(
            "goal", "idempotency_digest", models.CharField(blank=True, max_length=64, null=True)
        ),
        migrations.AddConstraint(
            "goal",
            unique(ONCE, "project idempotency_digest", Q(idempotency_digest__isnull=False)),
        ),
    ]

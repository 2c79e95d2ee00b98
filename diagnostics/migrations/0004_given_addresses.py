from django.conf import settings
from django.db import migrations

# Single sign-on goes on finding an address that its owner did not type.
KEEP = """
INSERT INTO account_emailaddress (user_id, email, verified, "primary")
SELECT id, lower(email), true, true FROM auth_user AS person
WHERE email <> ''
  AND NOT EXISTS (SELECT FROM auth_user AS other
                  WHERE lower(other.email) = lower(person.email) AND other.id <> person.id)
  AND NOT EXISTS (SELECT FROM account_emailaddress AS known WHERE known.user_id = person.id
                  OR lower(known.email) = lower(person.email) AND known.verified)
  AND NOT EXISTS (SELECT FROM diagnostics_auditentry WHERE chain = 0 AND actor_id = person.id
                  AND action = 'account.changed' AND details LIKE '%email%')
"""


class Migration(migrations.Migration):
    dependencies = [
        ("diagnostics", "0003_deliveries_by_period"),
        ("account", "0009_emailaddress_unique_primary_email"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [migrations.RunSQL(KEEP, migrations.RunSQL.noop)]

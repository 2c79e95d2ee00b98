"""The built-in rule is called by what it watches, where nobody has named it otherwise."""

from django.db import migrations

RENAME = """
UPDATE diagnostics_alertrule AS rule
SET name = 'Failure rate above baseline'
WHERE standard = 'change' AND name = 'Worse than usual'
    AND NOT EXISTS (
        SELECT FROM diagnostics_alertrule AS other
        WHERE other.project_id = rule.project_id
            AND other.name = 'Failure rate above baseline'
            AND other.archived_at IS NULL
    )
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0014_wallboard")]

    operations = [migrations.RunSQL(RENAME, migrations.RunSQL.noop)]

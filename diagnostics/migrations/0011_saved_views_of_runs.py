"""Saved views of goals and of the tail open the list of runs."""

from django.db import migrations

MOVE = """
UPDATE diagnostics_savedview
SET page = 'runs',
    query = CASE
        WHEN page = 'live' THEN concat_ws('&', nullif(query, ''), 'follow=calls') ELSE query
    END
WHERE page IN ('goals', 'live')
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0010_run_kinds")]

    operations = [migrations.RunSQL(MOVE, migrations.RunSQL.noop)]

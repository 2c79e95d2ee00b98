"""Events name their project without a foreign key.

The identity table has one. On the event tables it cost a row lock on the project for every
insert, tied every partition to a table that may live elsewhere, and kept `flush` from working.
"""

from django.db import migrations

DROP = """
ALTER TABLE diagnostics_event DROP CONSTRAINT IF EXISTS diagnostics_event_project_id_fkey;
ALTER TABLE diagnostics_event_payload
    DROP CONSTRAINT IF EXISTS diagnostics_event_payload_project_id_fkey;
"""

RESTORE = """
ALTER TABLE diagnostics_event ADD CONSTRAINT diagnostics_event_project_id_fkey
    FOREIGN KEY (project_id) REFERENCES diagnostics_project (id);
ALTER TABLE diagnostics_event_payload ADD CONSTRAINT diagnostics_event_payload_project_id_fkey
    FOREIGN KEY (project_id) REFERENCES diagnostics_project (id);
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0002_clock_and_event_tables")]

    operations = [migrations.RunSQL(DROP, RESTORE)]

"""Lists of failures pass over good attempts, which are most of the events."""

from django.db import migrations

INDEX = """
-- Read by lists of failures and by the latest degraded runs: newest first.
CREATE INDEX diagnostics_event_failures
    ON diagnostics_event (project_id, occurred_at DESC, event_id DESC)
    WHERE kind <> 'succeeded';
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0008_event_call_errors")]

    operations = [migrations.RunSQL(INDEX, "DROP INDEX diagnostics_event_failures;")]

"""One rule out of the box: "Repeated degradation" went, `change` says it by what is usual."""

from django.db import migrations

# Only where nobody changed what it judges. What it fires for ends with it.
RETIRE = """
WITH retired AS (
    UPDATE diagnostics_alertrule SET archived_at = failsoft_now(), is_enabled = false
    WHERE standard = 'degraded_count' AND version = 1 AND archived_at IS NULL
    RETURNING id
), ended AS (
    UPDATE diagnostics_incidentslice SET cleared_at = failsoft_now()
    WHERE rule_id IN (SELECT id FROM retired) AND cleared_at IS NULL
    RETURNING id, incident_id, state_id
), calmed AS (
    UPDATE diagnostics_alertstate SET state = 'resolved', since = failsoft_now()
    WHERE id IN (SELECT state_id FROM ended)
)
UPDATE diagnostics_incident SET state = 'resolved', cleared_at = failsoft_now()
WHERE cleared_at IS NULL
    AND id IN (SELECT incident_id FROM ended)
    AND NOT EXISTS (
        SELECT FROM diagnostics_incidentslice AS slice
        WHERE slice.incident_id = diagnostics_incident.id
            AND slice.cleared_at IS NULL
            AND slice.id NOT IN (SELECT id FROM ended)
    )
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0005_span_calls")]

    operations = [migrations.RunSQL(RETIRE, migrations.RunSQL.noop)]

"""What rollups count stands in the narrow row: why a call gave no answer, simplified prompts."""

from django.db import migrations

COLUMNS = """
ALTER TABLE diagnostics_event ADD COLUMN call_error_type text;
ALTER TABLE diagnostics_event ADD COLUMN is_simplified boolean;
COMMENT ON COLUMN diagnostics_event.call_error_type IS
    'of provider_error events: timeout, provider_error, rate_limited or what was said';
COMMENT ON COLUMN diagnostics_event.is_simplified IS
    'true: the prompt of this attempt was simplified; null: no, or not said';
"""

COLUMNS_GONE = """
ALTER TABLE diagnostics_event DROP COLUMN is_simplified;
ALTER TABLE diagnostics_event DROP COLUMN call_error_type;
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0007_agent_schemas")]

    operations = [migrations.RunSQL(COLUMNS, COLUMNS_GONE)]

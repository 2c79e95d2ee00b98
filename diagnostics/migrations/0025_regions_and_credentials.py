"""Where a call was made or served, and the name of the credential that it used."""

from django.db import migrations, models

COLUMNS = """
ALTER TABLE diagnostics_event ADD COLUMN region text, ADD COLUMN credential text;
ALTER TABLE diagnostics_rollup_delta ADD COLUMN region text, ADD COLUMN credential text;
ALTER TABLE diagnostics_group_delta ADD COLUMN region text, ADD COLUMN credential text;

COMMENT ON COLUMN diagnostics_event.region IS 'where the call was served, else made';
COMMENT ON COLUMN diagnostics_event.credential IS 'the name of the credential, never itself';
"""
# As diagnostics.store.sql.add_versions writes it.
KEYS = """
UPDATE diagnostics_version
   SET key = md5(json_build_array(
           prompt_version, schema, schema_version, source, release, served, region, credential
       )::text)::uuid
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0024_left_out_series")]

    operations = [
        migrations.RunSQL(COLUMNS),
        *(
            migrations.AddField("version", name, models.TextField(blank=True, null=True))
            for name in ("region", "credential")
        ),
        migrations.RunSQL(KEYS),
    ]

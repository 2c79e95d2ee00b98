"""Who answered a call: the model and the upstream behind the one that was requested."""

from django.db import migrations, models

COLUMNS = """
ALTER TABLE diagnostics_event
    ADD COLUMN served text,
    ADD COLUMN upstream text,
    ADD COLUMN system_fingerprint text,
    ADD COLUMN reasoning_tokens integer;
ALTER TABLE diagnostics_rollup_delta ADD COLUMN served text;
ALTER TABLE diagnostics_group_delta ADD COLUMN served text;

COMMENT ON COLUMN diagnostics_event.served IS
    'who answered, as "model at upstream"; null: the requested model as far as told';
COMMENT ON COLUMN diagnostics_event.upstream IS 'the provider behind a gateway, or its host';
COMMENT ON COLUMN diagnostics_event.reasoning_tokens IS 'part of output_tokens, where told';
"""
# As diagnostics.store.sql.add_versions writes it.
KEYS = """
UPDATE diagnostics_version
   SET key = md5(json_build_array(
           prompt_version, schema, schema_version, source, release, served)::text)::uuid
"""


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0001_squashed_0_1_0")]
    operations = [
        migrations.RunSQL(COLUMNS),
        migrations.AddField("version", "served", models.TextField(blank=True, null=True)),
        migrations.RunSQL(KEYS),
    ]

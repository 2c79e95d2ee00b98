"""Days by version, of rollups and of failure groups: long ranges read a row where they read 24.

Both are made from their hours, partition by partition; nothing may fold meanwhile.
"""

from django.db import migrations

PAIRS = {
    "diagnostics_rollup_day_by_version": "diagnostics_rollup_hour_by_version",
    "diagnostics_group_day": "diagnostics_group_hour",
}

TABLES = """
LOCK TABLE diagnostics_rollup_hour_by_version, diagnostics_group_hour IN SHARE MODE;

CREATE TABLE diagnostics_rollup_day_by_version (
    LIKE diagnostics_rollup_hour_by_version INCLUDING DEFAULTS INCLUDING COMMENTS,
    CONSTRAINT diagnostics_rollup_day_by_version_once
        PRIMARY KEY (project_id, bucket, series_id, version_id)
) PARTITION BY RANGE (bucket);
CREATE TABLE diagnostics_rollup_day_by_version_default
    PARTITION OF diagnostics_rollup_day_by_version DEFAULT;
COMMENT ON TABLE diagnostics_rollup_day_by_version IS
    'one row a day (UTC), series and version (prompt, schema, source, release)';

CREATE TABLE diagnostics_group_day (
    LIKE diagnostics_group_hour INCLUDING DEFAULTS,
    CONSTRAINT diagnostics_group_day_once
        PRIMARY KEY (project_id, bucket, group_id, series_id, version_id)
) PARTITION BY RANGE (bucket);
CREATE TABLE diagnostics_group_day_default PARTITION OF diagnostics_group_day DEFAULT;
COMMENT ON TABLE diagnostics_group_day IS
    'failures of a group in a day (UTC), by series and version';

-- Read by the page of one group.
CREATE INDEX diagnostics_group_day_of_group
    ON diagnostics_group_day (project_id, group_id, bucket DESC);
"""

# A month for each that the hours have.
MONTHS = """
SELECT
    replace(relid::regclass::text, %(hours)s, %(days)s),
    pg_get_expr(class.relpartbound, class.oid)
FROM pg_partition_tree(%(hours)s::regclass) JOIN pg_class AS class ON class.oid = relid
WHERE isleaf AND pg_get_expr(class.relpartbound, class.oid) <> 'DEFAULT'
"""
# Null where nothing was counted, as the fold has it, and never beyond what fits.
COLUMNS = """
SELECT column_name, CASE
    WHEN data_type = 'bigint' THEN format('sum(%%I)::bigint', column_name)
    WHEN is_nullable = 'YES'
    THEN format('nullif(least(coalesce(sum(%%I), 0), 2147483647), 0)', column_name)
    ELSE format('least(sum(%%I), 2147483647)', column_name)
END
FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s
    AND column_name NOT IN ('project_id', 'bucket', 'group_id', 'series_id', 'version_id')
ORDER BY ordinal_position
"""
KEYS = "series_id, version_id"
KEYS_OF = {days: KEYS for days in PAIRS} | {"diagnostics_group_day": f"group_id, {KEYS}"}

GONE = "".join(f"DROP TABLE {days};" for days in PAIRS)


def rebuild(cursor):
    """Make the days anew from all hours that are there."""
    for days, hours in PAIRS.items():
        cursor.execute(MONTHS, {"days": days, "hours": hours})
        for name, bound in cursor.fetchall():
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {days} {bound}"
                " WITH (fillfactor = 80)"
            )
        cursor.execute(COLUMNS, [hours])
        names, sums = zip(*cursor.fetchall())
        keys = KEYS_OF[days]
        cursor.execute(f"DELETE FROM {days}")
        cursor.execute(
            f"INSERT INTO {days} (project_id, bucket, {keys}, {', '.join(names)})"
            f" SELECT project_id, date_trunc('day', bucket, 'UTC') AS day, {keys},"
            f" {', '.join(sums)} FROM {hours}"
            f" GROUP BY project_id, day, {keys} ORDER BY project_id, day, {keys}"
        )


def fill(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        rebuild(cursor)


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0020_new_usual_level")]

    operations = [
        migrations.RunSQL(TABLES, GONE),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]

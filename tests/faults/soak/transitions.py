"""Every change of a state, noted by the database itself, and which changes are legal."""

import psycopg

NOTE = """
CREATE TABLE soak_transition (of text, id text, before text, after text);
CREATE FUNCTION soak_note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE kept text := TG_ARGV[0];
BEGIN
  INSERT INTO soak_transition VALUES (
    TG_TABLE_NAME, NEW.id::text,
    CASE WHEN TG_OP = 'UPDATE' THEN to_jsonb(OLD) ->> kept END, to_jsonb(NEW) ->> kept);
  RETURN NULL;
END $$;
"""
COLUMNS = {"plans_run": "state", "plans_runstep": "state", "agents_goal": "status"}
TRIGGER = """
CREATE TRIGGER soak_made AFTER INSERT ON {table}
  FOR EACH ROW EXECUTE FUNCTION soak_note('{column}');
CREATE TRIGGER soak_changed AFTER UPDATE ON {table}
  FOR EACH ROW WHEN (OLD.{column} IS DISTINCT FROM NEW.{column})
  EXECUTE FUNCTION soak_note('{column}');
"""
_STARTS = {(None, "queued"), ("queued", "running"), ("running", "queued")}
LEGAL: dict[str, set[tuple[str | None, str]]] = {
    # What a person resolves goes on from its end; nobody does here.
    "plans_run": _STARTS | {("running", "ended"), ("running", "poison")},
    "plans_runstep": {
        (None, "pending"),
        ("pending", "started"),
        ("started", "pending"),
        ("pending", "final"),
        ("started", "final"),
    },
    "agents_goal": _STARTS | {("running", "completed"), ("running", "failed")},
}


def watch(database_url: str) -> None:
    """Let the database note every change from now on."""
    with psycopg.connect(database_url) as connection:
        connection.execute(NOTE)
        for table, column in COLUMNS.items():
            connection.execute(TRIGGER.format(table=table, column=column))


def illegal(seen: list[tuple[str, str | None, str]]) -> list[tuple[str, str | None, str]]:
    """Return the changes that must never be: `seen` are table, state before and after."""
    return [row for row in seen if row[1:] not in LEGAL[row[0]]]

"""Running a named statement so that the server plans it once a connection."""

from collections.abc import Mapping
from typing import Any

from django.db import connection

from diagnostics.sql import statement


def execute(name: str, asked: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run `<name>.sql` in the caller's transaction and give its rows.

    Values are bound by the server and the statement is prepared, which Django's own
    cursor does not do: planning takes longer than storing a small batch.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(statement(name), asked, prepare=True)
        return list(cursor.fetchall())

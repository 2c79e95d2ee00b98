"""One time of day for tests whose traffic has a rhythm."""

from datetime import UTC, datetime

from django.db import connection

AFTERNOON = datetime(2026, 11, 18, 15, 0, 30, tzinfo=UTC)


def shift_clock(to: datetime = AFTERNOON) -> None:
    """Let the database's clock tell this time until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('failsoft.clock_shift', (%s - now())::text, true)", [to])

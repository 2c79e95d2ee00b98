"""One time of day for tests whose traffic has a rhythm, or that send spans of the past."""

from datetime import UTC, datetime, timedelta

from django.db import connection

from tests.diagnostics.otlp_bodies import START_NS

AFTERNOON = datetime(2026, 11, 18, 15, 0, 30, tzinfo=UTC)


SPANS_ENDED = datetime.fromtimestamp(START_NS // 10**9, UTC) + timedelta(minutes=1)


def shift_clock(to: datetime = AFTERNOON) -> None:
    """Let the database's clock tell this time until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('failsoft.clock_shift', (%s - now())::text, true)", [to])

"""The database's clock, used for all leases, cool-downs and windows."""

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func


def now() -> datetime:
    """Return `failsoft_now()`; tests shift it with the setting `failsoft.clock_shift`."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT failsoft_now()")
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


class DatabaseNow(Func):
    """The same clock as an expression: `filter(lease_until__lt=DatabaseNow())`."""

    function = "failsoft_now"
    arity = 0
    output_field = DateTimeField()

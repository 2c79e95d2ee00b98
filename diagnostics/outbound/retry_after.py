"""How long a server asks to wait before it is asked again."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST_WAIT = timedelta(hours=6)
# `retry_after` of Discord and Telegram, `retryDelay` of Google.
_IN_BODY = re.compile(rb'"(?:retry_after|retryDelay)"\s*:\s*"?([\d.]+)')


def find_retry_after(headers: Mapping[str, str], body: bytes) -> str:
    """Return what `Retry-After` says, else the seconds that a body of JSON names, else ""."""
    named = _IN_BODY.search(body)
    return headers.get("Retry-After") or (named[1].decode() if named else "")


def read_retry_after(text: str, now: datetime) -> timedelta | None:
    """Return the wait: seconds or a date (RFC 9110, 10.2.3), at most 6 hours; None if neither."""
    try:
        if text.replace(".", "", 1).isdecimal():
            asked = timedelta(seconds=min(float(text), LONGEST_WAIT.total_seconds()))
        else:
            asked = parsedate_to_datetime(text) - now
    except (ValueError, TypeError):
        return None
    return min(max(asked, timedelta()), LONGEST_WAIT)

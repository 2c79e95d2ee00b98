"""Digests: many notifications of a busy hour in one."""

from collections.abc import Sequence
from datetime import datetime, timedelta

COLLECT = timedelta(minutes=5)
"""A digest waits so long for what else there is to tell."""
APART = timedelta(minutes=20)
MOST_LINES = 50


def digest_due(now: datetime, last: datetime | None) -> datetime:
    """Give when the next digest goes out, by when the last one did."""
    soon = now + COLLECT
    return soon if last is None else max(soon, last + APART)


def summarise(verdicts: Sequence[str]) -> str:
    """Write the subject of a digest."""
    if len(verdicts) == 1:
        return verdicts[0]
    return f"{len(verdicts)} alerts: {verdicts[0]}"

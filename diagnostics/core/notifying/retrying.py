"""When a notification that did not get through is tried again."""

from datetime import timedelta

PAUSES = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(minutes=60),
    timedelta(hours=6),
)
MOST_TRIES = len(PAUSES) + 1


def next_pause(tries: int) -> timedelta | None:
    """Give the pause after the so-manyth try that failed; None: it is given up."""
    return PAUSES[tries - 1] if 0 < tries <= len(PAUSES) else None

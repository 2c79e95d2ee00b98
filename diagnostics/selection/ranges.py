"""Time ranges: presets that end now, and the parsing of times."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

RANGES: dict[str, timedelta] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
DEFAULT_RANGE = "24h"
WIDEST_RANGE = "90d"
UTC_NAME = "UTC"
NO_TIME = "must be an RFC 3339 time with offset"
EARLIEST_YEAR = 1970
LATEST_YEAR = 2200


def read_zone(text: str) -> ZoneInfo:
    """Return the zone of an IANA name; ValueError for any other text."""
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("must be a time zone such as Europe/Berlin") from error


def read_moment(text: str, zone: ZoneInfo | None) -> datetime:
    """Return a time in UTC; one without an offset is in `zone`, or refused if that is None.

    Raises ValueError for anything else, and for years before 1971 or after 2199.
    """
    # A plus sign that was not escaped arrives as a space.
    escaped = text.replace(" ", "+") if "T" in text else text
    try:
        moment = datetime.fromisoformat(escaped)
    except ValueError as error:
        raise ValueError(NO_TIME) from error
    if moment.tzinfo is None:
        if zone is None:
            raise ValueError(NO_TIME)
        moment = moment.replace(tzinfo=zone)
    if not EARLIEST_YEAR < moment.year < LATEST_YEAR:
        raise ValueError("must lie between 1971 and 2199")
    # Hours added to a local time are those of the wall clock, wrong on a change of clocks.
    return moment.astimezone(UTC)

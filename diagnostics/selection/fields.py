"""The fields and time ranges of a selection, and what serves fields: rollups, or raw events."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
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


SERVED = "served"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A filter: a parameter, a key of `q`, and the column of that name."""

    name: str
    meaning: str = "exact; - asks for null"
    """The description of the parameter in the API."""
    short: str = ""
    """Its short name in `q`; the full name works, too."""
    other: str = ""
    """An alias in `q`."""
    is_exact: bool = False
    """Whether `q` matches the whole value; others match substrings."""
    is_nullable: bool = True


SERIES = (
    Dimension("environment", short="env"),
    Dimension("node", is_exact=True, is_nullable=False),
    Dimension("provider"),
    Dimension("model"),
)
"""Columns of every rollup."""
VERSION = (
    Dimension("source"),
    Dimension("prompt_version", short="prompt"),
    Dimension("schema"),
    Dimension("schema_version"),
    Dimension("release"),
    Dimension(SERVED, 'who answered, as "model at upstream"; - asks for the requested model'),
    Dimension("region"),
    Dimension("credential"),
)
"""Columns of the hourly rollup by version."""
COUNTED = (
    Dimension("kind", "event kind or parse error type", "", "type", True, False),
    Dimension("outcome", "how runs ended", "", "", True, False),
)
"""Each value is a column of counts in every rollup."""
RAW = (
    Dimension("attempt", "from 1", is_exact=True),
    Dimension("reason", "of degraded events, exact", is_exact=True),
    Dimension("correlation_id", "exact", "corr", "correlation", is_nullable=False),
    Dimension("name", "event name, exact", is_exact=True, is_nullable=False),
    Dimension("pointer", "of a validation error, exact", "", "path", True, False),
    Dimension("code", "of a validation error, exact", is_exact=True, is_nullable=False),
)
"""Fields without counts, which need raw events."""
DIMENSIONS = (*SERIES, *VERSION, *COUNTED, *RAW)

SERIES_FIELDS = tuple(field.name for field in SERIES)
VERSION_FIELDS = tuple(field.name for field in VERSION)
RAW_FIELDS = tuple(field.name for field in RAW)
FIELDS = tuple(field.name for field in DIMENSIONS)
NULLABLE = frozenset(field.name for field in DIMENSIONS if field.is_nullable)
EXACT_FIELDS = frozenset(field.name for field in DIMENSIONS if field.is_exact)
SHORTEST: Mapping[str, str] = {field.name: field.short for field in DIMENSIONS if field.short}
_TYPED = {key: f.name for f in DIMENSIONS for key in (f.name, f.short, f.other) if key}

OUTCOMES: Mapping[str, Mapping[str, object]] = {
    "ok_first": {"kind": "succeeded", "attempt": 1, "unchecked": None},
    "repaired": {"kind": "succeeded", "attempt__gt": 1, "unchecked": None},
    "degraded": {"kind": "degraded", "status": "failed"},
    "stubbed": {"kind": "degraded", "status": "stubbed"},
    "circuit_open": {"kind": "degraded", "reason": "circuit_open"},
    "provider_failed": {"kind": "degraded", "reason": "provider_failed"},
    "budget_exhausted": {"kind": "degraded", "reason": "budget_exhausted"},
    "unchecked": {"kind": "succeeded", "unchecked__isnull": False},
    "cancelled": {"kind": "cancelled"},
}
"""The outcomes of a run, each with the conditions on its last event."""
OTHER_OUTCOMES: Mapping[str, str] = {"recovered": "repaired"}
"""Names of outcomes in runs and pages, each with the one in events."""
OUTCOME_NAMES = (*OUTCOMES, *OTHER_OUTCOMES)
LONGEST_VALUE = 200
UNKNOWN = "-"
"""Null in a query, which is a value (not reported)."""


def field_named(key: str) -> str | None:
    return _TYPED.get(key.lower())


def keys_near(key: str) -> str:
    """Return a question for the key that was probably meant; empty without one."""
    near = get_close_matches(key.lower(), _TYPED, 1, 0.75)
    return "".join(f"; did you mean {known}?" for known in near)


def value_of(field: str, text: str) -> str:
    return OTHER_OUTCOMES.get(text, text) if field == "outcome" else text

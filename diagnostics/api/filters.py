"""The console's filters as query parameters (docs/http-api.md, "Reading")."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError

from diagnostics.core.cleaning import clean_text
from diagnostics.core.events import EventKind
from diagnostics.models import Event
from diagnostics.reading import OUTCOMES

MAX_LIMIT = 500
DEFAULT_LIMIT = 100
UNKNOWN = "-"
SAME_FIELDS = (
    "provider",
    "model",
    "node",
    "environment",
    "source",
    "prompt_version",
    "correlation_id",
)
SERIES_FIELDS = SAME_FIELDS[:-1]
WINDOW = [
    OpenApiParameter(
        "from", datetime, description="first moment, RFC 3339 with offset"
    ),
    OpenApiParameter("to", datetime, description="moment after the last one"),
]
SERIES_PARAMETERS = [
    *WINDOW,
    *(
        OpenApiParameter(field, str, description="exact; - asks for null")
        for field in SERIES_FIELDS
    ),
]
EVENT_PARAMETERS = [
    *SERIES_PARAMETERS,
    OpenApiParameter("correlation_id", str, description="exact"),
    OpenApiParameter("name", str, description="event name, exact"),
    OpenApiParameter("kind", str, description="event kind or parse error type"),
    OpenApiParameter("outcome", str, enum=list(OUTCOMES)),
    OpenApiParameter("q", str, description="beginning of a correlation id"),
    OpenApiParameter("limit", int, description=f"1 to {MAX_LIMIT}"),
    OpenApiParameter("cursor", str, description="`next` of the page before"),
]
PAGING = frozenset({"limit", "cursor", "format"})


@dataclass(frozen=True, slots=True)
class Window:
    """A range of time, since <= t < until; None is open."""

    since: datetime | None
    until: datetime | None


def read_window(asked: Mapping[str, str]) -> Window:
    """Read `from` and `to`; ValidationError names the one that is no time."""
    since, until = _read_time(asked, "from"), _read_time(asked, "to")
    if since and until and since >= until:
        raise ValidationError({"to": "to must be after from"})
    return Window(since, until)


def read_series_filters(asked: Mapping[str, str]) -> dict[str, str | None]:
    """Read the filters of series; `-` asks for null."""
    return {
        field: None if asked[field] == UNKNOWN else clean_text(asked[field])
        for field in SERIES_FIELDS
        if asked.get(field)
    }


def read_limit(asked: Mapping[str, str]) -> int:
    """Read `limit`, 100 unless told, 500 at most."""
    text = asked.get("limit", str(DEFAULT_LIMIT))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_LIMIT:
        raise ValidationError({"limit": f"a number from 1 to {MAX_LIMIT}"})
    return int(text)


def filter_events(events: QuerySet[Event], asked: Mapping[str, str]) -> QuerySet[Event]:
    """Narrow events by every filter asked for; a parameter nobody knows is refused."""
    known = {parameter.name for parameter in EVENT_PARAMETERS} | PAGING
    for name in asked:
        if name not in known:
            raise ValidationError({clean_text(name)[:200]: "unknown parameter"})
    return events.filter(_in_window(asked), _same(asked), _told(asked))


def _in_window(asked: Mapping[str, str]) -> Q:
    window = read_window(asked)
    found = Q()
    if window.since:
        found &= Q(occurred_at__gte=window.since)
    if window.until:
        found &= Q(occurred_at__lt=window.until)
    return found


def _same(asked: Mapping[str, str]) -> Q:
    found = Q()
    for field in SAME_FIELDS:
        value = clean_text(asked.get(field, ""))
        if value == UNKNOWN:
            found &= Q(**{f"{field}__isnull": True})
        elif value:
            found &= Q(**{field: value})
    return found


def _told(asked: Mapping[str, str]) -> Q:
    found = Q()
    if name := clean_text(asked.get("name", "")):
        _, _, rest = name.partition("graph.")
        node, _, kind = rest.rpartition(".")
        found &= Q(node=node, kind=kind)
    if kind := clean_text(asked.get("kind", "")):
        is_kind = kind in frozenset(EventKind)
        found &= Q(kind=kind) if is_kind else Q(parse_error_type=kind)
    if outcome := asked.get("outcome"):
        if outcome not in OUTCOMES:
            raise ValidationError({"outcome": f"one of {', '.join(OUTCOMES)}"})
        found &= OUTCOMES[outcome]
    if text := clean_text(asked.get("q", "")):
        found &= Q(correlation_id__startswith=text)
    return found


def _read_time(asked: Mapping[str, str], name: str) -> datetime | None:
    text = asked.get(name, "")
    if not text:
        return None
    # A plus sign that was not escaped arrives as a space.
    try:
        found = parse_datetime(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValidationError({name: "an RFC 3339 time with offset"})
    return found

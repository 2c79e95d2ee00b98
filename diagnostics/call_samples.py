"""The latest calls one by one: latency and tokens of good and failed ones."""

from dataclasses import dataclass
from datetime import datetime

from diagnostics.core.percentiles import Spread, spread_of
from diagnostics.core.selection import RAW_SPAN, Selection
from diagnostics.models import Event
from diagnostics.narrowing import narrow

CALL_KINDS = ("succeeded", "parse_invalid", "provider_error")
MOST_READ = 20_000
MOST_CALLS = 4_000


@dataclass(frozen=True, slots=True)
class CallSpread:
    """What calls of one kind took."""

    latency_ms: Spread
    input_tokens: Spread
    output_tokens: Spread


@dataclass(frozen=True, slots=True)
class CallSamples:
    """Good and failed calls; `is_cut` says that older ones of the range were not read."""

    good: CallSpread
    failed: CallSpread
    since: datetime
    is_cut: bool


def sample_calls(
    project_id: int, selection: Selection, since: datetime, until: datetime
) -> CallSamples:
    """Read the latest 4,000 calls among the latest 20,000 events, 7 days at most."""
    begin = max(since, until - RAW_SPAN)
    events = Event.objects.filter(project_id=project_id, occurred_at__lt=until)
    latest = events.filter(occurred_at__gte=begin).order_by("-occurred_at")
    # The time of the event at which reading ends: an index alone tells it.
    last = latest.values_list("occurred_at", flat=True)[MOST_READ : MOST_READ + 1]
    begin = max([begin, *last])
    calls = events.filter(occurred_at__gte=begin, kind__in=CALL_KINDS)
    rows = list(
        narrow(calls, selection)
        .order_by("-occurred_at", "-event_id")
        .values_list("kind", "latency_ms", "input_tokens", "output_tokens")[:MOST_CALLS]
    )
    good = [row[1:] for row in rows if row[0] == "succeeded"]
    failed = [row[1:] for row in rows if row[0] != "succeeded"]
    is_cut = begin > since or len(rows) == MOST_CALLS
    return CallSamples(_spread(good), _spread(failed), begin, is_cut)


def _spread(rows: list[tuple[int | None, ...]]) -> CallSpread:
    columns = [
        spread_of([row[place] or 0 for row in rows if row[place] is not None])
        for place in range(3)
    ]
    return CallSpread(*columns)

"""The latest calls one by one: latency and tokens of good and failed ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import quantiles
from typing import Any

from diagnostics.selection.conditions import Days, narrow
from diagnostics.selection.selection import RAW_SPAN, Selection
from diagnostics.store.models import Event


@dataclass(frozen=True, slots=True)
class Percentiles:
    """How many values there are, and where half, nine tenths and 95 % of them lie."""

    count: int
    half: float | None = None
    most: float | None = None
    nearly_all: float | None = None


def spread_of(values: Sequence[float]) -> Percentiles:
    if not values:
        return Percentiles(0)
    # Of a single value there are none, in Python before 3.13.
    cuts = quantiles(values if len(values) > 1 else [*values, *values], n=20, method="inclusive")
    return Percentiles(len(values), cuts[9], cuts[17], cuts[18])


CALL_KINDS = ("succeeded", "parse_invalid", "provider_error")
COLUMNS = ("latency_ms", "input_tokens", "output_tokens")
MOST_READ = 20_000
MOST_CALLS = 2_000


def sample_calls(
    project_id: int, selection: Selection, since: datetime, until: datetime
) -> Mapping[str, Any]:
    """Say what the latest 2,000 calls among the latest 20,000 events took, 7 days at most.

    `is_cut` says that older ones of the range were not read.
    """
    begin = max(since, until - RAW_SPAN)
    events = Event.objects.filter(project_id=project_id, occurred_at__lt=until)
    latest = events.filter(occurred_at__gte=begin).order_by("-occurred_at")
    # The time of the event at which reading ends: an index alone tells it.
    last = latest.values_list("occurred_at", flat=True)[MOST_READ : MOST_READ + 1]
    begin = max([begin, *last])
    calls = events.filter(occurred_at__gte=begin, kind__in=CALL_KINDS)
    rows = list(
        narrow(calls, selection, Days(begin, until))
        .order_by("-occurred_at", "-event_id")
        .values_list(*COLUMNS, "kind", "occurred_at")[:MOST_CALLS]
    )
    good = [row[:3] for row in rows if row[3] == "succeeded"]
    failed = [row[:3] for row in rows if row[3] != "succeeded"]
    is_full = len(rows) == MOST_CALLS
    return {
        "good": _spread(good),
        "failed": _spread(failed),
        "since": rows[-1][4] if is_full else begin,
        "is_cut": is_full or begin > since,
    }


def _spread(rows: Sequence[tuple[int | None, ...]]) -> Mapping[str, Percentiles]:
    return {
        name: spread_of([sample for row in rows if (sample := row[place]) is not None])
        for place, name in enumerate(COLUMNS)
    }

"""Reads of models: their calls against the week before, over time, and by prompt version."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from diagnostics.analysis.series import RunCurve
from diagnostics.queries.call_counts import CALLS, EVERYTHING, CallCounts, count_calls
from diagnostics.queries.events import BASELINE_SPAN
from diagnostics.queries.matrix import ModelKey
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.store.models import Series
from diagnostics.store.rollups import VERSION
from diagnostics.store.windows import (
    WIDTHS,
    Grain,
    RunBucket,
    TimeWindow,
    align_to,
    ceil,
    floor,
    kept_of,
)

BY_MODEL = ("provider", "model")
MOST_SLOTS = 50
SLOT_WIDTHS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 10080, 20160)
)


def is_known_model(project_id: int, provider: str | None, model: str | None) -> bool:
    """Whether anything was ever counted of a model."""
    found = Series.objects.filter(project_id=project_id, provider=provider, model=model)
    return found.exists()


def calls_by_model(
    project_id: int, window: TimeWindow, terms: Sequence[Term]
) -> tuple[dict[ModelKey, CallCounts], dict[ModelKey, CallCounts]]:
    """Count the calls of every model in a window, and in the 7 days before it."""
    now, past = (
        sum_rollups(project_id, Question(stretch, BY_MODEL, CALLS, terms))
        for stretch in (window, window.before(BASELINE_SPAN))
    )
    return (
        {(row[0], row[1]): _read(row, 2) for row in now},
        {(row[0], row[1]): _read(row, 2) for row in past},
    )


def sums_between(
    project_id: int, window: TimeWindow, terms: Sequence[Term], measures: Sequence[str] = EVERYTHING
) -> Mapping[str, int]:
    """Add up measures of everything that terms keep."""
    rows = sum_rollups(project_id, Question(window, ("node",), measures, terms))
    columns = zip(*(row[1:] for row in rows), strict=True) if rows else ()
    totals = [sum(column) for column in columns] or [0] * len(measures)
    return dict(zip(measures, totals, strict=True))


def calls_by_prompt(
    project_id: int, window: TimeWindow, terms: Sequence[Term]
) -> dict[str | None, CallCounts]:
    """Count calls by prompt version, in whole hours."""
    rows = sum_rollups(project_id, Question(window.in_hours, ("prompt_version",), CALLS, terms))
    return {row[0]: _read(row, 1) for row in rows}


def calls_over_time(
    project_id: int, window: TimeWindow, terms: Sequence[Term], now: datetime
) -> RunCurve:
    """Count calls, and failed ones as degraded, in at most 50 slots; minutes where kept."""
    width = slot_width(window, terms, now)
    since = floor(window.since, width)
    count = max((min(ceil(window.until, width), ceil(now, width)) - since) // width, 1)
    slots = Slots(since, width, count)
    grain = _grain_of(width)
    within = align_to(grain, since, since + count * width)
    asked = Question(within, ("node",), CALLS, terms, slots)
    found = [RunBucket(0, 0)] * count
    for row in sum_rollups(project_id, asked):
        counts, known = _read(row, 2), found[row[1]]
        found[row[1]] = RunBucket(known.runs + counts.calls, known.degraded + counts.failed)
    return RunCurve(since, width, found)


def slot_width(window: TimeWindow, terms: Sequence[Term], now: datetime) -> timedelta:
    """Choose the narrowest round slot that gives at most 50 of them and can be counted."""
    span = window.until - window.since
    least = WIDTHS[kept_of(window.since, now)]
    if any(term.field in VERSION for term in terms):
        least = max(least, WIDTHS[Grain.HOUR])
    wide = (width for width in SLOT_WIDTHS if width >= least)
    return next((one for one in wide if span / one <= MOST_SLOTS), SLOT_WIDTHS[-1])


def _grain_of(width: timedelta) -> Grain:
    wide = (g for g in (Grain.DAY, Grain.HOUR) if not width % WIDTHS[g])
    return next(wide, Grain.MINUTE)


def _read(row: Row, dimensions: int) -> CallCounts:
    return count_calls(dict(zip(CALLS, row[dimensions:], strict=True)))

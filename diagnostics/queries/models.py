"""Queries of models: calls against the week before, over time, and by prompt version."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from diagnostics.analysis.series import ModelKey, RunCurve
from diagnostics.queries.call_counts import (
    CALLS,
    EVERYTHING,
    FAILING,
    USED,
    CallCounts,
    count_calls,
    count_failing,
)
from diagnostics.queries.series import BASELINE_SPAN, slot_width
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.store.models import Series
from diagnostics.store.windows import RunBucket, TimeWindow, align_to, ceil, coarsest_of, floor

BY_MODEL = ("provider", "model")
MOST_SLOTS, MOST_COST_SLOTS = 50, 25
MOST_KNOWN = 200


def is_known_model(project_id: int, provider: str | None, model: str | None) -> bool:
    series = Series.objects.filter(project_id=project_id, provider=provider, model=model)
    return series.exists()


def known_models(project_id: int) -> list[ModelKey]:
    models = Series.objects.filter(project_id=project_id).values_list("provider", "model")
    return list(models.distinct().order_by("provider", "model")[:MOST_KNOWN])


def calls_by_model(
    project_id: int, window: TimeWindow, terms: Sequence[Term]
) -> tuple[dict[ModelKey, CallCounts], dict[ModelKey, CallCounts]]:
    """Return the calls of every model in a window, and in the 7 days before it."""
    now, past = (
        sum_rollups(project_id, Question(stretch, BY_MODEL, CALLS, terms))
        for stretch in (window, window.before(BASELINE_SPAN))
    )
    return _read(now), _read(past)


def sums_between(
    project_id: int, window: TimeWindow, terms: Sequence[Term], measures: Sequence[str] = EVERYTHING
) -> Mapping[str, int]:
    rows = sum_rollups(project_id, Question(window, ("node",), measures, terms))
    columns = zip(*(row[1:] for row in rows), strict=True) if rows else ()
    totals = [sum(column) for column in columns] or [0] * len(measures)
    return dict(zip(measures, totals, strict=True))


def calls_by_prompt(
    project_id: int, window: TimeWindow, terms: Sequence[Term]
) -> dict[str | None, CallCounts]:
    """Return calls and failed ones by prompt version, in whole hours."""
    question = Question(window.in_hours, ("prompt_version",), FAILING, terms)
    return {row[0]: count_failing(*row[1:]) for row in sum_rollups(project_id, question)}


def calls_over_time(
    project_id: int, window: TimeWindow, terms: Sequence[Term], now: datetime
) -> RunCurve:
    """Return calls, with failed ones as degraded, in at most 50 slots; by minute where kept."""
    slots = _slots_of(window, terms, now, MOST_SLOTS)
    buckets = [RunBucket(0, 0)] * slots.count
    for row in sum_rollups(project_id, _by_slot(slots, FAILING, terms)):
        counts, known = count_failing(*row[2:]), buckets[row[1]]
        buckets[row[1]] = RunBucket(known.runs + counts.calls, known.degraded + counts.failed)
    return RunCurve(slots.since, slots.width, buckets)


def costs_over_time(
    project_id: int, window: TimeWindow, terms: Sequence[Term], now: datetime
) -> tuple[Slots, list[dict[str, int]]]:
    """Return sums of latency buckets and tokens in at most 24 slots, over all nodes."""
    slots = _slots_of(window, terms, now, MOST_COST_SLOTS)
    slot_sums = [dict.fromkeys(USED, 0) for _ in range(slots.count)]
    for row in sum_rollups(project_id, _by_slot(slots, USED, terms)):
        for name, value in zip(USED, row[2:], strict=True):
            slot_sums[row[1]][name] += value
    return slots, slot_sums


def _slots_of(window: TimeWindow, terms: Sequence[Term], now: datetime, limit: int) -> Slots:
    width = slot_width(window, terms, now, limit)
    since = floor(window.since, width)
    count = max((min(ceil(window.until, width), ceil(now, width)) - since) // width, 1)
    return Slots(since, width, count)


def _by_slot(slots: Slots, measures: Sequence[str], terms: Sequence[Term]) -> Question:
    end = slots.since + slots.count * slots.width
    within = align_to(coarsest_of(slots.since, slots.width), slots.since, end)
    return Question(within, ("node",), measures, terms, slots)


def _read(rows: Sequence[Row]) -> dict[ModelKey, CallCounts]:
    return {
        (provider, model): count_calls(dict(zip(CALLS, counted, strict=True)))
        for provider, model, *counted in rows
    }

"""Reads of the verdict: curves of series, cells by versions, evidence of what failed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from diagnostics.core.query_language import Term
from diagnostics.core.rollups import (
    CALL_ERRORS,
    FAILURE_KINDS,
    INVALID,
    SERIES,
    VERSION,
)
from diagnostics.core.selection import Selection
from diagnostics.core.verdict.cells import Cell, Place, Who
from diagnostics.core.verdict.onset import Count
from diagnostics.core.verdict.telling import Evidence
from diagnostics.core.windows import WIDTHS, Grain, Window, align_to, floor
from diagnostics.models import Deploy, Event, EventPayload
from diagnostics.summing import Question, Row, Slots, sum_rollups

SLOT = timedelta(minutes=10)
SHORTEST = timedelta(hours=24)
MINUTES_REACH = timedelta(hours=47)
WEEK = timedelta(days=7)
USUAL_WHEN_NEW = 0.05
DRAWN_TOWARDS = 20
CALLS = ("attempts", "invalid", *CALL_ERRORS, "runs", "degraded")
CELL = ("attempts", "runs", "degraded", *FAILURE_KINDS)
SAMPLED = 200
UNSAID = "other_invalid"
"""Runs that were posted as outcomes do not say which kind of failure it was."""

Curves = Mapping[Who, Sequence[Count]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The slots that are looked at: where they begin and how wide they are."""

    window: Window
    width: timedelta

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-(self.window.until - self.window.since) // self.width)

    def begin(self, slot: int) -> datetime:
        """When a slot begins."""
        return self.window.since + slot * self.width


def stretch_of(selection: Selection, now: datetime) -> Stretch:
    """Give slots of ten minutes for up to two days, else of hours; a day at least."""
    since, until = selection.window(now)
    since = min(since, until - SHORTEST)
    by_minute = since >= now - MINUTES_REACH and not selection.needs_versions
    width = SLOT if by_minute else WIDTHS[Grain.HOUR]
    grain = Grain.MINUTE if by_minute else Grain.HOUR
    return Stretch(align_to(grain, floor(since, width), until), width)


def terms_of(selection: Selection) -> tuple[Term, ...]:
    """Give the conditions that rollups can meet."""
    return (*selection.series_terms, *selection.version_terms)


def curves_of(project_id: int, selection: Selection, stretch: Stretch) -> Curves:
    """Give every series its calls and failures in each slot."""
    slots = Slots(stretch.window.since, stretch.width, stretch.count)
    asked = Question(stretch.window, SERIES, CALLS, terms_of(selection), slots)
    empty = Count(0, 0)
    found: dict[Who, list[Count]] = defaultdict(lambda: [empty] * stretch.count)
    for environment, node, provider, model, slot, *measures in sum_rollups(
        project_id, asked
    ):
        found[Who(environment, node, provider, model)][slot] = _count(measures)
    return found


def usual_of(
    project_id: int, selection: Selection, until: datetime
) -> Callable[[Who], float]:
    """Learn the share of failing calls of each series in the week before a time."""
    window = align_to(Grain.HOUR, until - WEEK, floor(until, WIDTHS[Grain.HOUR]))
    asked = Question(window, SERIES, CALLS, terms_of(selection))
    known = {
        Who(*row[: len(SERIES)]): _count(row[len(SERIES) :])
        for row in sum_rollups(project_id, asked)
    }

    def usual(who: Who) -> float:
        count = known.get(who, Count(0, 0))
        drawn = count.failed + USUAL_WHEN_NEW * DRAWN_TOWARDS
        return drawn / (count.calls + DRAWN_TOWARDS)

    return usual


def cells_between(
    project_id: int, selection: Selection, since: datetime, until: datetime
) -> list[Cell]:
    """Give what was counted of every place in whole hours between two times."""
    window = align_to(Grain.HOUR, since, until)
    asked = Question(window, (*SERIES, *VERSION), CELL, terms_of(selection))
    return [_cell(row) for row in sum_rollups(project_id, asked)]


def evidence_of(
    project_id: int, who: Who | None, since: datetime, until: datetime, kind: str
) -> Evidence:
    """Look at the latest failures of a kind, for what to change."""
    events = Event.objects.filter(
        project_id=project_id, occurred_at__gte=since, occurred_at__lt=until
    )
    if who is not None:
        events = events.filter(node=who.node, provider=who.provider, model=who.model)
    if kind in INVALID:
        events = events.filter(parse_error_type=kind.replace(UNSAID, "other"))
    else:
        events = events.filter(kind=kind)
    latest = list(events.order_by("-occurred_at", "-event_id")[:SAMPLED])
    payloads = _payloads(latest)
    tokens = [event.output_tokens for event in latest if event.output_tokens]
    budgets = [one.max_output_tokens for one in payloads if one.max_output_tokens]
    return Evidence(
        cut_at_tokens=round(median(tokens)) if tokens else None,
        budget_tokens=max(budgets, default=None),
        tools=_tools(payloads),
        pointers=_pointers(payloads),
    )


def last_change(project_id: int, until: datetime) -> datetime | None:
    """Give the time of the latest deploy before a time."""
    deploys = Deploy.objects.filter(project_id=project_id, at__lte=until)
    return deploys.order_by("-at").values_list("at", flat=True).first()


def _payloads(events: Sequence[Event]) -> list[EventPayload]:
    if not events:
        return []
    return list(
        EventPayload.objects.filter(
            project_id=events[0].project_id,
            event_id__in=[event.event_id for event in events],
            occurred_at__range=(events[-1].occurred_at, events[0].occurred_at),
        )
    )


def _tools(payloads: Sequence[EventPayload]) -> list[tuple[str, str | None]]:
    seen = Counter(one.tool for one in payloads if one.tool)
    nearest = {
        one.tool: one.attributes.get("nearest_tool") for one in payloads if one.tool
    }
    return [(tool, nearest.get(tool)) for tool, _ in seen.most_common(3)]


def _pointers(payloads: Sequence[EventPayload]) -> list[tuple[str, str, int]]:
    seen = Counter(
        (error.get("path") or "", error.get("code") or "invalid")
        for one in payloads
        for error in one.validation_errors[:1]
    )
    return [(path, code, times) for (path, code), times in seen.most_common(3)]


def _count(measures: Sequence[int]) -> Count:
    attempts, invalid, *rest = measures
    *call_errors, runs, degraded = rest
    if attempts:
        return Count(attempts, invalid + sum(call_errors))
    return Count(runs, degraded)


def _cell(row: Row) -> Cell:
    keys, measures = row[: len(SERIES) + len(VERSION)], row[-len(CELL) :]
    named = dict(zip((*SERIES, *VERSION), keys, strict=True))
    attempts, runs, degraded, *failures = measures
    by_kind = dict(zip(FAILURE_KINDS, failures, strict=True))
    if not attempts:
        attempts, by_kind = runs, {**by_kind, UNSAID: degraded}
    return Cell(Place(**named), attempts, by_kind, runs, degraded)

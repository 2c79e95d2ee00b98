"""Failure groups against the calls they are of: rates, places, curves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from diagnostics.analysis.onset import lasting_onset
from diagnostics.analysis.series import RunCurve
from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.failures.counts import GroupQuestion, ask
from diagnostics.failures.groups import shapes_of
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.places import FailurePlace, Spread, divide
from diagnostics.queries.call_counts import counts_runs
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.store.windows import Grain, RunBucket, TimeWindow, align_to, floor

MOST_SLOTS = 48
BEFORE = timedelta(days=7)
MEASURES = ("attempts", "runs")


@dataclass(frozen=True, slots=True)
class FailureCurve(RunCurve):
    """Failures of a group and calls of its node in equal stretches, oldest first.

    `runs` are calls, `degraded` failures of the group; no calls: they are not counted.
    """

    begun: int | None
    """The stretch since which it happens more often than before."""
    usual: tuple[float, float, float] | None
    """Its share of the calls in the week before, with the 95 % interval."""

    @property
    def began_at(self) -> datetime | None:
        """When it began to happen more often."""
        return None if self.begun is None else self.since + self.begun * self.width

    @property
    def counts(self) -> list[int]:
        """Failures alone."""
        return [bucket.degraded for bucket in self.buckets]

    @property
    def until(self) -> datetime:
        """Where the curve ends."""
        return self.since + len(self.buckets) * self.width


@dataclass(frozen=True, slots=True)
class Denominator:
    """What failures are counted against: calls, or runs where not every call was posted."""

    count: int
    noun: str

    def share_of(self, failures: int) -> float | None:
        """Return the share of the calls that failed; None of runs, which have several."""
        return min(failures / self.count, 1.0) if self.count and self.noun == "call" else None


def calls_by_node(project_id: int, asked: GroupQuestion) -> Mapping[str, Denominator]:
    """Return what every node's failures are counted against, in whole hours.

    Empty where single events are read: calls are not counted by such filters.
    """
    return {
        node: Denominator(runs, "run") if counts_runs(calls, runs) else Denominator(calls, "call")
        for (node,), calls, runs in _sums(project_id, asked, ("node",), asked.terms)
    }


def places_of(project_id: int, group: FailureGroup, asked: GroupQuestion) -> list[Spread]:
    """Divide a group's failures by every dimension, beside the calls of its node."""
    mine = replace(asked, ids=[group.pk])
    failures = {FailurePlace(*row[:-1]): row[-1] for row in ask(project_id, "group_places", mine)}
    calls = _calls(project_id, asked, FailurePlace._fields, _of_node(group, asked))
    return divide(failures, {FailurePlace(*key): count for key, count in calls})


def curve_of(project_id: int, group: FailureGroup, asked: GroupQuestion) -> FailureCurve:
    """Count a group's failures and its node's calls over the window, and find the onset."""
    slots = _slots(asked)
    failures = shapes_of(project_id, asked, [group.pk], slots)[1][group.pk]
    counted = _calls(project_id, asked, (), _of_node(group, asked), slots)
    calls = Counter({place: count for (place,), count in counted})
    buckets = [
        RunBucket(max(calls[place], failures[place]) if calls else 0, failures[place])
        for place in range(slots.count)
    ]
    if not calls:
        return FailureCurve(slots.since, slots.width, buckets, None, None)
    known, failed = _before(project_id, group, asked)
    is_known = known >= LEAST_TRIALS
    usual = (failed / known, *wilson_interval(failed, known)) if is_known else None
    found = lasting_onset(buckets, usual[0] if usual else None, known)
    return FailureCurve(slots.since, slots.width, buckets, found.at if found else None, usual)


def _hours(asked: GroupQuestion) -> TimeWindow:
    return align_to(Grain.HOUR, asked.begin, asked.end)


def _of_node(group: FailureGroup, asked: GroupQuestion) -> Sequence[Term]:
    others = (term for term in asked.terms if term.field != "node")
    return (*others, Term("node", group.node))


def _sums(
    project_id: int,
    asked: GroupQuestion,
    dimensions: Sequence[str],
    terms: Sequence[Term],
    slots: Slots | None = None,
) -> list[tuple[Row, int, int]]:
    """Count calls and runs; nothing where single events are read."""
    if asked.events is not None:
        return []
    rows = sum_rollups(project_id, Question(_hours(asked), dimensions, MEASURES, terms, slots))
    return [(row[:-2], row[-2], row[-1]) for row in rows]


def _calls(
    project_id: int,
    asked: GroupQuestion,
    dimensions: Sequence[str],
    terms: Sequence[Term],
    slots: Slots | None = None,
) -> list[tuple[Row, int]]:
    """Count calls, or runs where not every call was posted."""
    rows = _sums(project_id, asked, dimensions, terms, slots)
    of_runs = counts_runs(sum(row[1] for row in rows), sum(row[2] for row in rows))
    return [(key, runs if of_runs else calls or runs) for key, calls, runs in rows]


def _slots(asked: GroupQuestion) -> Slots:
    """Divide the window into at most 48 stretches of whole hours, or of days if it is long."""
    window, width = _hours(asked), asked.width
    origin = floor(window.since, width)
    count = max(-(-(window.until - origin) // width), 1)
    each = -(-count // MOST_SLOTS)
    return Slots(origin, each * width, -(-count // each))


def _before(project_id: int, group: FailureGroup, asked: GroupQuestion) -> tuple[int, int]:
    """Count the calls of the week before the window, and those that failed so."""
    before = replace(asked, since=asked.begin - BEFORE, until=asked.begin)
    calls = sum(n for _, n in _calls(project_id, before, ("node",), _of_node(group, before)))
    mine = replace(before, ids=[group.pk], states=None, kinds=())
    failures = sum(row[-1] for row in ask(project_id, "group_places", mine))
    return calls, min(failures, calls)

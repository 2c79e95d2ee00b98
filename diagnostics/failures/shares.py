"""Failure groups relative to their calls: rates, places, curves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.series import RunCurve
from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.failures.counts import GroupQuestion, query_groups
from diagnostics.failures.groups import shapes_of, whole_slots
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.places import FailurePlace, Spread, divide
from diagnostics.queries.call_counts import counts_runs
from diagnostics.queries.series import BASELINE_SPAN
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.store.windows import Grain, RunBucket, align_to

MOST_SLOTS = 48
MEASURES = ("attempts", "runs")


@dataclass(frozen=True, slots=True)
class FailureCurve(RunCurve):
    """Failures of a group and calls of its node in equal slots, oldest first.

    `runs` are calls, `degraded` are failures of the group; without calls they are not counted.
    """

    begun: int | None
    """The slot of the onset, from which on it is more frequent than before."""
    usual: tuple[float, float, float] | None
    """Its share of calls in the week before, with the 95 % interval."""

    @property
    def began_at(self) -> datetime | None:
        return None if self.begun is None else self.since + self.begun * self.width

    @property
    def counts(self) -> list[int]:
        return [bucket.degraded for bucket in self.buckets]

    @property
    def until(self) -> datetime:
        return self.since + len(self.buckets) * self.width


@dataclass(frozen=True, slots=True)
class Denominator:
    """The denominator of a rate: calls, or runs if not every call was posted."""

    count: int
    noun: str

    def share_of(self, failures: int) -> float | None:
        """Return the share of the calls that failed; None of runs, which have several."""
        return min(failures / self.count, 1.0) if self.count and self.noun == "call" else None


def calls_by_node(project_id: int, question: GroupQuestion) -> Mapping[str, Denominator]:
    """Return the denominator of every node's failures, in whole hours.

    Empty with single events: calls are not counted by such filters.
    """
    return {
        node: Denominator(runs, "run") if counts_runs(calls, runs) else Denominator(calls, "call")
        for (node,), calls, runs in _sums(project_id, question, ("node",), question.terms)
    }


def places_of(project_id: int, group: FailureGroup, question: GroupQuestion) -> list[Spread]:
    own_question = replace(question, ids=[group.pk])
    failures = {
        FailurePlace(*row[:-1]): row[-1]
        for row in query_groups(project_id, "group_places", own_question)
    }
    sums = _sums(project_id, question, FailurePlace._fields, _of_node(group, question))
    return divide(failures, {FailurePlace(*key): count for key, count in _calls(sums)})


def curve_of(project_id: int, group: FailureGroup, question: GroupQuestion) -> FailureCurve:
    slots = whole_slots(question, MOST_SLOTS)
    failures = shapes_of(project_id, question, [group.pk], slots)[1][group.pk]
    sums = _sums(project_id, question, (), _of_node(group, question), slots)
    calls = Counter({index: count for (index,), count in _calls(sums)})
    buckets = [
        RunBucket(max(calls[index], failures[index]) if calls else 0, failures[index])
        for index in range(slots.count)
    ]
    if not calls:
        return FailureCurve(slots.since, slots.width, buckets, None, None)
    before = replace(question, since=question.begin - BASELINE_SPAN, until=question.begin)
    sums = _sums(project_id, before, ("node",), _of_node(group, before))
    known = sum(count for _, count in _calls(sums))
    own_question = replace(before, ids=[group.pk], states=None, kinds=())
    seen = sum(row[-1] for row in query_groups(project_id, "group_places", own_question))
    failed = min(seen, known)
    is_known = known >= LEAST_TRIALS
    baseline = (failed / known, *wilson_interval(failed, known)) if is_known else None
    started = _begun(RunCurve(slots.since, slots.width, buckets), known, failed)
    return FailureCurve(slots.since, slots.width, buckets, started, baseline)


def _begun(curve: RunCurve, known: int, failed: int) -> int | None:
    """Return the slot since which a failure is more frequent than in the week before."""
    detector, width = ChangeDetector(), curve.width.total_seconds()
    detector.learned.calls, detector.learned.failed = known, failed
    for at, bucket in enumerate(curve.buckets):
        detector.feed(curve.begin(at).timestamp(), bucket.runs, bucket.degraded, width)
    if detector.fire is None:
        return None
    return max(int((detector.fire.onset.at - curve.since.timestamp()) // width), 0)


def _of_node(group: FailureGroup, question: GroupQuestion) -> Sequence[Term]:
    others = (term for term in question.terms if term.field != "node")
    return (*others, Term("node", group.node))


def _sums(
    project_id: int,
    question: GroupQuestion,
    dimensions: Sequence[str],
    terms: Sequence[Term],
    slots: Slots | None = None,
) -> list[tuple[Row, int, int]]:
    """Return counts of calls and runs; none with single events."""
    if question.events is not None:
        return []
    hours = align_to(Grain.HOUR, question.begin, question.end)
    rows = sum_rollups(project_id, Question(hours, dimensions, MEASURES, terms, slots))
    return [(row[:-2], row[-2], row[-1]) for row in rows]


def _calls(rows: Sequence[tuple[Row, int, int]]) -> list[tuple[Row, int]]:
    """Return counts of calls, or of runs if not every call was posted."""
    of_runs = counts_runs(sum(row[1] for row in rows), sum(row[2] for row in rows))
    return [(key, runs if of_runs else calls or runs) for key, calls, runs in rows]

"""The status of every series of a project, and the verdict on it, as read everywhere.

The evaluator stores it every minute, so that the first view does not wait and all processes show
the same. Without a worker it is judged on demand.
A status is of a point in time: the range of a page changes the counts, not the status.
A filter finer than a series (a version) has statuses of the calls that it keeps.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import Q
from pydantic import TypeAdapter, ValidationError

from diagnostics.alerting.rule_models import AlertSlot, ProjectStatus
from diagnostics.alerting.series_detectors import SeriesDetector, detected_at, replay_series
from diagnostics.analysis.series import (
    NO_COUNTS,
    STATUS_SPAN,
    DetectedState,
    SeriesKey,
    SeriesStatus,
    StatusAxis,
    Unit,
    UnitCounts,
    status_of,
)
from diagnostics.queries.call_counts import counts_runs
from diagnostics.queries.series import (
    BASELINE_SPAN,
    RUNS,
    Counting,
    choose_series,
    ids_of,
    is_large,
    recent_trends,
    window_for,
)
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import Selection, keeps_all
from diagnostics.store.kept_answers import CachedResult, ResultCache
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import Grain, RunBucket, TimeWindow, align_to
from diagnostics.verdict.cells import COUNTED, LOCAL, count_calls
from diagnostics.verdict.verdicts import Verdict, calm_verdict, verdict_of

logger = structlog.get_logger(__name__)
Statuses = Mapping[SeriesKey, SeriesStatus]
PLACES = len(SERIES)
ATTEMPTS = COUNTED.index("attempts")
FRESH = timedelta(minutes=3)
"""How long a stored row is used: two evaluations may fail or be late."""
STATUSES = "statuses"
"""The part of a project's turn that stores them."""
VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)
SERIES_STATUSES: TypeAdapter[list[SeriesStatus]] = TypeAdapter(list[SeriesStatus])
_OF_FINDING = {"finding": {"touches"}}
FUNCTIONS: Any = {**_OF_FINDING, "others": {"__all__": _OF_FINDING}}
"""Inputs of the judgement that are not stored."""


@dataclass(frozen=True, slots=True)
class StatusSet:
    """The verdict and the status of every series at one point in time."""

    at: datetime
    verdict: Verdict
    series: Statuses
    left_out: int = 0
    """Series with calls that are not judged: the project has too many."""

    def status(self, key: SeriesKey) -> SeriesStatus:
        """Return the status of a series; an unknown one has no data."""
        return self.series.get(key) or status_of(key, self.at, NO_COUNTS, NO_COUNTS)

    def kept_by(
        self, selection: Selection, counted: Iterable[SeriesKey] = ()
    ) -> list[SeriesStatus]:
        """Return the statuses of the series that a selection keeps, worst first.

        Series in `counted` are included even without a known last day.
        """
        keys, terms = dict.fromkeys((*self.series, *counted)), selection.terms
        statuses = (self.status(key) for key in keys if keeps_all(terms, key._asdict()))
        return sorted(statuses, key=lambda status: status.rank)


_sets: ResultCache[StatusSet] = ResultCache()
_verdicts: ResultCache[Verdict] = ResultCache()


def read_statuses(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return the statuses of series at the end of a selection, filtered by its versions only.

    Stored statuses are returned as they are. Those judged here are at most
    FAILSOFT_VERDICT_SECONDS old, or a little more while a refresh runs beside the request.
    """
    if stored := _stored_for(project_id, selection, now):
        return stored
    moment = _moment_of(project_id, selection, now)
    judged = _sets.get(
        (project_id, moment.query()), now, lambda at: judge_statuses(project_id, moment, at)
    )
    return judged.answer


def _stored_for(project_id: int, selection: Selection, now: datetime) -> StatusSet | None:
    """Return the stored statuses if they are of the end of a selection, and of its calls."""
    is_past = selection.end is not None and selection.end < now
    stored = None if selection.version_terms or is_past else stored_statuses(project_id, now)
    return None if stored and stored.left_out and selection.series_terms else stored


def _moment_of(project_id: int, selection: Selection, now: datetime) -> Selection:
    """Return the end of a selection, with those of its terms that change a status."""
    terms = selection.version_terms
    if selection.series_terms and is_large(project_id):
        # What is asked for may be among those that are left out.
        terms = selection.rollup_terms
    end = selection.end if selection.end and selection.end < now else None
    return Selection(text=Query(terms), begin=end and end - STATUS_SPAN, end=end)


def read_status(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return the same with the verdict on the series that a selection keeps.

    Only a custom range is judged itself: the verdict, like a status, is of a point in time,
    whatever range a page counts.
    """
    statuses = read_statuses(project_id, selection, now)
    if selection.is_custom:
        at, verdict = _judge_kept(project_id, selection, now)
        return replace(statuses, at=at, verdict=verdict)
    return replace(statuses, verdict=_narrow(project_id, statuses, selection, now))


def recent_verdict_of(
    project_id: int, selection: Selection, now: datetime, statuses: StatusSet | None = None
) -> Verdict:
    """Return the recent verdict of a selection over its whole range.

    Conditions that rollups cannot express do not change the verdict. `statuses` are those of
    the selection, if they were read before.
    """
    if _is_long(selection):
        return _judge_kept(project_id, selection, now).answer
    statuses = statuses or read_statuses(project_id, selection, now)
    return _narrow(project_id, statuses, selection, now)


def _is_long(selection: Selection) -> bool:
    """Whether a verdict on the whole range is another one than on its end."""
    return selection.is_custom or selection.span > STATUS_SPAN


def recent_verdict_within(
    project_id: int, selection: Selection, part: Selection, now: datetime
) -> Verdict:
    """Return the verdict of the incident that hits a part of a selection, else of that part.

    A part alone has no other calls to compare with.
    """
    statuses = None if _is_long(selection) else read_statuses(project_id, selection, now)
    verdict = recent_verdict_of(project_id, selection, now, statuses)
    for cause in verdict.causes:
        if any(part.keeps(key._asdict()) for key in cause.touched):
            return cause
    # What was left out of a large project may be in the part.
    is_whole = statuses and not statuses.left_out
    return recent_verdict_of(project_id, part, now, statuses if is_whole else None)


def stored_statuses(project_id: int, at: datetime) -> StatusSet | None:
    """Return the statuses that the evaluator stored, if they are of about this time.

    Those of a project that takes longer than its turn are the last there are. The first events
    of a project are judged on demand: it is cheap, and the first result should not take a
    minute.
    """
    is_recent = Q(at__range=(at - FRESH, at + FRESH))
    is_last = Q(at__lt=at, project__turn__passed_over__contains=[STATUSES])
    row = ProjectStatus.objects.filter(is_recent | is_last, pk=project_id).first()
    statuses = row and read_row(row)
    return statuses if statuses and statuses.verdict.state != "not_enough_data" else None


def read_row(row: ProjectStatus) -> StatusSet | None:
    """Return the statuses in a row; None if another version of the product wrote it."""
    try:
        verdict = VERDICT.validate_python(row.verdict)
        statuses = SERIES_STATUSES.validate_python(row.series)
    except ValidationError as error:
        logger.warning("status_not_read", project=row.pk, faults=error.error_count())
        return None
    return StatusSet(row.at, verdict, {status.key: status for status in statuses}, row.left_out)


def store_statuses(project_id: int, now: datetime) -> StatusSet:
    statuses = judge_statuses(project_id, Selection(), now)
    row = ProjectStatus(
        project_id=project_id,
        at=statuses.at,
        verdict=VERDICT.dump_python(statuses.verdict, mode="json", exclude=FUNCTIONS),
        series=SERIES_STATUSES.dump_python(list(statuses.series.values()), mode="json"),
        left_out=statuses.left_out,
    )
    ProjectStatus.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["project"],
        update_fields=["at", "verdict", "series", "left_out"],
    )
    return statuses


def judge_statuses(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return how the series stand at the end of a selection, with the verdict on them.

    Series of one cause have one onset; those that it touches degrade if none shows it alone.
    """
    judged = _judge(project_id, selection, now)
    verdict = _verdict_on(project_id, judged, selection, now)
    shared, statuses = verdict.onsets, judged.series
    together = {
        key: replace(status, onset=shared.get(key, status.onset)) if status.onset else status
        for key, status in statuses.items()
    }
    if not any(status.onset for status in statuses.values()):
        # A cause may touch series none of which shows it alone.
        question = StatusQuestion(project_id, judged.at, now, selection.version_terms)
        counts = {onset: question.count_since(onset.at) for onset in set(shared.values())}
        together |= {
            key: status.touched_since(onset, counts[onset].get(key, NO_COUNTS))
            for key, onset in shared.items()
            if (status := statuses.get(key)) and status.has_rate
        }
    return replace(judged, verdict=verdict, series=together)


def _judge(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return how the series stand at the end of a selection, without a verdict.

    By their detectors where an evaluator feeds them, else by such that are fed with the past.
    """
    at, terms = selection.end or now, selection.version_terms
    choice = choose_series(project_id, selection.series_terms, at - STATUS_SPAN, at)
    chosen, left_out = (choice.chosen, choice.left_out) if choice else (None, 0)
    if not terms and _are_fed(project_id, min(at, now)):
        detected = detected_at(project_id, selection.end)
    else:
        detected = replay_series(project_id, at, now, terms, chosen)
    statuses = count_statuses(StatusQuestion(project_id, at, now, terms, chosen), detected)
    return StatusSet(at, calm_verdict(0), statuses, left_out)


def _verdict_on(project_id: int, judged: StatusSet, selection: Selection, now: datetime) -> Verdict:
    """Return the verdict on the series that a selection keeps, from since when they degrade."""
    kept = judged.kept_by(selection)
    onsets = {status.key: status.onset for status in kept if status.onset}
    begin, end = selection.window(now)
    ended = [cause.over for cause in kept if cause.over and begin <= cause.over[1] <= end]
    over = max(ended, key=lambda cause: cause[1], default=None)
    return verdict_of(project_id, selection, now, onsets, over)


def verdict_within(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Return the verdict on a selection: on its calls, by how its series stand at its end."""
    stored = _stored_for(project_id, selection, now)
    judged = stored or _judge(project_id, _moment_of(project_id, selection, now), now)
    return _verdict_on(project_id, judged, selection, now)


def _are_fed(project_id: int, at: datetime) -> bool:
    """Whether an evaluator feeds the detectors of a project, and did so until about a time."""
    fed = SeriesDetector.objects.filter(project_id=project_id)
    slots = AlertSlot.objects.filter(project_id=project_id, slot__gte=at - FRESH)
    return fed.filter(at__gte=at - FRESH).exists() or (slots.exists() and fed.exists())


@dataclass(frozen=True, slots=True)
class StatusQuestion:
    """Which series to count (None: all), until when, and under which terms on versions."""

    project_id: int
    at: datetime
    now: datetime
    terms: Sequence[Term] = ()
    series: Sequence[int] | None = None

    def count(self, window: TimeWindow) -> Mapping[SeriesKey, UnitCounts]:
        question = Question(window, SERIES, COUNTED, self.terms, series=self.series)
        rows = sum_rollups(self.project_id, question)
        return {SeriesKey(*row[:PLACES]): _read_units(row[PLACES:]) for row in rows}

    def count_since(self, since: datetime) -> Mapping[SeriesKey, UnitCounts]:
        return self.count(window_for(since, self.at, self.terms, self.now))

    def count_before(self, until: datetime) -> Mapping[SeriesKey, UnitCounts]:
        return self.count(align_to(Grain.HOUR, until, until).before(BASELINE_SPAN))


def count_statuses(
    question: StatusQuestion, detected: Mapping[SeriesKey, DetectedState]
) -> Statuses:
    """Return the statuses of series by what their detectors say, and what was counted of them.

    What has degraded for days is no part of its own baseline, which ends at the onset.
    """
    begin, at = question.at - STATUS_SPAN, question.at
    day = question.count_since(begin)
    before = question.count_before(begin)
    onsets = {key: status.onset.low for key, status in detected.items() if status.onset}
    early = {low: question.count_before(low) for low in set(onsets.values()) if low < begin}
    statuses = {}
    for key in {**day, **before}:
        usual = early.get(onsets[key], before) if key in onsets else before
        counted = day.get(key, NO_COUNTS)
        statuses[key] = status_of(key, at, counted, usual.get(key, NO_COUNTS), detected.get(key))
    return statuses


def _read_units(measures: Sequence[int]) -> UnitCounts:
    """Return runs, and the calls that were told one by one."""
    *_, runs, degraded, _ = count_calls(measures)
    by_run = RunBucket(runs, degraded)
    if counts_runs(measures[ATTEMPTS], runs):
        return UnitCounts(by_run)
    return UnitCounts(by_run, _read_calls(measures))


def judged_ids(project_id: int, statuses: StatusSet) -> Sequence[int] | None:
    """Return the ids of the judged series; None if none was left out."""
    return ids_of(project_id, statuses.series) if statuses.left_out else None


def curves_between(
    project_id: int,
    axis: StatusAxis,
    terms: Sequence[Term],
    now: datetime,
    by_call: Collection[SeriesKey],
    series: Sequence[int] | None,
) -> Mapping[SeriesKey, Sequence[RunBucket]]:
    """Return the recent curves of the runs of series, and of the calls of some."""
    range_arguments = (project_id, axis.since, axis.until, axis.count, terms, now)
    calls = recent_trends(*range_arguments, COUNTING["call"], series) if by_call else {}
    return {
        **recent_trends(*range_arguments, RUNS, series),
        **{key: calls[key] for key in calls if key in by_call},
    }


def _judge_kept(project_id: int, selection: Selection, now: datetime) -> CachedResult[Verdict]:
    key = (project_id, selection.counted.query())
    return _verdicts.get(key, now, lambda at: verdict_within(project_id, selection, at))


def _narrow(project_id: int, statuses: StatusSet, selection: Selection, now: datetime) -> Verdict:
    """Return the verdict on the series that a selection keeps.

    A cause that hits one of them was found among all calls: judged alone, they would lack a
    comparison. Series that no cause explains are judged alone.
    """
    if not selection.series_terms:
        return statuses.verdict
    causes = [
        cause
        for cause in statuses.verdict.causes
        if any(selection.keeps(key._asdict()) for key in cause.touched)
    ]
    if causes:
        return replace(causes[0], others=causes[1:])
    judged = [status for status in statuses.kept_by(selection) if status.is_judged]
    # The verdict of a project excludes local calls.
    environments = [term for term in selection.terms if term.field == "environment"]
    names_local = environments and keeps_all(environments, {"environment": LOCAL})
    if names_local or any(status.since for status in judged):
        return _judge_kept(project_id, selection, now).answer
    return calm_verdict(len({(status.key.provider, status.key.model) for status in judged}))


def _read_calls(measures: Sequence[int]) -> RunBucket:
    calls, failures, *_ = count_calls(measures)
    return RunBucket(calls, min(sum(failures.values()), calls))


COUNTING: Mapping[Unit, Counting] = {"run": RUNS, "call": Counting(COUNTED, _read_calls)}

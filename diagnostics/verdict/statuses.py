"""The status of every series of a project, and the verdict on it, as read everywhere.

The evaluator stores it every minute, so that the first view does not wait and all processes show
the same. Without a worker it is judged on demand.
A status is of a point in time: the range of a page changes the counts, not the status.
A filter finer than a series (a version) has statuses of the calls that it keeps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import models
from django.db.models import Q
from pydantic import TypeAdapter, ValidationError

from diagnostics.accounts.models import Project
from diagnostics.analysis.series import RunCounts, RunCurve, SeriesKey, StatusAxis, axis_of
from diagnostics.analysis.statistics import LEAST_TRIALS
from diagnostics.analysis.status import STATUS_SPAN, SeriesOnset, SeriesStatus, Unit, status_of
from diagnostics.queries.busiest import choose_series, ids_of, is_large
from diagnostics.queries.events import BASELINE_SPAN, series_rows, window_for, window_of
from diagnostics.queries.kept_answers import CachedResult, ResultCache
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.queries.trends import RUNS, Counting, recent_trends, trends
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import Selection, keeps_all
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import Grain, RunBucket, TimeWindow, align_to
from diagnostics.verdict.cells import COUNTED, LOCAL, count_calls
from diagnostics.verdict.verdicts import Verdict, calm_verdict, verdict_of

logger = structlog.get_logger(__name__)
Statuses = Mapping[SeriesKey, SeriesStatus]
NOTHING = RunBucket(0, 0)
FRESH = timedelta(minutes=3)
"""How long a stored row is used: two evaluations may fail or be late."""
STATUSES = "statuses"
"""The part of a project's turn that stores them."""
VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)
SERIES_STATUSES: TypeAdapter[list[SeriesStatus]] = TypeAdapter(list[SeriesStatus])


_OF_FINDING = {"finding": {"touches", "suspects"}}
FUNCTIONS: Any = {**_OF_FINDING, "others": {"__all__": _OF_FINDING}}
"""Inputs of the judgement that are not stored."""


class ProjectStatus(models.Model):
    """The verdict of a project and the status of each series, as of the last evaluation."""

    project = models.OneToOneField(
        Project, models.CASCADE, primary_key=True, related_name="+", serialize=False
    )
    at = models.DateTimeField()
    verdict = models.JSONField()
    series = models.JSONField()
    # Series with calls that are not among the judged ones of a large project.
    left_out = models.IntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}"


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
        known = self.series.get(key)
        return known or status_of(key, self.at, RunCurve(self.at, STATUS_SPAN, ()), NOTHING)

    def kept_by(
        self, selection: Selection, counted: Iterable[SeriesKey] = ()
    ) -> list[SeriesStatus]:
        """Return the statuses of the series that a selection keeps, worst first.

        Series in `counted` are included even without a known last day.
        """
        keys = dict.fromkeys((*self.series, *counted))
        statuses = (self.status(key) for key in keys if selection.keeps(key._asdict()))
        return sorted(statuses, key=lambda status: status.rank)


_sets: ResultCache[StatusSet] = ResultCache()
_verdicts: ResultCache[Verdict] = ResultCache()


def read_statuses(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return the statuses of series at the end of a selection, filtered by its versions only.

    Stored statuses are returned as they are. Those judged here are at most
    FAILSOFT_VERDICT_SECONDS old, or a little more while a refresh runs beside the request.
    """
    terms = selection.version_terms
    end = selection.end if selection.end and selection.end < now else None
    stored = None if terms or end else stored_statuses(project_id, now)
    if stored and not (stored.left_out and selection.series_terms):
        return stored
    if selection.series_terms and is_large(project_id):
        # What is asked for may be among those that are left out.
        terms = selection.rollup_terms
    begin = end and end - STATUS_SPAN
    normalised = Selection(text=Query(terms), begin=begin, end=end)
    key = (project_id, normalised.query())
    return _sets.get(key, now, lambda at: judge_statuses(project_id, normalised, at)).answer


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


def recent_verdict_of(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Return the recent verdict of a selection over its whole range.

    Conditions that rollups cannot express do not change the verdict.
    """
    if selection.is_custom or selection.span > STATUS_SPAN:
        return _judge_kept(project_id, selection, now).answer
    return read_status(project_id, selection, now).verdict


def recent_verdict_within(
    project_id: int, selection: Selection, part: Selection, now: datetime
) -> Verdict:
    """Return the verdict of the incident that hits a part of a selection, else of that part.

    A part alone has no other calls to compare with.
    """
    verdict = recent_verdict_of(project_id, selection, now)
    for cause in (verdict, *verdict.others):
        if cause.since and any(part.keeps(key._asdict()) for key in cause.touched):
            return cause
    return recent_verdict_of(project_id, part, now)


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
    """Judge a project and store the result; a later one replaces it."""
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
    """Judge the series at the end of a selection; the number of statements is bounded.

    All of them, but of a large project the busiest and the worst ones.
    """
    verdict, at = verdict_of(project_id, selection, now), selection.end or now
    choice = choose_series(project_id, selection.series_terms, at - STATUS_SPAN, at)
    chosen, left_out = (choice.chosen, choice.left_out) if choice else (None, 0)
    statuses = judge_series(project_id, selection, now, chosen, onsets_of(verdict))
    return StatusSet(at, verdict, statuses, left_out)


def judge_series(
    project_id: int,
    selection: Selection,
    now: datetime,
    series: Sequence[int] | None,
    onsets: Mapping[SeriesKey, SeriesOnset],
) -> Statuses:
    """Judge series by their ids (None: all) at the end of a selection."""
    at = selection.end or now
    # A curve that ends now is aligned to buckets, so that it does not shift.
    axis = StatusAxis(at - STATUS_SPAN, STATUS_SPAN) if at < now else axis_of(at - STATUS_SPAN, at)
    question = StatusQuestion(project_id, at, axis, selection.version_terms, onsets, series)
    by_run, by_call = (_judge_counted(question, unit) for unit in COUNTING)
    judged = (_worse(by_run[key], by_call[key]) for key in by_run if key in by_call)
    return {status.key: status for status in judged if status}


def _worse(by_run: SeriesStatus, by_call: SeriesStatus) -> SeriesStatus | None:
    """Return the status of a series by its runs, or by its calls if those stand worse.

    A run that a fallback rescues ends at another model: it hides the failing calls of the
    first. Without a baseline, calls whose runs end well are not worse: some models always
    need a retry. A series that ends no run has its calls only.
    """
    has_runs = by_run.runs or by_run.baseline_runs
    if not (has_runs or by_call.runs):
        return None
    has_baseline = by_call.baseline_runs >= LEAST_TRIALS
    is_worse = by_call.is_judged and has_baseline and by_call.rank[0] < by_run.rank[0]
    status, other = (by_call, by_run) if is_worse or not has_runs else (by_run, by_call)
    return replace(status, other_baseline=other.baseline_in(other.unit))


@dataclass(frozen=True, slots=True)
class StatusQuestion:
    """What to judge: the end, the axis, the known onsets and the ids of the series."""

    project_id: int
    at: datetime
    axis: StatusAxis
    terms: Sequence[Term]
    onsets: Mapping[SeriesKey, SeriesOnset]
    series: Sequence[int] | None


def _judge_counted(question: StatusQuestion, unit: Unit) -> dict[SeriesKey, SeriesStatus]:
    """Return the status of every series, judged by its runs or by its calls.

    A degradation of days is not part of its own baseline, which ends at the onset.
    """
    axis, count = question.axis, COUNTING[unit]
    stretch = axis.since, axis.until, axis.count
    curves = trends(question.project_id, *stretch, question.terms, count, question.series)
    before = _week_before(question, axis.since, count)
    early = {
        onset: (_week_before(question, onset.at, count), _count_since(question, onset.at, count))
        for onset in set(question.onsets.values())
        if onset.at < axis.since
    }
    statuses = {}
    for key in {**curves, **before}:
        onset = question.onsets.get(key)
        baseline, since = early.get(onset, (before, {})) if onset else (before, {})
        curve = RunCurve(axis.since, axis.width, curves.get(key, ()))
        statuses[key] = status_of(
            key, question.at, curve, baseline.get(key, NOTHING), onset, since.get(key), unit
        )
    return statuses


def judge_others(
    project_id: int, selection: Selection, now: datetime, judged: StatusSet, ids: Sequence[int]
) -> StatusSet:
    """Judge some of the series that were left out, beside those that were not."""
    at = judged.at if selection.end is None or selection.end > now else selection.end
    moment = Selection(text=Query(selection.version_terms), begin=at - STATUS_SPAN, end=at)
    statuses = judge_series(project_id, moment, now, ids, onsets_of(judged.verdict))
    return replace(judged, series=statuses)


def judged_ids(project_id: int, statuses: StatusSet) -> Sequence[int] | None:
    """Return the ids of the judged series; None if none was left out."""
    return ids_of(project_id, statuses.series) if statuses.left_out else None


def counts_between(
    project_id: int, selection: Selection, now: datetime, series: Sequence[int] | None
) -> dict[SeriesKey, RunCounts]:
    """Return the counts of each series in the range of a selection."""
    window, terms = window_of(selection, now), selection.rollup_terms
    return {row.key: row.counts for row in series_rows(project_id, window, terms, series)}


def curves_between(
    project_id: int,
    axis: StatusAxis,
    terms: Sequence[Term],
    now: datetime,
    statuses: StatusSet,
    series: Sequence[int] | None,
) -> Mapping[SeriesKey, Sequence[RunBucket]]:
    """Return the recent curves of series, in the unit of each status."""
    range_arguments = (project_id, axis.since, axis.until, axis.count, terms, now)
    by_call = {key for key, status in statuses.series.items() if status.unit == "call"}
    calls = recent_trends(*range_arguments, COUNTING["call"], series) if by_call else {}
    return {
        **recent_trends(*range_arguments, RUNS, series),
        **{key: calls[key] for key in by_call & calls.keys()},
    }


def onsets_of(verdict: Verdict) -> Mapping[SeriesKey, SeriesOnset]:
    """Return the onset of the incident that touches each series."""
    onsets: dict[SeriesKey, SeriesOnset] = {}
    for cause in reversed((verdict, *verdict.others)):
        if since := cause.since:
            onset = SeriesOnset(since, cause.since_low or since, cause.since_high or since)
            onsets |= dict.fromkeys(cause.touched, onset)
    return onsets


def _judge_kept(project_id: int, selection: Selection, now: datetime) -> CachedResult[Verdict]:
    key = (project_id, selection.counted.query())
    return _verdicts.get(key, now, lambda at: verdict_of(project_id, selection, at))


def _narrow(project_id: int, statuses: StatusSet, selection: Selection, now: datetime) -> Verdict:
    """Return the verdict on the series that a selection keeps.

    A cause that hits one of them was found among all calls: judged alone, they would lack a
    comparison. Series that no cause explains are judged alone.
    """
    if not selection.series_terms:
        return statuses.verdict
    causes = [
        cause
        for cause in (statuses.verdict, *statuses.verdict.others)
        if cause.since and any(selection.keeps(key._asdict()) for key in cause.touched)
    ]
    if causes:
        return replace(causes[0], others=causes[1:])
    judged = [status for status in statuses.kept_by(selection) if status.is_judged]
    if _names_local(selection) or any(status.since for status in judged):
        return _judge_kept(project_id, selection, now).answer
    return calm_verdict(len({(status.key.provider, status.key.model) for status in judged}))


def _names_local(selection: Selection) -> bool:
    """Whether a selection names local calls, which the verdict of a project excludes."""
    terms = [term for term in selection.terms if term.field == "environment"]
    return bool(terms) and keeps_all(terms, {"environment": LOCAL})


def _week_before(
    question: StatusQuestion, until: datetime, counting: Counting
) -> Mapping[SeriesKey, RunBucket]:
    window = align_to(Grain.HOUR, until, until).before(BASELINE_SPAN)
    return _sum(question.project_id, window, question.terms, counting, question.series)


def _count_since(
    question: StatusQuestion, since: datetime, counting: Counting
) -> Mapping[SeriesKey, RunBucket]:
    window = window_for(since, question.at, question.terms, question.at)
    return _sum(question.project_id, window, question.terms, counting, question.series)


def _sum(
    project_id: int,
    window: TimeWindow,
    terms: Sequence[Term],
    counting: Counting,
    series: Sequence[int] | None,
) -> Mapping[SeriesKey, RunBucket]:
    """Return the counts of series in a window."""
    question = Question(window, SERIES, counting.measures, terms, series=series)
    rows = sum_rollups(project_id, question)
    return {SeriesKey(*row[: len(SERIES)]): counting.read(row[len(SERIES) :]) for row in rows}


def _read_calls(measures: Sequence[int]) -> RunBucket:
    calls, failures, _, _ = count_calls(measures)
    return RunBucket(calls, min(sum(failures.values()), calls))


COUNTING: Mapping[Unit, Counting] = {"run": RUNS, "call": Counting(COUNTED, _read_calls)}

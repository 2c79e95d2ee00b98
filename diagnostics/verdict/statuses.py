"""How every series of a project stands, with the verdict that says why: read by all places.

The evaluator stores it every minute, so that the first look waits for nothing and all processes
show one value. Where no worker runs, whoever asks judges.
A status is of a moment: the range of a page changes what it counts, not how a series stands.
A filter finer than a series (a version) makes statuses of the calls that it keeps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import models
from pydantic import TypeAdapter, ValidationError

from diagnostics.accounts.models import Project
from diagnostics.analysis.series import RunCounts, RunCurve, SeriesKey, StatusAxis, axis_of
from diagnostics.analysis.status import STATUS_SPAN, SeriesOnset, SeriesStatus, Unit, status_of
from diagnostics.queries.events import BASELINE_SPAN, series_rows, window_for, window_of
from diagnostics.queries.kept_answers import CachedAnswer, KeptAnswers
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
"""A stored row is read for so long: two evaluations may fail or be late."""
VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)
SERIES_STATUSES: TypeAdapter[list[SeriesStatus]] = TypeAdapter(list[SeriesStatus])


_OF_FINDING = {"finding": {"touches", "suspects"}}
FUNCTIONS: Any = {**_OF_FINDING, "others": {"__all__": _OF_FINDING}}
"""What a verdict is judged by; nobody asks it afterwards."""


class ProjectStatus(models.Model):
    """The verdict of a project and the status of each series, as of the last evaluation."""

    project = models.OneToOneField(
        Project, models.CASCADE, primary_key=True, related_name="+", serialize=False
    )
    at = models.DateTimeField()
    verdict = models.JSONField()
    series = models.JSONField()

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}"


@dataclass(frozen=True, slots=True)
class StatusSet:
    """The verdict and the status of every series at one moment."""

    at: datetime
    verdict: Verdict
    series: Statuses

    def status(self, key: SeriesKey) -> SeriesStatus:
        """Return how a series stands; one that is not known has no data."""
        known = self.series.get(key)
        return known or status_of(key, self.at, RunCurve(self.at, STATUS_SPAN, ()), NOTHING)

    def kept_by(
        self, selection: Selection, counted: Iterable[SeriesKey] = ()
    ) -> list[SeriesStatus]:
        """Return the statuses of the series that a selection keeps, worst first.

        Those that it counted are among them, also where nothing is known of their last day.
        """
        keys = dict.fromkeys((*self.series, *counted))
        kept = (self.status(key) for key in keys if selection.keeps(key._asdict()))
        return sorted(kept, key=lambda one: one.rank)


_sets: KeptAnswers[StatusSet] = KeptAnswers()
_verdicts: KeptAnswers[Verdict] = KeptAnswers()


def read_statuses(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return how series stand at the end of a selection, under its versions only.

    What the evaluator stored is returned as it is. What is judged here is
    FAILSOFT_VERDICT_SECONDS old, or a little more while it is judged anew beside the request.
    """
    versions = selection.version_terms
    end = selection.end if selection.end and selection.end < now else None
    if not versions and end is None and (stored := stored_statuses(project_id, now)):
        return stored
    begin = end and end - STATUS_SPAN
    asked = Selection(text=Query(tuple(versions)), begin=begin, end=end)
    key = (project_id, asked.query())
    return _sets.get(key, now, lambda at: judge_statuses(project_id, asked, at)).answer


def read_status(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return the same with the verdict on the series that a selection keeps.

    Only times that were asked for are judged themselves: the verdict, like a status, is of a
    moment, whatever range a page counts.
    """
    found = read_statuses(project_id, selection, now)
    if selection.is_custom:
        at, verdict = _judge_kept(project_id, selection, now)
        return replace(found, at=at, verdict=verdict)
    return replace(found, verdict=_narrow(project_id, found, selection, now))


def recent_verdict_of(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Return the verdict of a selection as it was a moment ago: of its whole range.

    Conditions that no count can meet make no other verdict.
    """
    if selection.is_custom or selection.span > STATUS_SPAN:
        return _judge_kept(project_id, selection, now).answer
    return read_status(project_id, selection, now).verdict


def recent_verdict_within(
    project_id: int, selection: Selection, part: Selection, now: datetime
) -> Verdict:
    """Return the verdict of the incident that hits a part of a selection, else of that part.

    By itself a part has nothing that it could be compared with.
    """
    whole = recent_verdict_of(project_id, selection, now)
    for one in (whole, *whole.others):
        if one.since and any(part.keeps(who._asdict()) for who in one.touched):
            return one
    return recent_verdict_of(project_id, part, now)


def stored_statuses(project_id: int, at: datetime) -> StatusSet | None:
    """Return what the evaluator stored, if it is of about this time.

    The first events of a project are judged by whoever asks: it costs little, and nobody
    waits a minute for them.
    """
    row = ProjectStatus.objects.filter(pk=project_id, at__range=(at - FRESH, at + FRESH)).first()
    found = row and read_row(row)
    return found if found and found.verdict.state != "not_enough_data" else None


def read_row(row: ProjectStatus) -> StatusSet | None:
    """Return what a row holds; None where another version of the product wrote it."""
    try:
        verdict = VERDICT.validate_python(row.verdict)
        statuses = SERIES_STATUSES.validate_python(row.series)
    except ValidationError as error:
        logger.warning("status_not_read", project=row.pk, faults=error.error_count())
        return None
    return StatusSet(row.at, verdict, {one.key: one for one in statuses})


def store_statuses(project_id: int, now: datetime) -> StatusSet:
    """Judge a project and keep the result; done twice, the later one stays."""
    found = judge_statuses(project_id, Selection(), now)
    row = ProjectStatus(
        project_id=project_id,
        at=found.at,
        verdict=VERDICT.dump_python(found.verdict, mode="json", exclude=FUNCTIONS),
        series=SERIES_STATUSES.dump_python(list(found.series.values()), mode="json"),
    )
    ProjectStatus.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["project"],
        update_fields=["at", "verdict", "series"],
    )
    return found


def judge_statuses(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Judge every series at the end of a selection; the number of statements is bounded."""
    verdict = verdict_of(project_id, selection, now)
    at = selection.end or now
    # A curve that ends now ends on a whole bucket, so that it does not slide.
    axis = StatusAxis(at - STATUS_SPAN, STATUS_SPAN) if at < now else axis_of(at - STATUS_SPAN, at)
    asked = StatusQuestion(project_id, at, axis, selection.version_terms, onsets_of(verdict))
    statuses = _judge_counted(asked, "run")
    known = {key: one for key, one in statuses.items() if one.runs or one.baseline_runs}
    if len(known) < len(statuses):
        by_call = _judge_counted(asked, "call").items()
        known |= {key: one for key, one in by_call if key not in known and one.runs}
    return StatusSet(at, verdict, known)


@dataclass(frozen=True, slots=True)
class StatusQuestion:
    """The series that are judged: up to which moment, on which axis, with which onsets."""

    project_id: int
    at: datetime
    axis: StatusAxis
    terms: Sequence[Term]
    onsets: Mapping[SeriesKey, SeriesOnset]


def _judge_counted(asked: StatusQuestion, unit: Unit) -> dict[SeriesKey, SeriesStatus]:
    """Judge every series by its runs or by its calls.

    A trouble of days is no part of its own baseline: that ends where the trouble began.
    """
    axis, count = asked.axis, COUNTING[unit]
    curves = trends(asked.project_id, axis.since, axis.until, axis.count, asked.terms, count)
    before = _week_before(asked, axis.since, count)
    early = {
        onset: (_week_before(asked, onset.at, count), _count_since(asked, onset.at, count))
        for onset in set(asked.onsets.values())
        if onset.at < axis.since
    }
    found = {}
    for key in {**curves, **before}:
        onset = asked.onsets.get(key)
        usual, since = early.get(onset, (before, {})) if onset else (before, {})
        curve = RunCurve(axis.since, axis.width, curves.get(key, ()))
        found[key] = status_of(
            key, asked.at, curve, usual.get(key, NOTHING), onset, since.get(key), unit
        )
    return found


def counts_between(
    project_id: int, selection: Selection, now: datetime, statuses: StatusSet
) -> dict[SeriesKey, RunCounts]:
    """Count what the range of a selection holds of each series, in the unit of its status."""
    window, terms = window_of(selection, now), selection.rollup_terms
    counts = {row.key: row.counts for row in series_rows(project_id, window, terms)}
    by_call = {key for key, one in statuses.series.items() if one.unit == "call"}
    if by_call:
        calls = _sum(project_id, window, terms, COUNTING["call"])
        counts |= {
            key: RunCounts(one.runs, one.degraded)
            for key, one in calls.items()
            if key in by_call and one.runs
        }
    return counts


def curves_between(
    project_id: int, axis: StatusAxis, terms: Sequence[Term], now: datetime, statuses: StatusSet
) -> Mapping[SeriesKey, Sequence[RunBucket]]:
    """Return the curves of series as they were a moment ago, in the unit of each status."""
    asked = (project_id, axis.since, axis.until, axis.count, terms, now)
    by_call = {key for key, one in statuses.series.items() if one.unit == "call"}
    calls = recent_trends(*asked, COUNTING["call"]) if by_call else {}
    return {**recent_trends(*asked), **{key: calls[key] for key in by_call & calls.keys()}}


def onsets_of(verdict: Verdict) -> Mapping[SeriesKey, SeriesOnset]:
    """Return the onset of the incident that touches each series."""
    found: dict[SeriesKey, SeriesOnset] = {}
    for one in reversed((verdict, *verdict.others)):
        if since := one.since:
            onset = SeriesOnset(since, one.since_low or since, one.since_high or since)
            found |= dict.fromkeys(one.touched, onset)
    return found


def _judge_kept(project_id: int, selection: Selection, now: datetime) -> CachedAnswer[Verdict]:
    key = (project_id, selection.counted.query())
    return _verdicts.get(key, now, lambda at: verdict_of(project_id, selection, at))


def _narrow(project_id: int, found: StatusSet, selection: Selection, now: datetime) -> Verdict:
    """Return what a verdict says of the series that a selection keeps.

    A cause that hits one of them was found among all calls: judged alone, it would have
    nothing to be compared with. What no cause of the verdict explains is judged alone.
    """
    if not selection.series_terms:
        return found.verdict
    causes = [
        one
        for one in (found.verdict, *found.verdict.others)
        if one.since and any(selection.keeps(key._asdict()) for key in one.touched)
    ]
    if causes:
        return replace(causes[0], others=causes[1:])
    kept = [one for one in found.kept_by(selection) if one.is_judged]
    if _names_local(selection) or any(one.since for one in kept):
        return _judge_kept(project_id, selection, now).answer
    return calm_verdict(len({(one.key.provider, one.key.model) for one in kept}))


def _names_local(selection: Selection) -> bool:
    """Whether a selection asks for local calls, which the verdict of a project leaves out."""
    terms = [term for term in selection.terms if term.field == "environment"]
    return bool(terms) and keeps_all(terms, {"environment": LOCAL})


def _week_before(
    asked: StatusQuestion, until: datetime, counting: Counting
) -> Mapping[SeriesKey, RunBucket]:
    window = align_to(Grain.HOUR, until, until).before(BASELINE_SPAN)
    return _sum(asked.project_id, window, asked.terms, counting)


def _count_since(
    asked: StatusQuestion, since: datetime, counting: Counting
) -> Mapping[SeriesKey, RunBucket]:
    window = window_for(since, asked.at, asked.terms, asked.at)
    return _sum(asked.project_id, window, asked.terms, counting)


def _sum(
    project_id: int, window: TimeWindow, terms: Sequence[Term], counting: Counting
) -> Mapping[SeriesKey, RunBucket]:
    """Count every series in a window."""
    rows = sum_rollups(project_id, Question(window, SERIES, counting.measures, terms))
    return {SeriesKey(*row[: len(SERIES)]): counting.read(row[len(SERIES) :]) for row in rows}


def _read_calls(measures: Sequence[int]) -> RunBucket:
    calls, failures, _, _ = count_calls(measures)
    return RunBucket(calls, min(sum(failures.values()), calls))


COUNTING: Mapping[Unit, Counting] = {"run": RUNS, "call": Counting(COUNTED, _read_calls)}

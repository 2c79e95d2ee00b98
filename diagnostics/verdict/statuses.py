"""How every series of a project stands, with the verdict that says why: read by all places.

A status is of a moment: the range of a page changes what it counts, not how a series stands.
A filter finer than a series (a version) makes statuses of the calls that it keeps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from diagnostics.analysis.series import RunCurve, SeriesKey, StatusAxis, axis_of
from diagnostics.analysis.status import STATUS_SPAN, SeriesOnset, SeriesStatus, status_of
from diagnostics.queries.events import BASELINE_COUNTED, BASELINE_SPAN
from diagnostics.queries.kept_answers import CachedAnswer, KeptAnswers
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.queries.trends import trends
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import Selection
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import Grain, RunBucket, align_to
from diagnostics.verdict.verdicts import Verdict, verdict_of

Statuses = Mapping[SeriesKey, SeriesStatus]
NOTHING = RunBucket(0, 0)


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

    It is FAILSOFT_VERDICT_SECONDS old, or a little more while it is judged anew beside the
    request.
    """
    versions = selection.version_terms
    asked = _at_moment(selection, versions)
    key = (project_id, asked.query())
    return _sets.get(key, now, lambda at: judge_statuses(project_id, asked, at)).answer


def read_status(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Return the same with the verdict of the selection: of its whole range, and its filters."""
    found = read_statuses(project_id, selection, now)
    if _is_of_all(selection):
        return found
    at, verdict = _judge_kept(project_id, selection, now)
    return replace(found, at=at, verdict=verdict)


def recent_verdict_of(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Return the verdict of a selection as it was a moment ago.

    Conditions that no count can meet make no other verdict.
    """
    if _is_of_all(selection):
        return read_statuses(project_id, selection, now).verdict
    return _judge_kept(project_id, selection, now).answer


def judge_statuses(project_id: int, selection: Selection, now: datetime) -> StatusSet:
    """Judge every series at the end of a selection; the number of statements is bounded."""
    verdict = verdict_of(project_id, selection, now)
    at = selection.end or now
    # A curve that ends now ends on a whole bucket, so that it does not slide.
    axis = StatusAxis(at - STATUS_SPAN, STATUS_SPAN) if at < now else axis_of(at - STATUS_SPAN, at)
    terms = selection.version_terms
    curves = trends(project_id, axis.since, axis.until, axis.count, terms)
    before = _baselines(project_id, axis.since, terms)
    onsets = onsets_of(verdict)
    statuses = {
        key: status_of(
            key,
            at,
            RunCurve(axis.since, axis.width, curves.get(key, ())),
            before.get(key, NOTHING),
            onsets.get(key),
        )
        for key in {**curves, **before}
    }
    known = {key: one for key, one in statuses.items() if one.runs or one.baseline_runs}
    return StatusSet(at, verdict, known)


def onsets_of(verdict: Verdict) -> Mapping[SeriesKey, SeriesOnset]:
    """Return the onset of the incident that touches each series."""
    since, low, high = verdict.since, verdict.since_low, verdict.since_high
    if since is None:
        return {}
    return dict.fromkeys(verdict.touched, SeriesOnset(since, low or since, high or since))


def _judge_kept(project_id: int, selection: Selection, now: datetime) -> CachedAnswer[Verdict]:
    key = (project_id, selection.counted.query())
    return _verdicts.get(key, now, lambda at: verdict_of(project_id, selection, at))


def _is_of_all(selection: Selection) -> bool:
    """Whether the verdict of a selection is the one of the project at this moment."""
    return not (selection.rollup_terms or selection.is_custom or selection.span > STATUS_SPAN)


def _at_moment(selection: Selection, versions: Sequence[Term]) -> Selection:
    begin = selection.end and selection.end - STATUS_SPAN
    return Selection(text=Query(tuple(versions)), begin=begin, end=selection.end)


def _baselines(
    project_id: int, until: datetime, terms: Sequence[Term]
) -> Mapping[SeriesKey, RunBucket]:
    """Count the runs of every series in the week before a time."""
    window = align_to(Grain.HOUR, until, until).before(BASELINE_SPAN)
    rows = sum_rollups(project_id, Question(window, SERIES, BASELINE_COUNTED, terms))
    return {SeriesKey(*row[: len(SERIES)]): RunBucket(*row[len(SERIES) :]) for row in rows}

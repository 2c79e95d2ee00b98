"""The detector of every series: fed once a minute, it says how the series stands, for all.

Of a large project the busiest and the worst series have one. Detectors begin with 14 days of
counts, so many a minute; what an earlier release's detector fired for fires on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID

from django.db import models, transaction
from django.db.models import Max

from diagnostics.accounts.models import Project
from diagnostics.alerting.change_slices import feed_slices, read_evaluation, read_fires
from diagnostics.alerting.counts import (
    MINUTE,
    MINUTES_REACH,
    KnownSeries,
    known_series,
    read_counts,
    try_lock_alerts,
)
from diagnostics.alerting.evaluation import DetectorEvaluation, describe
from diagnostics.alerting.past import HOUR, past_windows, read_past, replay_past
from diagnostics.alerting.rule_rows import rules_of
from diagnostics.alerting.rules import SERIES_RULE, RuleDefinition
from diagnostics.alerting.saved_states import Key, SavedState, SliceEvaluation, read_kept
from diagnostics.alerting.signals import FIRST_ATTEMPTS, slice_key
from diagnostics.alerting.states import DetectorSignal, time_of
from diagnostics.analysis.detectors.change import Fire
from diagnostics.analysis.series import SeriesKey
from diagnostics.analysis.status import DetectedState, SeriesOnset
from diagnostics.queries.busiest import choose_series
from diagnostics.selection.query_language import Query, Term, write_query
from diagnostics.store.models import Series
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import MINUTES_KEPT, WIDTHS, Grain, RunBucket, ceil, floor

DAY = WIDTHS[Grain.DAY]
NO_KEY = UUID(int=0)
MOST_PRIMED = 50
"""Detectors that begin in one minute, in a fraction of the time that a turn has."""


class SeriesDetector(models.Model):
    """The detector of a series: what it remembers, and its latest alarms."""

    series = models.OneToOneField(
        Series, models.CASCADE, primary_key=True, related_name="+", serialize=False
    )
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    # The latest minute that it was fed with.
    at = models.DateTimeField()
    detector_state = models.JSONField(default=dict)
    memory = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}"


@transaction.atomic
def judge_series(project_id: int, slot: datetime) -> None:
    """Feed the detectors of a project with a minute, unless they were or somebody does."""
    rows = SeriesDetector.objects.filter(project_id=project_id)
    last = rows.aggregate(last=Max("at"))["last"]
    if (last is not None and last >= slot) or not try_lock_alerts(project_id):
        return
    columns = ("series_id", "at", "detector_state", "memory")
    kept = {
        pk: SavedState(0, NO_KEY, at, SERIES_RULE.version, pk, "", state, memory)
        for pk, at, state, memory in rows.values_list(*columns)
    }
    seen = _series_evaluations(project_id, slot, kept)
    changed = [evaluation for evaluation in seen if evaluation.detector_state is not None]
    SeriesDetector.objects.bulk_create(
        [
            SeriesDetector(
                series_id=evaluation.series[0],
                project_id=project_id,
                at=slot,
                detector_state=evaluation.detector_state,
                memory=evaluation.row.memory if evaluation.memory is None else evaluation.memory,
            )
            for evaluation in changed
        ],
        update_conflicts=True,
        unique_fields=["series"],
        update_fields=["at", "detector_state", "memory"],
    )


def _series_evaluations(
    project_id: int, slot: datetime, kept: Mapping[int, SavedState]
) -> list[SliceEvaluation]:
    """Return what the detectors say at a minute: of series with news, and of those without one."""
    series = _judged_series(project_id, slot)
    counted = read_counts(project_id, slot, FIRST_ATTEMPTS.columns, ())
    active = [row for row in series if row.id in counted.live or row.id not in kept]
    seen = [_evaluation_of(row, kept.get(row.id), slot) for row in active]
    alarms = _alarms_of(project_id)
    feed_slices(project_id, slot, seen, counted, kept.values(), len(series), alarms, MOST_PRIMED)
    return seen


def _judged_series(project_id: int, slot: datetime) -> list[KnownSeries]:
    """Return the series that have a detector: all, but of a large project those chosen."""
    series = known_series(project_id)
    choice = choose_series(project_id, (), slot - DAY, slot + MINUTE)
    chosen = set(choice.chosen) if choice else set()
    return [row for row in series if row.id in chosen] if choice else series


def _evaluation_of(series: KnownSeries, row: SavedState | None, slot: datetime) -> SliceEvaluation:
    key = slice_key(series.values)
    row = replace(row, key=key) if row else SavedState(0, key, slot, SERIES_RULE.version)
    return SliceEvaluation(SERIES_RULE, series.values, row, slot.timestamp(), series=[series.id])


def _alarms_of(project_id: int) -> dict[Key, SavedState]:
    """Return the rows of the alarms for changes of series, by the keys of series."""
    alarms = {rule.id for rule in rules_of(project_id) if rule.is_of_series}
    kept = read_kept(project_id).items()
    return {(0, key): row for (rule_id, key), row in kept if rule_id in alarms}


def results_of(project_id: int, slot: datetime) -> dict[int, DetectorEvaluation]:
    """Return what the detectors of series said at a minute, by the ids of series.

    One that was fed with later minutes says whether an alarm of it lasted then.
    """
    rows = SeriesDetector.objects.filter(project_id=project_id)
    columns = ("pk", "at", "detector_state__look", "detector_state__fires")
    return {
        pk: _evaluation_at(read_evaluation(result), read_fires(fires), slot)
        if at > slot
        else read_evaluation(result)
        for pk, at, result, fires in rows.values_list(*columns)
    }


def _evaluation_at(
    result: DetectorEvaluation, fires: Sequence[Fire], slot: datetime
) -> DetectorEvaluation:
    fire = _lasting(fires, slot.timestamp())
    signal = DetectorSignal.FIRES if fire else DetectorSignal.CLEARS
    is_usual = any(fire.is_usual for fire in fires[-1:])
    return replace(result, said=signal, onset=fire.onset.at if fire else None, is_usual=is_usual)


def _lasting(fires: Sequence[Fire], at: float) -> Fire | None:
    """Return the alarm that lasted at a time."""
    begun = (fire for fire in fires if fire.at <= at)
    return next((fire for fire in begun if fire.cleared is None or fire.cleared > at), None)


def detected_at(project_id: int, at: datetime | None = None) -> dict[SeriesKey, DetectedState]:
    """Return what the detectors of series say (None: now), or knew of a time in the past."""
    rows = SeriesDetector.objects.filter(project_id=project_id)
    names = [f"series__{name}" for name in SERIES]
    kept = [f"detector_state__{name}" for name in ("look", "fires", "anew_since")]
    return {
        SeriesKey(*key): _detected(read_evaluation(result), read_fires(fires), anew, at)
        for *key, result, fires, anew in rows.values_list(*names, *kept)
    }


def _detected(
    result: DetectorEvaluation,
    fires: Sequence[Fire],
    anew_since: float | None = None,
    at: datetime | None = None,
) -> DetectedState:
    anew = None if anew_since is None else time_of(anew_since)
    cleared = (fire for fire in fires if fire.cleared and not fire.is_usual)
    ended = [fire for fire in cleared if at is None or time_of(fire.cleared or 0.0) <= at]
    over = (time_of(ended[-1].onset.at), time_of(ended[-1].cleared or 0.0)) if ended else None
    if at is not None:
        then = _lasting(fires, at.timestamp())
        return DetectedState(_onset_of(then), anew_since=anew, over=over)
    fire = fires[-1] if result.said is DetectorSignal.FIRES else None
    counted = RunBucket(result.n, result.k)
    return DetectedState(_onset_of(fire), counted, result.is_watched, anew, over=over)


def _onset_of(fire: Fire | None) -> SeriesOnset | None:
    return SeriesOnset(*map(time_of, fire.onset)) if fire else None


def replay_series(
    project_id: int,
    at: datetime,
    now: datetime,
    terms: Sequence[Term] = (),
    ids: Sequence[int] | None = None,
) -> dict[SeriesKey, DetectedState]:
    """Return what detectors of series (None: all) say at a time, fed with 14 days before it.

    By the minute for the last hours while minutes are kept; of the calls that terms on versions
    keep, by the hour.
    """
    query = {"filter": urlencode({"q": write_query(Query(tuple(terms)))})} if terms else {}
    rule = RuleDefinition(**{**dict(SERIES_RULE), **query})
    until = floor(at, MINUTE) + MINUTE
    is_kept = not terms and until - MINUTES_REACH - HOUR > now - MINUTES_KEPT
    middle = floor(until - MINUTES_REACH, HOUR) if is_kept else ceil(until, HOUR)
    pasts = read_past(project_id, rule, past_windows(middle, until), ids)
    replayed = replay_past(pasts, len(pasts)).items()
    return {
        SeriesKey(**pasts[key].values): _detected(describe(detector), detector.fires)
        for key, detector in replayed
    }

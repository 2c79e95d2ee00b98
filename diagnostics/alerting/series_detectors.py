"""The detectors `change`, of series and of the slices of rules.

That of a series is fed once a minute and says how it stands, for all. Of a large project the
busiest and the worst series have one. Detectors begin with 14 days of counts, so many a minute;
what an earlier release's detector fired for fires on.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db import models, transaction
from django.db.models import Max

from diagnostics.accounts.models import Project
from diagnostics.alerting.counts import (
    MINUTE,
    MINUTES_REACH,
    KnownSeries,
    SeriesCounts,
    known_series,
    read_counts,
    try_lock_alerts,
)
from diagnostics.alerting.past import HOUR, past_windows, prime, read_past, replay_past
from diagnostics.alerting.rules import SERIES_RULE, RuleDefinition
from diagnostics.alerting.saved_states import (
    Key,
    SavedState,
    SliceEvaluation,
    read_kept,
    rules_of,
    standing_of,
)
from diagnostics.alerting.signals import (
    FIRST_ATTEMPTS,
    RUNS,
    DetectorEvaluation,
    Measured,
    describe,
    news_of,
    slice_key,
)
from diagnostics.alerting.states import ON, AlertPhase, DetectorSignal, time_of
from diagnostics.analysis.detectors.change import STATE_FORM, ChangeDetector, Fire
from diagnostics.analysis.detectors.onset import Onset
from diagnostics.analysis.detectors.usual import Learned, ProjectPast, past_of
from diagnostics.analysis.series import DetectedState, SeriesKey, SeriesOnset
from diagnostics.constraints import NamedRow
from diagnostics.queries.series import choose_series
from diagnostics.selection.query_language import Query, Term, write_query
from diagnostics.store.models import Series
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import MINUTES_KEPT, WIDTHS, Grain, RunBucket, ceil, floor

LEARNED_WITH = ("form", "opened", "fire")
"""Of a detector's state: other whenever it has learned anything."""
LOOK = [column.name for column in fields(DetectorEvaluation)]
MOST_FIRES = 20
"""Alarms of a slice that are remembered, the latest."""
DAY = WIDTHS[Grain.DAY]
NO_KEY = UUID(int=0)
MOST_PRIMED = 50
"""Detectors that begin in one minute, in a fraction of the time that a turn has."""


class SeriesDetector(NamedRow):
    """The detector of a series: what it remembers, and its latest alarms."""

    named = "{0.at:%Y-%m-%d %H:%M}"
    series = models.OneToOneField(
        Series, models.CASCADE, primary_key=True, related_name="+", serialize=False
    )
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    # The latest minute that it was fed with.
    at = models.DateTimeField()
    detector_state = models.JSONField(default=dict)
    memory = models.JSONField(default=dict)


def feed_slices(
    project_id: int,
    slot: datetime,
    seen: Sequence[SliceEvaluation],
    counted: SeriesCounts,
    known: Iterable[SavedState],
    sharing: int,
    alarms: Mapping[Key, SavedState] | None = None,
    most_primed: int | None = None,
) -> None:
    """Feed the detectors of slices with what was counted since the last evaluation.

    `sharing` slices share one false alarm a week. At most so many new ones begin; the others are
    looked at later. `alarms` are the rows whose alarms they go on with; None: their own.
    """
    all_new = (evaluation for evaluation in seen if not _is_kept(evaluation))
    new = {(first.rule.id, first.row.key): first for first in islice(all_new, most_primed)}
    rows, rules = list(known), {evaluation.rule.id for evaluation in seen}
    pasts = {rule_id: _past(rows, rule_id) for rule_id in rules}
    primed = prime(project_id, new, slot, sharing, pasts) if new else {}
    for evaluation in seen:
        key, measured = (evaluation.rule.id, evaluation.row.key), evaluation.rule.measured
        if measured is None or not (key in primed or _is_kept(evaluation)):
            continue
        by_minute = _minutes(evaluation.series, counted, measured)
        state = evaluation.row.detector_state
        alarm = evaluation.row if alarms is None else alarms.get(key)
        if key in primed:
            detector, news = primed[key], news_of(by_minute, {})
        else:
            news = news_of(by_minute, {int(at): count for at, count in state["fed"].items()})
            if not news:
                evaluation.result = read_evaluation(state["look"])
                continue
            learned = Learned.read(evaluation.row.memory["learned"])
            fires, past = read_fires(state["fires"]), pasts[evaluation.rule.id] or ProjectPast
            detector = ChangeDetector.restore(state["watch"], learned, fires, sharing, past)
            if detector.fire and alarm and alarm.state == AlertPhase.NO_DATA:
                detector.end(evaluation.at)  # What comes after a silence is judged by itself.
        for stretch in news:
            detector.feed(*stretch)
        kept_since = state.get("anew_since")
        anew_since = _take_over(evaluation, detector, alarm) if key in primed else kept_since
        evaluation.result = describe(detector)
        is_young = not detector.has_success and measured is FIRST_ATTEMPTS
        if is_young and not any(n for _, n in _minutes(evaluation.series, counted, RUNS).values()):
            # Senders of failures alone have no rate that could rise: no run ended.
            evaluation.result = replace(evaluation.result, said=DetectorSignal.QUIET)
        _keep_state(evaluation, detector, by_minute, anew_since)


def _past(rows: Iterable[SavedState], rule_id: int) -> Callable[[], ProjectPast] | None:
    """Return what tells, asked once, what the series of a rule had in common; None: it has none."""
    own_rows = [row for row in rows if row.rule_id == rule_id and _has_learned(row)]

    @cache
    def past() -> ProjectPast:
        return past_of(Learned.read(row.memory["learned"]) for row in own_rows)

    return past if own_rows else None


def _take_over(
    evaluation: SliceEvaluation, detector: ChangeDetector, alarm: SavedState | None
) -> float | None:
    """Go on with the alarm that the detector of an earlier release raised, and raise none for it.

    Return when, in seconds; None if there was no detector.
    """
    earlier = [row.detector_state.get("watch") for row in (evaluation.row, alarm) if row]
    kept = next(filter(None, earlier), None)
    if not kept or (alarm is evaluation.row and alarm.rule_version != evaluation.rule.version):
        return None
    if standing_of(alarm).state in ON if alarm else kept.get("fire"):
        since = (alarm or evaluation.row).since.timestamp()
        fired_at, onset = kept.get("fire") or (since, since)
        detector.keep_firing(fired_at, onset[0] if isinstance(onset, list) else onset)
    elif detector.fire is not None:
        detector.end(evaluation.at)
    return evaluation.at


def read_fires(kept: Iterable[Sequence[Any]]) -> list[Fire]:
    return [Fire(at, Onset(*onset), cleared, usual) for at, onset, cleared, usual in kept]


def read_evaluation(kept: Mapping[str, Any]) -> DetectorEvaluation:
    return DetectorEvaluation(**{**kept, "said": DetectorSignal(kept["said"])})


def _is_kept(evaluation: SliceEvaluation) -> bool:
    """Whether a detector of this rule was kept, as it is kept now."""
    return evaluation.row.rule_version == evaluation.rule.version and _has_learned(evaluation.row)


def _has_learned(row: SavedState) -> bool:
    return bool(row.detector_state.get("watch", {}).get("form") == STATE_FORM)


def _minutes(
    series: Iterable[int], counted: SeriesCounts, measured: Measured
) -> dict[int, tuple[int, int]]:
    total: dict[int, tuple[int, int]] = {}
    for series_id in series:
        for minute, (k, n) in counted.by_minute(series_id, measured).items():
            known_k, known_n = total.get(minute, (0, 0))
            total[minute] = known_k + k, known_n + n
    return total


def _keep_state(
    evaluation: SliceEvaluation,
    detector: ChangeDetector,
    fed: Mapping[int, tuple[int, int]],
    anew_since: float | None,
) -> None:
    """Keep the detector in the row; what it has learned only when an hour or an alarm ended."""
    state, kept = detector.state(), evaluation.row.detector_state.get("watch", {})
    if state["usual"] is None or any(state[name] != kept.get(name) for name in LEARNED_WITH):
        evaluation.memory = {"learned": asdict(detector.learned)}
    evaluation.detector_state = {
        "watch": state,
        "fed": {str(at): list(count) for at, count in fed.items()},
        "look": {name: getattr(evaluation.result, name) for name in LOOK},
        "fires": detector.fires[-MOST_FIRES:],
        "anew_since": anew_since,
    }


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
    series = known_series(project_id)
    if choice := choose_series(project_id, (), slot - DAY, slot + MINUTE):
        # Of a large project those chosen have a detector.
        chosen = set(choice.chosen)
        series = [row for row in series if row.id in chosen]
    counted = read_counts(project_id, slot, FIRST_ATTEMPTS.columns, ())
    active = [row for row in series if row.id in counted.live or row.id not in kept]
    seen = [_evaluation_of(row, kept.get(row.id), slot) for row in active]
    rules = {rule.id for rule in rules_of(project_id) if rule.is_of_series}
    states = read_kept(project_id).items()
    alarms = {(0, key): row for (rule_id, key), row in states if rule_id in rules}
    feed_slices(project_id, slot, seen, counted, kept.values(), len(series), alarms, MOST_PRIMED)
    return seen


def _evaluation_of(series: KnownSeries, row: SavedState | None, slot: datetime) -> SliceEvaluation:
    key = slice_key(series.values)
    row = replace(row, key=key) if row else SavedState(0, key, slot, SERIES_RULE.version)
    return SliceEvaluation(SERIES_RULE, series.values, row, slot.timestamp(), series=[series.id])


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

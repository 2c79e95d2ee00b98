"""The detectors `change` of slices: primed with their past, then fed minute by minute."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

from diagnostics.alerting.counts import SeriesCounts
from diagnostics.alerting.evaluation import DetectorEvaluation, describe, news_of
from diagnostics.alerting.past import prime
from diagnostics.alerting.saved_states import Key, SavedState, SliceEvaluation, standing_of
from diagnostics.alerting.signals import FIRST_ATTEMPTS, RUNS, Measured
from diagnostics.alerting.states import ON, DetectorSignal
from diagnostics.analysis.detectors.change import STATE_FORM, ChangeDetector, Fire
from diagnostics.analysis.detectors.onset import Onset
from diagnostics.analysis.detectors.usual import Learned, ProjectPast, past_of

LEARNED_WITH = ("form", "opened", "fire")
"""Of a detector's state: other whenever it has learned anything."""
LOOK = [column.name for column in fields(DetectorEvaluation)]
MOST_FIRES = 20
"""Alarms of a slice that are remembered, the latest."""


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
        if key in primed:
            detector = primed[key]
            news = news_of(by_minute, {})
        else:
            news = news_of(by_minute, {int(at): count for at, count in state["fed"].items()})
            if not news:
                evaluation.result = read_evaluation(state["look"])
                continue
            learned = Learned.read(evaluation.row.memory["learned"])
            fires = read_fires(state["fires"])
            past = pasts[evaluation.rule.id] or ProjectPast
            detector = ChangeDetector.restore(state["watch"], learned, fires, sharing, past)
        for stretch in news:
            detector.feed(*stretch)
        anew_since = state.get("anew_since")
        if key in primed:
            alarm = evaluation.row if alarms is None else alarms.get(key)
            anew_since = _take_over(evaluation, detector, alarm)
        evaluation.result = describe(detector)
        is_young = not detector.has_success and measured is FIRST_ATTEMPTS
        if is_young and _has_no_runs(evaluation, counted):
            # Senders of failures alone have no rate that could rise.
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
    """Read the latest alarms of a slice, oldest first."""
    return [Fire(at, Onset(*onset), cleared, usual) for at, onset, cleared, usual in kept]


def read_evaluation(kept: Mapping[str, Any]) -> DetectorEvaluation:
    """Read what was found at the last evaluation that had news."""
    return DetectorEvaluation(**{**kept, "said": DetectorSignal(kept["said"])})


def _is_kept(evaluation: SliceEvaluation) -> bool:
    """Whether a detector of this rule was kept, as it is kept now."""
    return evaluation.row.rule_version == evaluation.rule.version and _has_learned(evaluation.row)


def _has_learned(row: SavedState) -> bool:
    return bool(row.detector_state.get("watch", {}).get("form") == STATE_FORM)


def _has_no_runs(evaluation: SliceEvaluation, counted: SeriesCounts) -> bool:
    """Whether single calls alone are told, and not how runs ended."""
    return not any(n for _, n in _minutes(evaluation.series, counted, RUNS).values())


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

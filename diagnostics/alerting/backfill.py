"""Evaluations and incidents of the past: for demonstration data and for a rule that is new.

What is written is marked as such, and nobody is told. While a past is imported there is no
evaluation, and what it finds raises nothing.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from django.db import transaction

from diagnostics import clock
from diagnostics.alerting import saved_states
from diagnostics.alerting.backtests import pasts_of, walk
from diagnostics.alerting.counts import MINUTE, freeze, known_series, lock_alerts
from diagnostics.alerting.evaluator import claim, refresh_verdicts
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_rows import clear_slices, raise_slices
from diagnostics.alerting.past import UntestableError
from diagnostics.alerting.rule_models import AlertSlot, AlertState, Evaluation
from diagnostics.alerting.rules import RuleDefinition
from diagnostics.alerting.series_detectors import SeriesDetector, judge_series, results_of
from diagnostics.alerting.slice_evaluation import evaluate_slices
from diagnostics.alerting.states import ON, AlertPhase, DetectorSignal, StateChange, held, time_of
from diagnostics.store.aggregation import fold
from diagnostics.store.sql import change, fetch
from diagnostics.store.windows import LATE, floor

CALLED = (
    "SELECT DISTINCT series_id FROM diagnostics_rollup_hour WHERE project_id = %s AND events > 0"
)
FORGET_MINUTES = (
    "DELETE FROM diagnostics_alert_minute WHERE project_id = %s AND series_id <> ALL(%s)"
)
PAUSE = timedelta(minutes=3)
"""An import that was killed keeps nobody from looking for longer."""


def backfill(project_id: int, since: datetime, until: datetime) -> int:
    """Write what the project's rules would have found; returns how many incidents.

    Slices that are known already keep how they stand.
    """
    fold()
    saved_states.ensure_standard_rules()
    now = clock.now()
    with transaction.atomic():
        lock_alerts(project_id)
        judge_series(project_id, floor(now, MINUTE))
        before = _backfilled(project_id)
        happened: list[saved_states.SliceEvaluation] = []
        for rule in saved_states.rules_of(project_id):
            for steps in _walk(project_id, rule, since, until, now):
                last = steps[-1]
                last.last_data_at = time_of(last.at)
                saved_states.save_new([last])
                saved_states.save_states([last])
                known = (step for step in steps if step.result.said is not DetectorSignal.NO_DATA)
                saved_states.save_evaluations(known, is_past=True)
                happened += [step for step in steps if step.happened]
        _replay(project_id, happened, now)
        # What is still open says what all other places say at the end of the stretch.
        refresh_verdicts(project_id, floor(until, MINUTE), now)
        return _backfilled(project_id) - before


def forget(project_id: int) -> int:
    """Take out what `backfill` wrote, and how slices stand that have no calls any more.

    Return how many incidents that were. A slice that a real incident names is kept.
    """
    gone = _backfilled(project_id)
    Incident.objects.filter(project_id=project_id, is_backfilled=True).delete()
    Evaluation.objects.filter(state__rule__project_id=project_id, is_backfilled=True).delete()
    called = {pk for (pk,) in fetch(CALLED, [project_id])}
    series = [series.values.items() for series in known_series(project_id) if series.id in called]
    states = AlertState.objects.filter(rule__project_id=project_id, incidents=None)
    silent = [
        pk
        for pk, values in states.values_list("pk", "slice")
        if not any(values.items() <= items for items in series)
    ]
    AlertState.objects.filter(pk__in=silent).delete()
    SeriesDetector.objects.filter(project_id=project_id).exclude(pk__in=called).delete()
    change(FORGET_MINUTES, [project_id, [*called]])
    return gone


def _backfilled(project_id: int) -> int:
    return Incident.objects.filter(project_id=project_id, is_backfilled=True).count()


def _walk(
    project_id: int, rule: RuleDefinition, since: datetime, until: datetime, now: datetime
) -> Iterator[Sequence[saved_states.SliceEvaluation]]:
    try:
        pasts = pasts_of(project_id, rule, since, until, now)
    except UntestableError:
        return
    known = set(AlertState.objects.filter(rule_id=rule.id).values_list("key", flat=True))
    begin, end = since.timestamp(), until.timestamp()
    for key, walked in zip(pasts, walk(rule, list(pasts.values()), until), strict=True):
        steps = [step for step in walked if begin <= step.at <= end]
        if steps and key not in known:
            yield steps


def _replay(project_id: int, happened: list[saved_states.SliceEvaluation], now: datetime) -> None:
    happened.sort(key=lambda step: step.at)
    for seconds, together in groupby(happened, key=lambda step: step.at):
        changed, at = list(together), time_of(seconds)
        over = [evaluation for evaluation in changed if evaluation.happened is StateChange.CLEARED]
        clear_slices({evaluation.row.pk: evaluation.result.is_usual for evaluation in over}, at)
        firing = [evaluation for evaluation in changed if evaluation.happened is StateChange.FIRED]
        raise_slices(project_id, firing, at, now, past=True)


def pause_alerts(project_id: int) -> None:
    """Evaluate no rule of a project for the next minutes; ask again while an import lasts."""
    claim(project_id, floor(clock.now() + PAUSE, MINUTE))


@transaction.atomic
def import_as_seen(project_id: int, since: datetime) -> None:
    """Look once at every slice after an import that began at `since`, and raise nothing.

    A slice that fires by what was imported fires no more before its detector was quiet once,
    or a day has passed. One that was about to fire before is left to the next evaluation.
    """
    lock_alerts(project_id)
    saved_states.ensure_standard_rules()
    slot = floor(clock.now(), MINUTE)
    AlertSlot.objects.filter(project_id=project_id, slot__gt=slot).delete()
    claim(project_id, slot)
    freeze(project_id, floor(since, MINUTE) - LATE, slot + MINUTE - LATE)
    judge_series(project_id, slot)
    judged = results_of(project_id, slot)
    seen = evaluate_slices(
        project_id, saved_states.rules_of(project_id), slot, judged, is_complete=True
    )
    imported = [evaluation for evaluation in seen if _is_of_import(evaluation)]
    for evaluation in imported:
        if evaluation.result.said is DetectorSignal.FIRES:
            evaluation.standing = held(evaluation.at)
    saved_states.save_new(imported)
    saved_states.save_states(imported)


def _is_of_import(evaluation: saved_states.SliceEvaluation) -> bool:
    """Whether it is new, or fires though it was not about to."""
    if not evaluation.row.pk:
        return True
    before = saved_states.standing_of(evaluation.row).state
    is_open = before in ON or before is AlertPhase.PENDING
    return evaluation.result.said is DetectorSignal.FIRES and not is_open

"""Alerts while a past is imported: no evaluation meanwhile, and what it finds raises nothing."""

from datetime import datetime, timedelta

from django.db import transaction

from diagnostics import clock
from diagnostics.alerting.counts import MINUTE, freeze, hold
from diagnostics.alerting.evaluator import claim
from diagnostics.alerting.rule_models import AlertSlot
from diagnostics.alerting.rule_rows import ensure_standard_rules, rules_of
from diagnostics.alerting.saved_states import SliceEvaluation, save_new, save_states, standing_of
from diagnostics.alerting.series_detectors import judge_series, results_of
from diagnostics.alerting.slice_evaluation import evaluate_slices
from diagnostics.alerting.states import ON, AlertPhase, DetectorSignal, held
from diagnostics.store.windows import LATE, floor

PAUSE = timedelta(minutes=3)
"""An import that was killed keeps nobody from looking for longer."""


def pause_alerts(project_id: int) -> None:
    """Evaluate no rule of a project for the next minutes; ask again while an import lasts."""
    claim(project_id, floor(clock.now() + PAUSE, MINUTE))


@transaction.atomic
def take_as_known(project_id: int, since: datetime) -> None:
    """Look once at every slice after an import that began at `since`, and raise nothing.

    A slice that fires by what was imported fires no more before its detector was quiet once,
    or a day has passed. One that was about to fire before is left to the next evaluation.
    """
    hold(project_id)
    ensure_standard_rules()
    slot = floor(clock.now(), MINUTE)
    AlertSlot.objects.filter(project_id=project_id, slot__gt=slot).delete()
    claim(project_id, slot)
    freeze(project_id, floor(since, MINUTE) - LATE, slot + MINUTE - LATE)
    judge_series(project_id, slot)
    judged = results_of(project_id, slot)
    seen = evaluate_slices(project_id, rules_of(project_id), slot, judged, is_complete=True)
    mine = [one for one in seen if _is_of_import(one)]
    for one in mine:
        if one.result.said is DetectorSignal.FIRES:
            one.standing = held(one.at)
    save_new(mine)
    save_states(mine)


def _is_of_import(one: SliceEvaluation) -> bool:
    """Whether it is new, or fires though it was not about to."""
    if not one.row.pk:
        return True
    before = standing_of(one.row).state
    is_open = before in ON or before is AlertPhase.PENDING
    return one.result.said is DetectorSignal.FIRES and not is_open

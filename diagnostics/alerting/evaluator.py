"""Alerts: every minute of every project is looked at once, by whoever comes first.

The slot's row, how slices stand, what was found, incidents, transitions and notifications
are one transaction: an evaluator that is killed has done nothing, and the next one does it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from time import monotonic

from django.db import transaction
from django.db.models import Max

from diagnostics import clock
from diagnostics.alerting import saved_states
from diagnostics.alerting.attribution import VerdictCache
from diagnostics.alerting.counts import COUNTS_KEPT, MINUTE, freeze, try_lock_alerts
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_rows import attribute_to, clear_slices, raise_slices
from diagnostics.alerting.rule_models import AlertSlot, ProjectStatus
from diagnostics.alerting.series_detectors import SeriesDetector, judge_series, results_of
from diagnostics.alerting.slice_evaluation import evaluate_slices
from diagnostics.alerting.states import StateChange
from diagnostics.alerting.statuses import STATUSES, store_statuses
from diagnostics.store.aggregation import fold_project
from diagnostics.store.deadlines import TurnPart, all_turns_until, give_turns
from diagnostics.store.models import EVALUATOR, Heartbeat, Series
from diagnostics.store.sql import change
from diagnostics.store.windows import AHEAD, LATE, floor

MOST_MISSED = 60
"""Minutes that are caught up after an outage; what is older is passed over."""
RUN_SECONDS = 10.0
"""No turn is begun after so long: mails and aggregation wait for the same workers."""
VERDICT_AGE = timedelta(minutes=5)


def evaluate(now: datetime | None = None) -> int:
    """Give each project its turn of this minute; return how many (project, minute) were judged.

    Any number may run at once. No project delays another for longer than its deadlines, and
    the heartbeat tells until when every project had its turns.
    """
    saved_states.ensure_standard_rules()
    outcome = give_turns(PARTS, now or clock.now(), RUN_SECONDS)
    Heartbeat.note(all_turns_until(), EVALUATOR)
    return outcome


def _aggregate(project_id: int, now: datetime) -> int:
    # What was evaluated before the clock was set back: nothing would be until it is there again.
    AlertSlot.objects.filter(project_id=project_id, slot__gt=now + AHEAD).delete()
    SeriesDetector.objects.filter(project_id=project_id, at__gt=now + AHEAD).delete()
    fold_project(project_id)
    return 0


def _store_statuses(project_id: int, now: datetime) -> int:
    """Store how the series of a project stand, once a minute; before the alerts, which say it."""
    for slot in _missed_slots(project_id, now):
        judge_series(project_id, slot)
    stored = ProjectStatus.objects.filter(pk=project_id, at__range=(floor(now, MINUTE), now))
    if Series.objects.filter(project_id=project_id).exists() and not stored.exists():
        with transaction.atomic():
            store_statuses(project_id, now)
    return 0


def evaluate_project(project_id: int, now: datetime) -> int:
    slots = 0
    for slot in _missed_slots(project_id, now):
        outcome = evaluate_slot(project_id, slot, now)
        if outcome is None:
            # Whoever is at it does the next ones too: none may be passed over.
            break
        slots += outcome
    return slots


def _missed_slots(project_id: int, now: datetime) -> Iterator[datetime]:
    """Yield the minutes that were not looked at yet, up to the one that runs now."""
    slot, last = floor(now, MINUTE), _last_slot(project_id)
    begin = slot if last is None else max(last + MINUTE, slot - MOST_MISSED * MINUTE)
    while begin <= slot:
        yield begin
        begin += MINUTE


@transaction.atomic
def evaluate_slot(project_id: int, slot: datetime, now: datetime) -> bool | None:
    """Look at one minute of one project: True when done, False when somebody has.

    None while somebody is at the project.
    """
    started = monotonic()
    if not try_lock_alerts(project_id):
        return None
    if not claim(project_id, slot):
        return False
    # What has grown older than 15 minutes since the last evaluation.
    last, since = _last_slot(project_id, slot__lt=slot), slot - COUNTS_KEPT
    if last is not None:
        since = max(last + MINUTE - LATE, since)
    freeze(project_id, since, slot + MINUTE - LATE)
    judge_series(project_id, slot)
    seen = evaluate_slices(
        project_id, saved_states.rules_of(project_id), slot, results_of(project_id, slot)
    )
    saved_states.save_new(seen)
    saved_states.save_states(evaluation for evaluation in seen if evaluation.is_changed)
    saved_states.save_evaluations(evaluation for evaluation in seen if evaluation.is_recorded)
    # Before anything is told: a mail says what the pages of this minute say.
    refresh_verdicts(project_id, slot, now)
    fired = [evaluation for evaluation in seen if evaluation.happened is StateChange.FIRED]
    raise_slices(project_id, fired, slot, now, past=False)
    over = [evaluation for evaluation in seen if evaluation.happened is StateChange.CLEARED]
    clear_slices({evaluation.row.pk: evaluation.result.is_usual for evaluation in over}, slot)
    AlertSlot.objects.filter(project_id=project_id, slot=slot).update(
        slices=len(seen), duration_ms=round((monotonic() - started) * 1000)
    )
    return True


def _last_slot(project_id: int, **before: datetime) -> datetime | None:
    slots = AlertSlot.objects.filter(project_id=project_id, **before)
    last: datetime | None = slots.aggregate(last=Max("slot"))["last"]
    return last


def claim(project_id: int, slot: datetime) -> bool:
    """Insert the slot's row; False when it, or a later one, is there."""
    return bool(
        change(
            "INSERT INTO diagnostics_alertslot (project_id, slot, at, slices, duration_ms)"
            " SELECT %(project)s, %(slot)s, failsoft_now(), 0, 0 WHERE NOT EXISTS ("
            "  SELECT FROM diagnostics_alertslot"
            "  WHERE project_id = %(project)s AND slot > %(slot)s)"
            " ON CONFLICT DO NOTHING",
            {"project": project_id, "slot": slot},
        )
    )


def refresh_verdicts(project_id: int, slot: datetime, now: datetime) -> None:
    """Give open incidents the verdict of this minute, which all other places say too.

    One that no cause of the project touches has a verdict of its own, every five minutes.
    """
    verdicts = VerdictCache(project_id, slot, now)
    rows = Incident.objects.filter(project_id=project_id, cleared_at=None, verdict_at__lt=slot)
    for incident in rows.prefetch_related("slices"):
        slices = [row.slice for row in sorted(incident.slices.all(), key=lambda row: row.pk)]
        is_fresh = incident.verdict_at and slot - incident.verdict_at < VERDICT_AGE
        if is_fresh and not verdicts.cause_of(*slices):
            continue
        attribution, verdict = verdicts.attribute(*slices)
        attribute_to(incident, attribution)
        incident.verdict_now, incident.verdict_at = verdict.as_json(), slot
        incident.onset = verdict.since or incident.onset
        incident.save(update_fields=["verdict_now", "verdict_at", "onset", "cause", "cause_value"])


PARTS = (
    TurnPart("aggregation", _aggregate, 5.0),
    TurnPart(STATUSES, _store_statuses, 15.0),
    TurnPart("alerts", evaluate_project, 15.0),
)
"""The turn of a project: what is counted, how its series stand, its alert rules."""

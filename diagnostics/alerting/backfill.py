"""Evaluations and incidents of the past: for demonstration data and for a rule that is new.

What is written is marked as such, and nobody is told.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import transaction

from diagnostics import clock
from diagnostics.alerting.attribution import VerdictCache
from diagnostics.alerting.backtests import BacktestStep, SlicePast, pasts_of, walk
from diagnostics.alerting.counts import hold
from diagnostics.alerting.evaluation_rows import evaluation_row, insert_evaluations
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_rows import Firing, clear_slices, raise_slices
from diagnostics.alerting.rule_models import AlertState, Evaluation
from diagnostics.alerting.rule_rows import rules_of
from diagnostics.alerting.rules import RuleDefinition
from diagnostics.alerting.signals import measured, slice_key
from diagnostics.alerting.states import DetectorSignal, StateChange, time_of

BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Walked:
    """A slice of a rule with its row and every look of its past."""

    rule: RuleDefinition
    past: SlicePast
    row: AlertState
    steps: Sequence[BacktestStep]


@transaction.atomic
def fill_in(project_id: int, since: datetime, until: datetime) -> int:
    """Write what the project's rules would have found; gives how many incidents.

    Slices that are known already keep how they stand: only their past looks are added.
    """
    hold(project_id)
    now = clock.now()
    walked = [
        one
        for rule in rules_of(project_id)
        if measured(rule.signal, rule.parameters.limit) is not None
        for one in _walk(project_id, rule, since, until, now)
    ]
    for one in walked:
        _keep_looks(one)
    before = _backfilled(project_id)
    _replay(project_id, walked, now)
    return _backfilled(project_id) - before


def forget(project_id: int) -> int:
    """Take out what `fill_in` wrote; gives how many incidents that were."""
    gone = _backfilled(project_id)
    Incident.objects.filter(project_id=project_id, is_backfilled=True).delete()
    Evaluation.objects.filter(state__rule__project_id=project_id, is_backfilled=True).delete()
    return gone


def _backfilled(project_id: int) -> int:
    rows = Incident.objects.filter(project_id=project_id, is_backfilled=True)
    return rows.count()


def _walk(
    project_id: int, rule: RuleDefinition, since: datetime, until: datetime, now: datetime
) -> Iterable[Walked]:
    pasts = pasts_of(project_id, rule, since, until, now)
    known = {row.key: row for row in AlertState.objects.filter(rule_id=rule.id)}
    begin, end = since.timestamp(), until.timestamp()
    for past in pasts.values():
        key = slice_key(past.values)
        if key in known:
            continue
        walk_of = walk(rule, past, len(pasts), until)
        steps = [step for step in walk_of if begin <= step.at <= end]
        if steps:
            yield Walked(rule, past, _row(rule, past, steps[-1]), steps)


def _row(rule: RuleDefinition, past: SlicePast, last: BacktestStep) -> AlertState:
    return AlertState.objects.create(
        rule_id=rule.id,
        key=slice_key(past.values),
        slice=dict(past.values),
        state=last.standing.state,
        since=time_of(last.standing.since),
        rule_version=rule.version,
        last_data_at=time_of(last.at),
    )


def _keep_looks(one: Walked) -> None:
    looks = (
        {"at": step.at, **evaluation_row(one.row.pk, one.rule, step.look, step.standing)}
        for step in one.steps
        if step.look.said is not DetectorSignal.NO_DATA
    )
    while batch := list(islice(looks, BATCH)):
        insert_evaluations(batch, None)


def _replay(project_id: int, walked: Sequence[Walked], now: datetime) -> None:
    """Let incidents begin and end in the order in which they would have."""
    happened = sorted(
        (step.at, step.happened is StateChange.FIRED, place, number)
        for place, one in enumerate(walked)
        for number, step in enumerate(one.steps)
        if step.happened is not None
    )
    for at in dict.fromkeys(at for at, *_ in happened):
        moment = time_of(at)
        mine = [
            (fired, walked[p], walked[p].steps[n]) for when, fired, p, n in happened if when == at
        ]
        over = {one.row.pk: step.look.is_usual for fired, one, step in mine if not fired}
        clear_slices(over, moment)
        firing = [
            Firing(one.rule, one.row.pk, one.past.values, step.look, step.standing)
            for fired, one, step in mine
            if fired
        ]
        if firing:
            verdicts = VerdictCache(project_id, moment, now)
            raise_slices(project_id, firing, moment, verdicts, past=True)

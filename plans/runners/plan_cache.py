"""Plans of distributed runs, read once by each process: a payload never changes."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from uuid import UUID

from plans import working
from plans.core.frontier import Dependents
from plans.core.resolution import ResolvedPlan
from plans.models import Run
from plans.runners.reading import read_plan, read_rows
from plans.submitting import owner_of

_MOST_PLANS = 4


@dataclass(frozen=True, slots=True)
class PlanOfRun:
    """A plan, and which steps wait for which."""

    plan: ResolvedPlan
    dependents: Dependents


_lock = Lock()
_plans: OrderedDict[UUID, PlanOfRun] = OrderedDict()


def plan_of(run: Run, payload: object = None) -> PlanOfRun:
    """Return the plan of a run; WorkingItemMissingError when its payload is gone."""
    with _lock:
        known = _plans.get(run.pk)
        if known is not None:
            _plans.move_to_end(run.pk)
            return known
    if payload is None:
        payload = working.get(run.project_id, owner_of(run.pk), "payload")
    plan = read_plan(payload, read_rows(run))
    planned = PlanOfRun(plan, Dependents(plan))
    with _lock:
        _plans[run.pk] = planned
        while len(_plans) > _MOST_PLANS:
            _plans.popitem(last=False)
    return planned


def forget(run_id: UUID) -> None:
    """Keep no raw arguments of a run that has ended."""
    with _lock:
        _plans.pop(run_id, None)

"""Goals whose worker or message went silent are taken up again (C3, C4)."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from agents.claims import MAX_STARTS
from agents.models import Goal
from agents.running import end_poisoned
from agents.submitting import MESSAGE_LEASE, enqueue_goal
from diagnostics.clock import DatabaseNow
from plans.models import Run

_BATCH = 100
# A run's end is told through the outbox; only a message lost for good needs this.
_RUN_ENDED_LONG_AGO = timedelta(seconds=60)


def reconcile_goals() -> int:
    """Queue again what should be under way and is not; return how many goals were found.

    A goal that went silent too often is ended as poison instead.
    """
    poisoned: list[UUID] = []
    with transaction.atomic():
        found = list(
            _silent().select_for_update(skip_locked=True, of=("self",))[:_BATCH]
        )
        for goal in found:
            if goal.starts >= MAX_STARTS and goal.status == Goal.Status.RUNNING:
                poisoned.append(goal.pk)
            else:
                Goal.objects.filter(pk=goal.pk).update(
                    status=Goal.Status.QUEUED, lease_until=DatabaseNow() + MESSAGE_LEASE
                )
                enqueue_goal(goal)
    for goal_id in poisoned:
        end_poisoned(goal_id)
    return len(found)


def _silent() -> QuerySet[Goal]:
    unfinished = Q(status__in=[Goal.Status.QUEUED, Goal.Status.RUNNING])
    overdue = Q(lease_until__lt=DatabaseNow())
    forgotten = Q(
        lease_until__isnull=True,
        current_run__state__in=[Run.State.ENDED, Run.State.POISON],
        current_run__ended_at__lt=DatabaseNow() - _RUN_ENDED_LONG_AGO,
    )
    return Goal.objects.filter(unfinished & (overdue | forgotten)).order_by(
        "lease_until"
    )

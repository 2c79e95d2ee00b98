"""Requeue goals whose worker died or whose message is gone."""

from datetime import timedelta

from django.db.models import Q, QuerySet

from agents.cycle.running import end_poisoned
from agents.goals.claims import is_stopped
from agents.goals.models import Goal
from agents.goals.submission import MESSAGE_LEASE, QUEUE, enqueue_goal
from diagnostics.clock import DatabaseNow
from diagnostics.store.leases import UNFINISHED, silent, take_up
from diagnostics.store.queue_marks import drained_until
from plans.models.run import Run

# The outbox announces a run's end; this is for a message that was lost.
_RUN_ENDED_LONG_AGO = timedelta(seconds=60)
_WORKING = Q(status=Goal.Status.RUNNING)


def reconcile_goals() -> int:
    """Requeue goals that should be running and are not; return how many there were.

    A goal that went silent too often ends as poison instead.
    """
    return take_up(_silent_goals(), _WORKING, _queue_again, end_poisoned)


def _silent_goals() -> QuerySet[Goal]:
    waiting = Q(status=Goal.Status.QUEUED) & (~is_stopped() | Q(cancel_requested_at__isnull=False))
    forgotten = Q(
        lease_until__isnull=True,
        current_run__state__in=[Run.State.ENDED, Run.State.POISON],
        current_run__ended_at__lt=drained_until(QUEUE) - _RUN_ENDED_LONG_AGO,
    )
    # As the partial index has it.
    unfinished = Goal.objects.filter(status__in=UNFINISHED)
    return unfinished.filter(silent(waiting, _WORKING, QUEUE) | forgotten)


def _queue_again(goal: Goal) -> None:
    Goal.objects.filter(pk=goal.pk).update(
        status=Goal.Status.QUEUED, lease_until=DatabaseNow() + MESSAGE_LEASE
    )
    enqueue_goal(goal)

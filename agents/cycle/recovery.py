"""Goals whose worker died or whose message is gone are taken up again."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from agents.cycle.running import end_poisoned
from agents.goals.claims import MAX_STARTS, is_stopped
from agents.goals.models import Goal
from agents.goals.submission import MESSAGE_LEASE, QUEUE, enqueue_goal
from diagnostics.clock import DatabaseNow
from diagnostics.store.queue_marks import drained_until
from plans.models.run import Run

_BATCH = 100
_MOST_BATCHES = 10
# A run's end is told through the outbox; only a message lost for good needs this.
_RUN_ENDED_LONG_AGO = timedelta(seconds=60)


def reconcile_goals() -> int:
    """Queue again what should be under way and is not; return how many goals were found.

    A goal that went silent too often is ended as poison instead.
    """
    count = 0
    for _ in range(_MOST_BATCHES):
        taken_up = _take_up_batch()
        count += taken_up
        if taken_up < _BATCH:
            break
    return count


def _take_up_batch() -> int:
    poisoned: list[UUID] = []
    with transaction.atomic():
        goals = list(_silent().select_for_update(skip_locked=True, of=("self",))[:_BATCH])
        for goal in goals:
            if goal.starts >= MAX_STARTS and goal.status == Goal.Status.RUNNING:
                poisoned.append(goal.pk)
            else:
                Goal.objects.filter(pk=goal.pk).update(
                    status=Goal.Status.QUEUED, lease_until=DatabaseNow() + MESSAGE_LEASE
                )
                enqueue_goal(goal)
    for goal_id in poisoned:
        end_poisoned(goal_id)
    return len(goals)


def _silent() -> QuerySet[Goal]:
    """A worker's goal by its lease; one that waits for a message only once that is gone."""
    drained = drained_until(QUEUE)
    may_be_claimed = ~is_stopped() | Q(cancel_requested_at__isnull=False)
    waits = Q(status=Goal.Status.QUEUED, lease_until__lt=drained) & may_be_claimed
    dead = Q(status=Goal.Status.RUNNING, lease_until__lt=DatabaseNow())
    forgotten = Q(
        lease_until__isnull=True,
        current_run__state__in=[Run.State.ENDED, Run.State.POISON],
        current_run__ended_at__lt=drained - _RUN_ENDED_LONG_AGO,
    )
    # As the partial index has it.
    unfinished = Goal.objects.filter(status__in=[Goal.Status.QUEUED, Goal.Status.RUNNING])
    return unfinished.filter(waits | dead | forgotten).order_by("lease_until")

"""The right to move a goal: a lease with a fencing token.

Whoever's conditional update changes the row has the goal; whoever's token is no longer the
row's has lost it and may write nothing more.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import DatabaseError, connection, models, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce

from agents.goals.models import Goal, PlanningStop
from diagnostics import clock
from diagnostics.clock import DatabaseNow

logger = structlog.get_logger(__name__)

LEASE = timedelta(seconds=60)
RENEW_SECONDS = 20.0
MAX_STARTS = 3


class GoalLeaseLostError(Exception):
    """another worker has taken over; what this one still does must not be stored"""


@dataclass(frozen=True, slots=True)
class GoalClaim:
    """A goal that this worker holds until it stops renewing."""

    goal: Goal
    token: int
    taken_at: datetime

    def renew(self, **changes: object) -> None:
        """Hold the goal for another lease, and change columns of its row with it.

        Inside a transaction this is the fence: it locks the row, and raises GoalLeaseLostError
        before anything of an older claim is written.
        """
        self._change(lease_until=DatabaseNow() + LEASE, **changes)

    def release(self, **changes: object) -> None:
        """Give the goal up in good order, changing columns with it: the starts count anew."""
        self._change(lease_until=None, starts=0, **changes)

    def put_off(self, message_lease: timedelta, **changes: object) -> None:
        """Put the goal back into the queue; its message is due before the lease ends."""
        self._change(
            status=Goal.Status.QUEUED,
            lease_until=DatabaseNow() + message_lease,
            starts=0,
            **changes,
        )

    def drop(self) -> None:
        """Let the lease run out at once, so that the reconciler takes the goal up."""
        self._held().update(lease_until=DatabaseNow())

    def is_cancelled(self) -> bool:
        """Whether somebody has asked for the end of the goal."""
        return Goal.objects.filter(pk=self.goal.pk, cancel_requested_at__isnull=False).exists()

    def _held(self) -> models.QuerySet[Goal]:
        return Goal.objects.filter(
            pk=self.goal.pk, status=Goal.Status.RUNNING, fencing_token=self.token
        )

    def _change(self, **columns: object) -> None:
        if self._held().update(**columns) != 1:
            raise GoalLeaseLostError(str(self.goal.pk))


def claim_goal(goal_id: UUID) -> GoalClaim | None:
    """Take a goal that is queued, waits for nothing, or went silent; None when it is not free.

    While planning is stopped nobody takes a goal, unless to end it because it was cancelled.
    """
    idle = Q(lease_until__isnull=True) | Q(lease_until__lt=DatabaseNow())
    free = Q(status=Goal.Status.QUEUED) | Q(status=Goal.Status.RUNNING) & idle
    free &= Q(starts__lt=MAX_STARTS)
    free &= ~is_stopped() | Q(cancel_requested_at__isnull=False)
    return _take(goal_id, free, starts=F("starts") + 1)


def is_stopped() -> Exists:
    """Ask of a goal's row whether its planning is stopped, for its project or everywhere."""
    mine = Q(project=OuterRef("project")) | Q(project=None)
    return Exists(PlanningStop.objects.filter(mine))


def claim_poisoned(goal_id: UUID) -> GoalClaim | None:
    """Take a goal whose workers died too often, to end it without asking anybody."""
    return _take(
        goal_id,
        Q(
            status=Goal.Status.RUNNING,
            lease_until__lt=DatabaseNow(),
            starts__gte=MAX_STARTS,
        ),
    )


@contextmanager
def kept_alive(claim: GoalClaim, *others: Callable[[], None]) -> Iterator[None]:
    """Renew the lease, and others with it, from a second thread while this one waits."""
    done = threading.Event()
    renewals = (claim.renew, *others)
    thread = threading.Thread(target=_renew_until, args=(renewals, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _renew_until(renewals: Iterable[Callable[[], None]], done: threading.Event) -> None:
    while not done.wait(RENEW_SECONDS):
        try:
            for renew in renewals:
                renew()
        except GoalLeaseLostError:
            return
        except DatabaseError as error:
            # The lease outlives two failures; the fence decides in the end.
            logger.warning("lease_not_renewed", error=type(error).__name__)
        finally:
            # Each thread has a connection of its own.
            connection.close()


def _take(goal_id: UUID, free: Q, **columns: object) -> GoalClaim | None:
    with transaction.atomic():
        claimed = Goal.objects.filter(free, pk=goal_id).update(
            status=Goal.Status.RUNNING,
            lease_until=DatabaseNow() + LEASE,
            fencing_token=F("fencing_token") + 1,
            started_at=Coalesce("started_at", DatabaseNow()),
            **columns,
        )
        if claimed != 1:
            return None
        goal = Goal.objects.select_related("language_model__provider", "current_run").get(
            pk=goal_id
        )
    return GoalClaim(goal, goal.fencing_token, clock.now())

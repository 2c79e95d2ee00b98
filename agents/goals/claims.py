"""Claims of goals, and the stops of planning: none is taken while it is stopped."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce

from agents.goals.models import Goal, PlanningStop
from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from diagnostics.store.leases import MAX_STARTS, Claim

LEASE = timedelta(seconds=60)
RENEW_SECONDS = 20.0
REASON_BYTES = 200


@dataclass(frozen=True, slots=True)
class GoalClaim(Claim):
    """A goal that this worker holds."""

    goal: Goal
    taken_at: datetime

    def put_off(self, message_lease: timedelta, **changes: object) -> None:
        """Return the goal to the queue; its message is due before the lease ends."""
        until = DatabaseNow() + message_lease
        self.change(status=Goal.Status.QUEUED, lease_until=until, starts=0, **changes)

    def drop(self) -> None:
        """End the lease now, so that the reconciler requeues the goal."""
        self.held.update(lease_until=DatabaseNow())

    def is_cancelled(self) -> bool:
        return Goal.objects.filter(pk=self.goal.pk, cancel_requested_at__isnull=False).exists()


def claim_goal(goal_id: UUID) -> GoalClaim | None:
    """Claim a goal that is queued, waits for nothing, or went silent; None if it is not free.

    While planning is stopped, only a cancelled goal can be claimed, to end it.
    """
    idle = Q(lease_until__isnull=True) | Q(lease_until__lt=DatabaseNow())
    free = Q(status=Goal.Status.QUEUED) | Q(status=Goal.Status.RUNNING) & idle
    free &= Q(starts__lt=MAX_STARTS)
    free &= ~is_stopped() | Q(cancel_requested_at__isnull=False)
    return _take(goal_id, free, starts=F("starts") + 1)


def is_stopped() -> Exists:
    """Condition on a goal's row: planning is stopped, in its project or everywhere."""
    applies = Q(project=OuterRef("project")) | Q(project=None)
    return Exists(PlanningStop.objects.filter(applies))


def claim_poisoned(goal_id: UUID) -> GoalClaim | None:
    """Claim a goal whose workers died too often, to end it without calling a model."""
    return _take(
        goal_id,
        Q(status=Goal.Status.RUNNING, lease_until__lt=DatabaseNow(), starts__gte=MAX_STARTS),
    )


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
    held = Goal.objects.filter(
        pk=goal_id, status=Goal.Status.RUNNING, fencing_token=goal.fencing_token
    )
    return GoalClaim(held, LEASE, goal.fencing_token, goal, clock.now())


def stops_of(project: Project) -> list[PlanningStop]:
    """Return what stops a project's planning: its own row, the installation's, both or none."""
    stops = PlanningStop.objects.filter(Q(project=project) | Q(project=None))
    return list(stops.select_related("by").order_by("project_id"))


def stop_planning(project: Project | None, by: User, reason: str = "") -> bool:
    """Prevent goals from being claimed; False if planning was stopped already."""
    redacted = redact(reason, REASON_BYTES)
    try:
        with transaction.atomic():
            PlanningStop.objects.create(project=project, by=by, reason=redacted)
            note(_id(project), by, "planning.stopped", _name(project), {"why": redacted})
    except IntegrityError:
        return False
    return True


def resume_planning(project: Project | None, by: User) -> bool:
    """Let goals be claimed again, queued ones within seconds; False if not stopped."""
    with transaction.atomic():
        deleted, _ = PlanningStop.objects.filter(project=project).delete()
        if not deleted:
            return False
        note(_id(project), by, "planning.resumed", _name(project))
        waiting = Goal.objects.filter(status=Goal.Status.QUEUED)
        if project is not None:
            waiting = waiting.filter(project=project)
        # The reconciler queues them once the next mark has passed: their messages are gone.
        waiting.update(lease_until=DatabaseNow())
    return True


def _id(project: Project | None) -> int | None:
    return None if project is None else project.pk


def _name(project: Project | None) -> str:
    return "everywhere" if project is None else project.name

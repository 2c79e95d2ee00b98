"""Stop planning in a project or everywhere: goals stay queued until it is resumed."""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q

from agents.goals.models import Goal, PlanningStop
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact

REASON_BYTES = 200


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

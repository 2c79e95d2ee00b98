"""The address of a goal's page, whatever characters its correlation id has."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from agents.console.reported_run import events_with, outside_context
from agents.goals import records
from agents.goals.models import Goal
from agents.goals.records import is_plain
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.pages import respond


def goal_url(goal: Goal) -> str:
    """The address that the API gives too."""
    return records.goal_path(goal)


def find_goal(project_id: int, reference: str) -> Goal | None:
    """Look a goal up; PostgreSQL's text holds no NUL, so such a reference is nobody's."""
    return None if "\0" in reference else records.find_goal(project_id, reference)


PLACE = {"section": "goals"}
LONGEST_REFERENCE = 200


@require_safe
@member_view
def find(request: ConsoleRequest) -> HttpResponse:
    """Lead to the goal of a reference, or show the events that carry it."""
    reference = request.GET.get("reference", "").strip()[:LONGEST_REFERENCE]
    reference = reference.replace("\0", "")
    found = find_goal(request.project.pk, reference) if reference else None
    if found is not None:
        return redirect(goal_url(found))
    events = events_with(request.project.pk, reference)
    if events and is_plain(reference):
        return redirect("goal", reference)
    if events:
        context = {**outside_context(request.project.pk, reference, events), **PLACE}
        return respond(request, "goals/outside", context)
    return respond(request, "goals/find", {"reference": reference, **PLACE})

"""Find what a person's reference stands for: a goal, or an outside agent's events."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from agents.reading import is_plain
from agents.views.goal_links import find_goal, goal_url
from agents.views.outside import events_with, outside_context
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.pages import respond

PLACE = {"section": "goals"}
LONGEST_REFERENCE = 200


@require_safe
@member_view
def find(request: ConsoleRequest) -> HttpResponse:
    """Lead to the goal of a reference, or show the events that carry it (X-1)."""
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

"""Find what a person's reference stands for: a goal, or an outside agent's events."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from agents.views.goal_links import find_goal, goal_url
from diagnostics.models import Event
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.pages import respond

MOST_EVENTS = 50
LONGEST_REFERENCE = 200


@require_safe
@member_view
def find(request: ConsoleRequest) -> HttpResponse:
    """Lead to the goal of a reference, or list the events that carry it (X-1)."""
    reference = request.GET.get("reference", "").strip()[:LONGEST_REFERENCE]
    reference = reference.replace("\0", "")
    found = find_goal(request.project.pk, reference) if reference else None
    if found is not None:
        return redirect(goal_url(found))
    events = Event.objects.filter(project=request.project, correlation_id=reference)
    newest = list(events.order_by("-occurred_at")[:MOST_EVENTS]) if reference else []
    context = {"reference": reference, "events": newest, "section": "goals"}
    return respond(request, "goals/find", context)

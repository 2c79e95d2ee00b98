"""From a reference to the page of its goal, whatever characters it has."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.console.reported_run import events_with, show_events
from agents.goals import records
from agents.goals.models import Goal
from agents.goals.records import goal_path, is_plain
from diagnostics.web.access import ConsoleRequest, member_view


def find_goal(project_id: int, reference: str) -> Goal | None:
    """Look a goal up; PostgreSQL's text holds no NUL, so such a reference is nobody's."""
    return None if "\0" in reference else records.find_goal(project_id, reference)


LONGEST_REFERENCE = 200
# In the address of a search that must not lead back here.
STAY = "stay"


@require_safe
@member_view
def find(request: ConsoleRequest) -> HttpResponse:
    """Lead to the page of a run by its id; to the search where there is none."""
    reference = request.GET.get("reference", "").strip()[:LONGEST_REFERENCE]
    reference = reference.replace("\0", "")
    found = find_goal(request.project.pk, reference) if reference else None
    if found is not None:
        return redirect(goal_path(found))
    events = events_with(request.project.pk, reference)
    if events and is_plain(reference):
        return redirect("goal", reference)
    if events:
        return show_events(request, reference, events)
    query = {"q": reference, STAY: "1"} if reference else {}
    return redirect(f"{reverse('search')}?{urlencode(query)}")

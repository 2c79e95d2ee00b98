"""From a correlation id to the page of its run, whatever characters it has."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.console.goal_forms import AnswerForm
from agents.console.reported_run import events_with
from agents.console.run_page import find_goal, show_run
from agents.goals.records import goal_path, is_plain, run_path
from diagnostics.web.access import ConsoleRequest, member_page

LONGEST_REFERENCE = 200
# In the address of a search that must not lead back here.
STAY = "stay"


@member_page
def find(request: ConsoleRequest) -> HttpResponse:
    """Lead to the run with a correlation id, or to the search where there is none."""
    reference = request.GET.get("reference", "").strip()[:LONGEST_REFERENCE]
    reference = reference.replace("\0", "")
    goal = find_goal(request.project.pk, reference) if reference else None
    if goal is not None:
        return redirect(goal_path(goal))
    if events_with(request.project.pk, reference):
        if is_plain(reference):
            return redirect(run_path(reference))
        # No address can name it.
        return show_run(request, reference, None, AnswerForm())
    query = {"q": reference, STAY: "1"} if reference else {}
    return redirect(f"{reverse('search')}?{urlencode(query)}")

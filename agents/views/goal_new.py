"""The form that submits a goal."""

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from agents.core.orders import OrderError
from agents.forms import GoalForm, enabled_models
from agents.planning_stops import stops_of
from agents.submitting import submit_goal
from agents.views.goal_links import goal_url
from diagnostics.views.access import ConsoleRequest, may_act, member_view
from diagnostics.views.pages import respond

SOURCE = "console"


@require_http_methods(["GET", "HEAD", "POST"])
@member_view
def goal_new(request: ConsoleRequest) -> HttpResponse:
    """Show the form; store a good one and lead to the goal's page."""
    if not may_act(request):
        raise PermissionDenied
    form = GoalForm(request.project, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = submit_goal(request.project.pk, form.order(), source=SOURCE)
            return redirect(goal_url(made.goal))
        except OrderError as error:
            form.show_refusal(error.errors)
    context = {
        "form": form,
        "stops": stops_of(request.project),
        "no_models": not enabled_models(request.project).exists(),
        "section": "goals",
    }
    return respond(request, "goals/new", context)

"""What a member may do to a goal: cancel it, answer it."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from agents.forms import AnswerForm
from agents.models import Goal
from agents.views.goal_links import goal_url
from agents.views.goal_timeline import show_goal
from diagnostics.views.access import ConsoleRequest, may_act, member_view


@require_POST
@member_view
def cancel(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Ask for the goal to end; what runs now is ended at the next chance."""
    goal = _mine(request, goal_id)
    return redirect(goal_url(goal))


def _mine(request: ConsoleRequest, goal_id: UUID) -> Goal:
    if not may_act(request):
        raise PermissionDenied
    return get_object_or_404(Goal, project=request.project, pk=goal_id)


@require_POST
@member_view
def answer(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Hand over an answer; the goal goes on with it."""
    goal = _mine(request, goal_id)
    form = AnswerForm(request.POST)
    if not form.is_valid():
        return show_goal(request, goal, form)
    messages.success(request, "Sent.")
    return redirect(goal_url(goal))

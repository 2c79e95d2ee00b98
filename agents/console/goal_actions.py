"""What a member may do to a goal: cancel it, answer it, undo its actions."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST

from agents.actions.applying import (
    AlreadyUndoneError,
    NothingToUndoError,
    UndoExpiredError,
    undo_actions,
)
from agents.console.goal_forms import AnswerForm, GoalForm
from agents.console.goal_page import show_goal
from agents.goals.models import Goal
from agents.goals.planning_stops import stops_of
from agents.goals.records import goal_path
from agents.goals.requests import RequestRefusedError
from agents.goals.submission import (
    AlreadyEndedError,
    NotWaitingError,
    answer_goal,
    cancel_goal,
    submit_goal,
)
from agents.llm.forms import enabled_models
from diagnostics.web.access import ConsoleRequest, member_view, require_actor
from diagnostics.web.pages import respond


@require_POST
@member_view
def cancel(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Ask for the goal to end; what runs now is ended at the next chance."""
    goal = _mine(request, goal_id)
    try:
        cancel_goal(goal)
    except AlreadyEndedError:
        messages.info(request, "The goal had ended before it could be cancelled.")
    return redirect(goal_path(goal))


@require_POST
@member_view
def answer(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Hand over an answer; the goal goes on with it."""
    goal = _mine(request, goal_id)
    form = AnswerForm(request.POST)
    if not form.is_valid():
        return show_goal(request, goal, form)
    try:
        answer_goal(goal, form.order())
    except NotWaitingError:
        messages.info(request, "The goal was not waiting for an answer any more.")
    return redirect(goal_path(goal))


@require_POST
@member_view
def undo(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Take back what the goal's actions did; what was changed again since stays."""
    goal = _mine(request, goal_id)
    try:
        undo_actions(goal)
    except (NothingToUndoError, AlreadyUndoneError, UndoExpiredError) as error:
        messages.info(request, f"Nothing was undone: {error}.")
    return redirect(goal_path(goal))


def _mine(request: ConsoleRequest, goal_id: UUID) -> Goal:
    """The goal, if it is of the project; a viewer may look, but not act."""
    goal = get_object_or_404(Goal, project=request.project, pk=goal_id)
    require_actor(request)
    return goal


SOURCE = "console"


@require_http_methods(["GET", "HEAD", "POST"])
@member_view
def goal_new(request: ConsoleRequest) -> HttpResponse:
    """Show the form; store a good one and lead to the goal's page."""
    require_actor(request)
    form = GoalForm(request.project, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = submit_goal(request.project.pk, form.order(), source=SOURCE)
            return redirect(goal_path(made))
        except RequestRefusedError as error:
            form.show_refusal(error.errors)
    context = {
        "form": form,
        "stops": stops_of(request.project),
        "no_models": not enabled_models(request.project).exists(),
        "section": "goals",
    }
    return respond(request, "goals/new", context, "Submit a goal")

"""What a member may do to a goal: submit it, cancel it, answer it, undo its actions."""

import tomllib
from pathlib import Path
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from agents.actions.applying import (
    AlreadyUndoneError,
    NothingToUndoError,
    UndoExpiredError,
    undo_actions,
)
from agents.console.goal_forms import AnswerForm, GoalForm
from agents.console.run_page import show_run
from agents.goals import submission
from agents.goals.api import GoalsView
from agents.goals.claims import stops_of
from agents.goals.models import Goal
from agents.goals.records import goal_path
from agents.goals.requests import RequestRefusedError
from agents.llm.forms import enabled_models
from diagnostics.accounts.audit_log import note, noting
from diagnostics.console.exports import stream_list
from diagnostics.figures import read_number
from diagnostics.web.pages import (
    ConsoleRequest,
    member_action,
    member_form,
    member_page,
    require_actor,
    respond,
)


@member_action
def cancel(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Ask for the goal to end; what runs now is ended at the next chance."""
    goal = _mine(request, goal_id)
    try:
        with noting(goal.project_id, request.user, "goal.cancelled", goal.correlation_id):
            submission.cancel_goal(goal)
    except submission.AlreadyEndedError:
        messages.info(request, "The goal had already ended.")
    return redirect(goal_path(goal))


@member_action
def answer(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Hand over an answer; the goal goes on with it."""
    goal = _mine(request, goal_id)
    form = AnswerForm(request.POST)
    if not form.is_valid():
        return show_run(request, goal.correlation_id, goal, form)
    try:
        with noting(goal.project_id, request.user, "goal.answered", goal.correlation_id):
            submission.answer_goal(goal, form.order(), read_number(request.POST.get("cycle")))
    except submission.NotWaitingError:
        messages.info(request, "The goal no longer waits for this answer.")
    return redirect(goal_path(goal))


@member_action
def undo(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Take back what the goal's actions did; what was changed again since stays."""
    goal = _mine(request, goal_id)
    try:
        with noting(goal.project_id, request.user, "goal.undone", goal.correlation_id):
            undo_actions(goal)
    except (NothingToUndoError, AlreadyUndoneError, UndoExpiredError) as error:
        messages.info(request, f"Not undone: {error}.")
    return redirect(goal_path(goal))


def _mine(request: ConsoleRequest, goal_id: UUID) -> Goal:
    """The goal, if it is of the project; a viewer may look, but not act."""
    goal = get_object_or_404(Goal, project=request.project, pk=goal_id)
    require_actor(request)
    return goal


SOURCE = "console"
PATTERNS = tomllib.loads(Path(__file__).with_name("goal_patterns.toml").read_text("utf-8"))


@member_form
def goal_new(request: ConsoleRequest) -> HttpResponse:
    require_actor(request)
    form = GoalForm(request.project, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            key = form.idempotency_key()
            with transaction.atomic():
                goal = submission.submit_goal(request.project.pk, form.order(), key, source=SOURCE)
                note(goal.project_id, request.user, "goal.submitted", goal.correlation_id)
            return redirect(goal_path(goal))
        except RequestRefusedError as error:
            form.show_refusal(error.errors)
    context = {
        "form": form,
        "stops": stops_of(request.project),
        "no_models": not enabled_models(request.project).exists(),
        "section": "runs",
        **PATTERNS,
    }
    return respond(request, "goals/new", context, "New goal")


@require_safe
def patterns(request: HttpRequest) -> HttpResponse:
    """Show example goals; open to everybody, for it holds nothing of anybody."""
    return render(request, "goals/patterns.html", {**PATTERNS, "section": "runs"})


@member_page
def export_goals(request: ConsoleRequest, ending: str) -> HttpResponse:
    return stream_list(request, GoalsView, "goals", ending)

"""A goal's page: what was asked, every attempt, the plan and its steps, what was told."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from agents.core.badges import goal_badge, outcome_badge
from agents.core.headlines import goal_headline
from agents.core.responding import PATTERNS_PATH
from agents.forms import AnswerForm
from agents.models import Attempt, Goal
from agents.reading import goal_record
from agents.views.actions import ActionsCard, actions_of
from agents.views.decisions import decision_rows
from agents.views.goal_links import find_goal, goal_url
from agents.views.goal_rescue import rescue_of
from agents.views.moments import cycles_of
from agents.views.outside import show_outside
from agents.views.runs import runs_of
from agents.views.sightings import sightings_of
from diagnostics.core.wording import duration, plural
from diagnostics.models import Event
from diagnostics.queries.events import payloads_of
from diagnostics.views.access import ConsoleRequest, may_act, member_view
from diagnostics.views.pages import respond

MOST_EVENTS = 200
AROUND = timedelta(hours=1)
TONES_OF_VERDICT = {
    "queued": "quiet",
    "running": "live",
    "waiting_user": "warn",
    "cancelled": "quiet",
}
LIVE = frozenset({"queued", "running"})


@require_safe
@member_view
def goal(request: ConsoleRequest, reference: str) -> HttpResponse:
    """Show one goal, or the events of an outside agent's run.

    A foreign and an unknown reference are both not found.
    """
    found = find_goal(request.project.pk, reference)
    if found is None:
        return show_outside(request, reference)
    return show_goal(request, found, AnswerForm())


@require_safe
@member_view
def export_goal(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Give everything that is known of a goal as JSON, redacted as the API gives it."""
    found = get_object_or_404(Goal, project=request.project, pk=goal_id)
    answer = JsonResponse(goal_record(found), json_dumps_params={"indent": 2})
    answer["Content-Disposition"] = f'attachment; filename="goal-{found.pk}.json"'
    answer["Cache-Control"] = "private, no-store"
    return answer


def show_goal(request: ConsoleRequest, found: Goal, answer: AnswerForm) -> HttpResponse:
    """Render the page of a goal, with the answer form as it stands."""
    first = request.GET.get("from", "")
    context = {
        **goal_context(found, int(first) if first.isascii() and first.isdigit() else 0),
        "answer_form": answer,
        "may_act": may_act(request),
        "section": "goals",
    }
    return respond(request, "goals/goal", context)


def goal_context(found: Goal, first_step: int) -> Mapping[str, Any]:
    """Read everything the page of a goal shows."""
    attempts = list(found.attempts.order_by("called_at", "pk"))
    runs = runs_of(found.project_id, found.correlation_id, first_step)
    meta = runs[-1].run.meta if runs else None
    task_status = runs[-1].run.task_status if runs else None
    actions = actions_of(found)
    events = _events(found)
    seen = sightings_of(found.project_id, events, payloads_of(events))
    return {
        "goal": found,
        "url": goal_url(found),
        "badge": goal_badge(found.status, task_status),
        "outcome": outcome_badge(found.outcome),
        "verdict_tone": _verdict_tone(found, task_status, actions),
        "headline": _headline(found, attempts, meta, actions),
        "actions": actions,
        "decisions": decision_rows(found),
        "cycles": cycles_of(attempts, events, [view.run for view in runs], seen),
        "runs": runs,
        "undecided": [view for view in runs if view.undecided or view.is_poison],
        "calls": len(attempts),
        "rescue": rescue_of(found, attempts),
        "tokens": sum((a.input_tokens or 0) + (a.output_tokens or 0) for a in attempts),
        "called_ms": sum(a.latency_ms or 0 for a in attempts),
        "took": found.ended_at - found.created_at if found.ended_at else None,
        "live": found.status in LIVE,
        "settings": _settings(found.retry),
        "budget": _budget_words(found.budget),
        "patterns_path": PATTERNS_PATH,
    }


def _settings(chosen: Mapping[str, object]) -> list[tuple[str, object]]:
    """Name the switches and limits the goal was submitted with."""
    words = {True: "yes", False: "no"}
    return [
        (name.replace("_", " "), words[value] if isinstance(value, bool) else value)
        for name, value in chosen.items()
        if value is not None
    ]


def _budget_words(budget: Mapping[str, Any]) -> str:
    """Write the ceilings of a goal: 10 calls, 20,000 tokens, 5 min."""
    told = [plural(budget[f"{one}s"], one) for one in ("call", "token") if budget.get(f"{one}s")]
    told += [duration(budget["seconds"])] if budget.get("seconds") else []
    waited = budget.get("waited_seconds")
    told += [f"{duration(waited)} of waiting not counted"] if waited else []
    return ", ".join(told)


def _headline(
    found: Goal,
    attempts: Sequence[Attempt],
    meta: Mapping[str, object] | None,
    actions: ActionsCard | None,
) -> str:
    told = goal_headline(
        status=found.status,
        outcome=found.outcome,
        phase=found.pdca_phase,
        mode=found.mode,
        attempts=len(attempts),
        meta=meta,
        evaluation=found.execution_eval,
    )
    return f"{told}; {actions.told}" if actions and actions.was_planned else told


def _verdict_tone(found: Goal, task_status: str | None, actions: ActionsCard | None) -> str:
    if found.status == Goal.Status.COMPLETED:
        if found.outcome == Goal.Outcome.STUBBED:
            return "bad"
        is_partial = task_status == "PARTIAL" or (actions and actions.is_partial)
        return "warn" if is_partial else "good"
    return TONES_OF_VERDICT.get(found.status, "bad")


def _events(found: Goal) -> list[Event]:
    """The goal's events, looked for around its own time: whole days are skipped."""
    events = Event.objects.filter(
        project_id=found.project_id,
        correlation_id=found.correlation_id,
        occurred_at__gte=found.created_at - AROUND,
    )
    if found.ended_at:
        events = events.filter(occurred_at__lte=found.ended_at + AROUND)
    return list(events.order_by("occurred_at", "event_id")[:MOST_EVENTS])

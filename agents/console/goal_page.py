"""What the page of a run reads of a goal: attempts, plan runs, decisions, actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404

from agents.badges import GOAL_STATUS, Badge, goal_badge, outcome_badge
from agents.breakers.models import Breaker
from agents.console.headlines import goal_headline
from agents.console.moments import cycles_of, sightings_of
from agents.console.run_reading import run_cards
from agents.goals.events import CHECK_NODE
from agents.goals.models import ActionBatch, Attempt, Goal
from agents.goals.records import goal_record
from agents.goals.state import PATTERNS_PATH
from diagnostics import clock
from diagnostics.figures import duration, plural
from diagnostics.prices.retry_budgets import Rescue, next_attempt
from diagnostics.queries.call_counts import CALLS, LADDERS, tallies_of
from diagnostics.queries.models import sums_between
from diagnostics.queries.series import window_for
from diagnostics.selection.query_language import Term
from diagnostics.store.leases import UNFINISHED
from diagnostics.store.models import Event, payloads_of
from diagnostics.web.pages import ConsoleRequest, member_page
from failsoft.actions.entries import TOOLSETS
from plans.checks.rows import checks_of

SHORT = 8
# Shown apart from the other fields of an action.
APART = frozenset({"type", "id", "entry_id", "content"})


@dataclass(frozen=True, slots=True)
class ActionsCard:
    """A batch of actions; `can_undo` while there is something to take back."""

    batch: ActionBatch
    applied: Sequence[Mapping[str, Any]]
    can_undo: bool

    @property
    def was_planned(self) -> bool:
        """Whether the planner's answer held actions, applied or not."""
        return bool(self.applied or self.batch.execution_failed)

    @property
    def is_partial(self) -> bool:
        return bool(self.batch.parse_failed or self.batch.execution_failed)

    @property
    def clause(self) -> str:
        summary = self.batch.summary
        return f"{summary[:1].lower()}{summary[1:]}"


def actions_of(goal: Goal) -> ActionsCard | None:
    """The actions of a goal; None for another mode, and before they are applied."""
    if goal.mode != Goal.Mode.ACTIONS:
        return None
    batch = ActionBatch.objects.filter(goal=goal).first()
    if batch is None:
        return None
    past = {tool.type: tool.past for tool in TOOLSETS[batch.toolset].tools}
    rows = [
        {
            "past": past.get(action["type"], action["type"]),
            "entry": action["entry_id"][:SHORT],
            "content": action.get("content"),
            "fields": [
                (name.replace("_", " "), value)
                for name, value in action.items()
                if name not in APART and value is not None
            ],
            "was_kept": action["entry_id"] in batch.kept,
        }
        for action in batch.applied
    ]
    return ActionsCard(batch, rows, bool(rows) and batch.undone_at is None)


MOST_SHOWN = 50
BADGES: dict[str, Badge] = {
    "complete": ("good", "complete"),
    "incomplete": ("warn", "incomplete"),
    "undecidable": ("bad", "undecidable"),
    "failed": ("bad", "checker failed"),
    "running": ("live", "checking"),
    "interrupted": ("quiet", "interrupted"),
}


def decision_rows(goal: Goal) -> list[Mapping[str, Any]]:
    """The checks of a goal with their badges, newest first; none for a goal without a check."""
    if goal.completion_check is None:
        return []
    newest = checks_of(goal).order_by("-pk")[:MOST_SHOWN]
    return [
        {
            "check": check,
            "badge": BADGES[check.decision or check.state],
            "took": check.ended_at - check.started_at if check.ended_at else None,
        }
        for check in newest
    ]


SPAN = timedelta(days=30)
DEGRADED = (Goal.Outcome.DEGRADED, Goal.Outcome.STUBBED)


def rescue_of(goal: Goal, attempts: Sequence[Attempt]) -> Rescue | None:
    """Measure the next attempt in the goal's own series, over the last 30 days.

    `attempts` are all of the goal, oldest first; the last ladder counts. None for goals
    that did not degrade, and where too few went further to tell.
    """
    if goal.outcome not in DEGRADED or not attempts or goal.language_model is None:
        return None
    last, model = attempts[-1], goal.language_model
    spent = sum((attempt.cycle, attempt.node) == (last.cycle, last.node) for attempt in attempts)
    terms = (
        Term("environment", goal.environment),
        Term("node", last.node),
        Term("provider", model.provider.name),
        Term("model", model.name),
    )
    now = clock.now()
    window = window_for(now - SPAN, now, terms, now)
    sums = sums_between(goal.project_id, window, terms, (*CALLS, *LADDERS))
    return next_attempt(tallies_of(sums), spent)


MOST_EVENTS = 200
# The wire counts every call as a retry, the first one too.
SETTINGS = {"max_retries": "max_attempts"}
# What the page of a run says elsewhere.
REPEATED = frozenset({"provider", "model", "attempts"})
AROUND = timedelta(hours=1)


@member_page
def export_goal(request: ConsoleRequest, goal_id: UUID) -> HttpResponse:
    """Return everything that is known of a goal as JSON, redacted as the API gives it."""
    goal = get_object_or_404(Goal, project=request.project, pk=goal_id)
    answer = JsonResponse(goal_record(goal), json_dumps_params={"indent": 2})
    answer["Content-Disposition"] = f'attachment; filename="goal-{goal.pk}.json"'
    return answer


def goal_context(goal: Goal, first_step: int) -> Mapping[str, Any]:
    attempts = list(goal.attempts.order_by("called_at", "pk"))
    runs = run_cards(goal, first_step)
    meta = runs[-1].run.meta if runs else None
    task_status = runs[-1].run.task_status if runs else None
    actions = actions_of(goal)
    is_isolated = _is_isolated(goal)
    retry_at = (goal.execution_eval or {}).get("retry_at")
    if is_isolated or goal.status != Goal.Status.QUEUED:
        retry_at = None
    # Looked for around the goal's own time: whole days are skipped.
    own_events = Event.objects.filter(
        project_id=goal.project_id,
        correlation_id=goal.correlation_id,
        occurred_at__gte=goal.created_at - AROUND,
    )
    if goal.ended_at:
        own_events = own_events.filter(occurred_at__lte=goal.ended_at + AROUND)
    events = list(own_events.order_by("occurred_at", "event_id")[:MOST_EVENTS])
    sightings = sightings_of(goal.project_id, events, payloads_of(events))
    return {
        "goal": goal,
        "badge": goal_badge(goal.status, task_status),
        "outcome": outcome_badge(goal.outcome),
        "tone": _verdict_tone(goal, task_status, actions),
        "headline": _headline(goal, attempts, meta, actions, is_isolated=is_isolated),
        "next_attempt": datetime.fromisoformat(retry_at) if retry_at else None,
        "actions": actions,
        "decisions": decision_rows(goal),
        "cycles": cycles_of(attempts, events, [view.run for view in runs], sightings),
        "plan_runs": runs,
        "undecided": [view for view in runs if view.undecided or view.is_poison],
        "calls": len(attempts),
        "rescue": rescue_of(goal, attempts),
        "tokens": sum((a.input_tokens or 0) + (a.output_tokens or 0) for a in attempts),
        "called_ms": sum(a.latency_ms or 0 for a in attempts),
        "took": goal.ended_at - goal.created_at if goal.ended_at else None,
        "live": goal.status in UNFINISHED,
        "settings": _settings(goal.retry),
        "budget": _budget_words(goal.budget),
        "last_error": [
            (name.replace("_", " "), value)
            for name, value in (goal.last_validation_error or {}).items()
            if name not in REPEATED
        ],
        "patterns_path": PATTERNS_PATH,
    }


def _is_isolated(goal: Goal) -> bool:
    """Whether a goal waits for a breaker that only a person closes."""
    model, reason = goal.language_model, (goal.execution_eval or {}).get("reason")
    if model is None or (goal.status, reason) != (Goal.Status.QUEUED, Goal.Outcome.CIRCUIT_OPEN):
        return False
    breakers = Breaker.objects.filter(
        project_id=goal.project_id, provider=model.provider.name, model=model.name
    )
    return breakers.filter(state=Breaker.State.ISOLATED, operation=goal.mode).exists()


def _settings(chosen: Mapping[str, object]) -> list[tuple[str, object]]:
    words = {True: "yes", False: "no"}
    return [
        (
            SETTINGS.get(name, name).replace("_", " "),
            words[value] if isinstance(value, bool) else value,
        )
        for name, value in chosen.items()
        if value is not None
    ]


def _budget_words(budget: Mapping[str, Any]) -> str:
    """Write the ceilings of a goal: 10 calls, 20,000 tokens, 5 min."""
    words = [plural(budget[f"{of}s"], of) for of in ("call", "token") if budget.get(f"{of}s")]
    words += [duration(budget["seconds"])] if budget.get("seconds") else []
    waited = budget.get("waited_seconds")
    words += [f"{duration(waited)} of waiting not counted"] if waited else []
    return ", ".join(words)


def _headline(
    goal: Goal,
    attempts: Sequence[Attempt],
    meta: Mapping[str, object] | None,
    actions: ActionsCard | None,
    *,
    is_isolated: bool,
) -> str:
    words = goal_headline(
        status=goal.status,
        outcome=goal.outcome,
        phase=goal.pdca_phase,
        mode=goal.mode,
        attempts=len(attempts),
        longest=max((one.attempt for one in attempts if one.node != CHECK_NODE), default=0),
        meta=meta,
        evaluation=goal.execution_eval,
        is_isolated=is_isolated,
    )
    return f"{words}; {actions.clause}" if actions and actions.was_planned else words


def _verdict_tone(goal: Goal, task_status: str | None, actions: ActionsCard | None) -> str:
    if goal.status == Goal.Status.COMPLETED:
        if goal.outcome == Goal.Outcome.STUBBED:
            return "bad"
        is_partial = task_status == "PARTIAL" or (actions and actions.is_partial)
        return "warn" if is_partial else "good"
    return GOAL_STATUS[goal.status]

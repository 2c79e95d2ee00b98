"""Goals as records, for the API and the commands."""

import re
from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from pydantic import Field, PlainSerializer, WithJsonSchema

from agents.goals.events import CHECK_NODE, model_name, provider_name
from agents.goals.models import ActionBatch, Attempt, Goal
from agents.goals.policies import WAITED
from agents.goals.state import GoalBudget, GoalMode, Phase, PlanningOutcome, Status, TaskState
from diagnostics.ingest.event_shapes import describe_event
from diagnostics.rest.resources import Json, Resource
from diagnostics.store.models import events_of, payloads_of
from failsoft.identifiers import read_uuid
from failsoft.json_values import clean_text
from plans.checks.rows import checks_of
from plans.models.check import CompletionCheck
from plans.models.run import Run
from plans.runs.records import results_of

STATE_FIELDS = tuple(TaskState.model_fields)
AS_TEXT = ("event_id", "occurred_at", "received_at")
# Columns left out of a row's record: its owner, and what the record has elsewhere.
_PATTERNS = ("told_patterns", "withheld_patterns")
_OMITTED = frozenset({"id", "project", "goal", "owner", "correlation_id", "run", *_PATTERNS})
PLAN_GENERATION_FAILED = "PlanGenerationFailed"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@~-]*(/[A-Za-z0-9][A-Za-z0-9._:@~-]*)*")
BUDGET_FIELDS = (*GoalBudget.model_fields, WAITED)
# Commands print records too: as text, like every response.
Moment = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Identity = Annotated[
    UUID, PlainSerializer(str), WithJsonSchema({"type": "string", "format": "uuid"})
]

PLAN_SOURCES: dict[str, Any] = {"enum": ["planner", "stub", "given"]}


class QueuedGoal(Resource):
    id: Identity
    correlation_id: str
    # Without a name: there are others of this one.
    status: Annotated[Status, WithJsonSchema({"type": "string", "enum": [*Status]})]
    url: str


class GoalSummary(QueuedGoal):
    """One goal of a list; its text is redacted and cut."""

    reference: Annotated[str, Field(validation_alias="correlation_id")]
    goal: Annotated[str, Field(validation_alias="text_preview")]
    mode: GoalMode
    runner: str
    outcome: PlanningOutcome | None
    # The column has no constraint: a list is answered whatever a row holds.
    source: Annotated[str, Field(validation_alias="plan_source", json_schema_extra=PLAN_SOURCES)]
    provider: str | None
    model: str | None
    cycle: int
    user_text: str
    help: list[str]
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None


class ActionsResource(Resource):
    """The results of a goal's actions; absent in every other mode.

    `parse_failed` counts entries; `kept` are those an undo skipped, because they changed since.
    """

    toolset: str = ""
    applied: list[Json] = []
    parse_failures: list[Json] = []
    execution_failures: list[Json] = []
    parse_failed: int = 0
    execution_failed: int = 0
    summary: str = ""
    undone_at: Moment | None = None
    kept: list[str] = []


class GoalResource(GoalSummary, ActionsResource):
    """The full record of a goal, redacted."""

    pdca_phase: Phase
    last_validation_error: Json | None
    execution_eval: Json | None
    next_user_question: str | None
    state: Annotated[Json, Field(description="the state contract under one key")]
    error: Annotated[Json | None, Field(description="all attempts of the last cycle were invalid")]
    constraints: list[Json]
    tools: list[str] | None
    retry: Json
    budget: Json
    max_iterations: int
    attempts: list[Json]
    events: list[Json]
    plan: Json | None
    results: list[Json]
    runs: list[Json]
    completion_check: Json | None
    decisions: list[Json]


def goals_of(project_id: int) -> QuerySet[Goal]:
    goals = Goal.objects.filter(project_id=project_id)
    return goals.select_related("language_model__provider").order_by("-id")


def goal_path(goal: Goal) -> str:
    """Return the path of a goal's page: by its correlation id if a path can contain it."""
    reference = goal.correlation_id
    return run_path(reference if is_plain(reference) else str(goal.pk))


def run_path(reference: str) -> str:
    if is_plain(reference):
        return reverse("run", args=[reference])
    return f"{reverse('find_goal')}?{urlencode({'reference': reference})}"


def is_plain(reference: str) -> bool:
    return PLAIN.fullmatch(reference) is not None


def page_of(
    goals: QuerySet[Goal], limit: int, cursor: UUID | None
) -> tuple[list[Goal], str | None]:
    """Return one page and the next cursor; ids carry the time, so pages are stable."""
    rows = list((goals.filter(pk__lt=cursor) if cursor else goals)[: limit + 1])
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], str(rows[limit - 1].pk)


def find_goal(project_id: int, reference: str) -> Goal | None:
    goals = goals_of(project_id)
    goal = goals.filter(correlation_id=clean_text(reference)).first()
    if goal is None and (identity := read_uuid(reference)) is not None:
        goal = goals.filter(pk=identity).first()
    return goal


def goal_record(goal: Goal) -> dict[str, Any]:
    runs = list(runs_of(goal))
    last = runs[-1] if runs else None
    state = {name: getattr(goal, name) for name in STATE_FIELDS}
    newest_first = events_of(goal.project_id).filter(correlation_id=goal.correlation_id)
    events = list(newest_first.order_by("occurred_at", "event_id"))
    payloads = payloads_of(events)
    items = (describe_event(event, payloads.get(event.event_id)) for event in events)
    return {
        **goal_summary(goal),
        **state,
        "state": state,
        "error": planning_error(goal),
        "constraints": goal.constraints,
        "tools": goal.tools,
        "retry": goal.retry,
        "budget": {key: goal.budget[key] for key in BUDGET_FIELDS if key in goal.budget},
        "max_iterations": goal.max_iterations,
        "attempts": [_row_record(row) for row in goal.attempts.order_by("cycle", "pk")],
        "events": [
            item | {name: str(item[name]) for name in AS_TEXT if name in item} for item in items
        ],
        "plan": last.payload if last else None,
        "results": results_of(last) if last else [],
        "runs": [_run(run) for run in runs],
        "completion_check": goal.completion_check,
        "decisions": [decision_record(row) for row in checks_of(goal)],
        **actions_record(goal),
    }


def decided_checks(goal: Goal) -> list[CompletionCheck]:
    rows = checks_of(goal)
    return list(rows.filter(state=CompletionCheck.State.DECIDED))


def feedback_of(goal: Goal) -> str:
    """Return what the last check found missing, for the next cycle; empty if there was none."""
    last = next(reversed(decided_checks(goal)), None)
    if last is None:
        return ""
    return "; ".join(last.reasons) or last.reason or last.decision or ""


def decision_record(row: CompletionCheck) -> dict[str, Any]:
    """Return the record of one check; `failed` is true only for a checker that crashed."""
    record = _row_record(row)
    del record["preview"]
    return {**record, "failed": row.state == CompletionCheck.State.FAILED}


def owners_of_workspaces(folders: Collection[str]) -> dict[str, int]:
    """Return the project of each folder: of the goal of this id, or the first to name it."""
    checks = Goal.objects.filter(completion_check__has_key="workspace").order_by("-id")
    owned_paths = checks.values_list("completion_check__workspace", "project_id")
    owners = {(path or "").partition("/")[0]: project for path, project in owned_paths}
    ids = [goal_id for name in folders if (goal_id := read_uuid(name))]
    owned_ids = Goal.objects.filter(pk__in=ids).values_list("pk", "project_id")
    owners |= {str(goal_id): project for goal_id, project in owned_ids}
    return {name: owners[name] for name in folders if name in owners}


def planning_error(goal: Goal) -> dict[str, Any] | None:
    """`PlanGenerationFailed`: all attempts of the last cycle were invalid."""
    if goal.last_validation_error is None:
        return None
    planned = goal.attempts.filter(cycle=goal.cycle).exclude(node=CHECK_NODE)
    last = planned.order_by("-attempt").first()
    return {
        "code": PLAN_GENERATION_FAILED,
        "attempts": goal.last_validation_error.get("attempts"),
        "last_error": {"type": last.error_type, "errors": last.errors}
        if last is not None
        else None,
    }


def actions_record(goal: Goal) -> dict[str, Any]:
    """Return the results of a goal's actions; empty for a goal of another mode."""
    if goal.mode != Goal.Mode.ACTIONS:
        return {}
    batch = ActionBatch.objects.filter(goal=goal).first()
    return ActionsResource.dump(batch or ActionBatch(toolset=goal.toolset or ""))


def goal_summary(goal: Goal) -> dict[str, Any]:
    computed = {"provider": provider_name(goal), "model": model_name(goal), "url": goal_path(goal)}
    return GoalSummary.dump({**vars(goal), **computed})


def runs_of(goal: Goal) -> QuerySet[Run]:
    runs = Run.objects.filter(project_id=goal.project_id, correlation_id=goal.correlation_id)
    return runs.order_by("cycle", "id")


def _run(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "cycle": run.cycle,
        "state": run.state,
        "task_status": run.task_status,
        "contract_version": run.contract_version,
        "plan": run.payload,
        "results": results_of(run),
    }


def _row_record(row: Attempt | CompletionCheck) -> dict[str, Any]:
    names = [field.name for field in row._meta.concrete_fields if field.name not in _OMITTED]
    values = {name: getattr(row, name) for name in names}
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in values.items()}

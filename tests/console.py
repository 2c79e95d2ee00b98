"""Builders that the tests of the console share."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User

from agents.goals.models import Attempt, Goal
from agents.llm.models import LanguageModel, Provider
from diagnostics import clock
from diagnostics.accounts.models import Membership, Project
from diagnostics.ingest.recording import record
from diagnostics.store import aggregation
from failsoft.events import PostedEvent
from failsoft.identifiers import uuid7
from plans.models.run import Run, RunStep
from tests.diagnostics.builders import degraded, succeeded

Role = Membership.Role


def make_member(project: Project, name: str = "ann", role: Role = Role.OPERATOR) -> User:
    """Give a person who is a member of the project."""
    user, _ = User.objects.get_or_create(username=name)
    Membership.objects.create(project=project, user=user, role=role)
    return user


def make_model(project: Project, name: str = "fake-1") -> LanguageModel:
    """Give the default model of a scripted provider."""
    provider, _ = Provider.objects.get_or_create(
        project=project,
        name="fake",
        defaults={"adapter": Provider.Adapter.SCRIPTED, "base_url": "script:tests"},
    )
    is_first = not LanguageModel.objects.filter(project=project).exists()
    made, _ = LanguageModel.objects.get_or_create(
        project=project, provider=provider, name=name, defaults={"is_default": is_first}
    )
    return made


def make_goal(project: Project, reference: str = "run-1", **fields: Any) -> Goal:
    """Give a goal that is queued, unless the fields say otherwise."""
    at: datetime = fields.pop("at", None) or clock.now()
    row: dict[str, Any] = {
        "id": uuid7(at, uuid4().bytes),
        "project": project,
        "correlation_id": reference,
        "text_preview": "Say hello",
        "language_model": fields.get("language_model") or make_model(project),
        **fields,
    }
    goal = Goal.objects.create(**row)
    Goal.objects.filter(pk=goal.pk).update(created_at=at)
    goal.created_at = at
    return goal


def make_attempt(goal: Goal, number: int = 1, **fields: Any) -> Attempt:
    """Give an attempt of a goal: invalid, with one located error."""
    row: dict[str, Any] = {
        "node": "plan",
        "cycle": 1,
        "state": Attempt.State.INVALID,
        "error_type": "schema_invalid",
        "errors": [
            {
                "path": "/steps/0/tool",
                "code": "missing",
                "message": "field required",
                "line": 2,
                "column": 3,
            }
        ],
        "preview": '{"steps": [\n  {"step_id": "step_1"}\n]}',
        "provider": "fake",
        "model": "fake-1",
        "output_mode": "text",
        "max_output_tokens": 512,
        "temperature": 0.2,
        "timeout_seconds": 60,
        "latency_ms": 1840,
        "input_tokens": 911,
        "output_tokens": 12,
        "finish_reason": "stop",
        "called_at": goal.created_at + timedelta(seconds=number),
        **fields,
    }
    return Attempt.objects.create(project=goal.project, goal=goal, attempt=number, **row)


def make_run(goal: Goal, steps: list[dict[str, Any]], meta: dict[str, Any]) -> Run:
    """Give an ended run of a goal and make it the current one."""
    run = Run.objects.create(
        id=uuid4(),
        project=goal.project,
        correlation_id=goal.correlation_id,
        payload={"steps": []},
        contract_version="1.0.0",
        state=Run.State.ENDED,
        task_status=meta["task_status"],
        meta=meta,
    )
    for position, step in enumerate(steps):
        row = {"state": RunStep.State.FINAL, "tool": "echo", **step}
        RunStep.objects.create(project=goal.project, run=run, position=position, **row)
    Goal.objects.filter(pk=goal.pk).update(current_run=run)
    return run


def make_meta(status: str, ok: int, failed: int, skipped: int) -> dict[str, Any]:
    """Give a `__meta__` entry with these counts."""
    return {
        "step_id": "__meta__",
        "ok": status == "COMPLETED",
        "skipped": False,
        "reason": None if status == "COMPLETED" else "step_2 failed",
        "task_status": status,
        "stats": {
            "total_steps": ok + failed + skipped,
            "ok": ok,
            "skipped": skipped,
            "failed": failed,
        },
        "blocked_steps": [],
        "failed_steps": [],
    }


def recently() -> datetime:
    """Return a moment some five minutes ago; the minute before it lies in one slot of ten."""
    moment = clock.now() - timedelta(minutes=5)
    return moment if moment.minute % 10 else moment - timedelta(minutes=2)


def post_events(project: Project, *events: dict[str, Any]) -> None:
    """Record events as an agent sends them."""
    record(project.pk, [PostedEvent.model_validate(event) for event in events])


def post_and_fold(project: Project, *events: dict[str, Any]) -> None:
    """Record events, and count them among the failures."""
    post_events(project, *events)
    aggregation.fold()


def post_runs(project: Project, good: int, bad: int, at: datetime, **fields: object) -> list[UUID]:
    """Record runs that ended up to a time, one second apart, bad ones evenly among good ones."""
    total = good + bad
    steps = [number * bad // max(total, 1) for number in range(total + 1)]
    sent = [degraded if before < after else succeeded for before, after in pairwise(steps)]
    events = [
        PostedEvent.model_validate(
            build(
                **{
                    "occurred_at": (at - timedelta(seconds=number)).isoformat(),
                    "correlation_id": f"run-{uuid4().hex[:8]}",
                    **fields,
                }
            )
        )
        for number, build in enumerate(sent)
    ]
    record(project.pk, events)
    return [event.event_id for event in events]

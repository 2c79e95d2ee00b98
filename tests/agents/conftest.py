"""A project with a scripted planner, and one process that is web, worker and relay at once."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from agents.cycle import running
from agents.goals.models import Goal
from agents.goals.records import goal_record
from agents.goals.submission import submit_goal
from agents.llm import registry
from agents.llm.models import LanguageModel, Provider
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import OutboxMessage
from plans.runs import running as plan_running
from tests.scripted import SCRIPTS, ScriptedProvider

SCRIPT = "tests"
CALL_ECHO = '{"kind": "call_tool", "tool": "echo", "args": {"text": "hello"}}'
ASK = '{"kind": "ask_user", "question": "Which city?", "need": "input"}'
FINISH = '{"kind": "finish", "answer": "All done."}'
PLAN = '{"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {"text": "hi"}}}]}'
Reply = str | Mapping[str, Any]
Record = dict[str, Any]


@dataclass
class Planner:
    """The scripted planner of a project, and what can be done with it."""

    project: Project
    language_model: LanguageModel
    script: ScriptedProvider = field(default_factory=lambda: ScriptedProvider([]))

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.script.requests)

    @property
    def prompts(self) -> list[str]:
        """What it was asked."""
        return [request.user for request in self.script.requests]

    def will_say(self, *replies: Reply) -> None:
        """Set the replies, in order."""
        self.script = SCRIPTS[SCRIPT] = ScriptedProvider(replies)

    def submit(self, goal: str = "Say hello", mode: str = "next_step", **order: Any) -> Goal:
        """Queue a goal."""
        return submit_goal(self.project.pk, {"goal": goal, "mode": mode, **order})

    def run(self, *replies: Reply, **order: Any) -> Record:
        """Submit a goal to a planner with these replies, work it off, read the record."""
        self.will_say(*replies)
        return self.finish(self.submit(**order))

    def finish(self, goal: Goal) -> Record:
        """Do what the workers would do until nothing is enqueued; read the record."""
        work_off()
        return goal_record(Goal.objects.get(pk=goal.pk))


TASKS: dict[str, Callable[..., None]] = {
    "agents.tasks.run_goal": running.run_goal,
    "plans.tasks.execute_run": plan_running.execute_run,
    "plans.tasks.execute_steps": plan_running.execute_steps,
}


def work_off() -> None:
    """Execute what is enqueued, oldest first, in this process."""
    enqueued = OutboxMessage.objects.order_by("available_at", "pk")
    while (message := enqueued.first()) is not None:
        let_time_pass_until(message.available_at)
        message.delete()
        TASKS[message.task](*message.kwargs.values())


def let_time_pass_until(at: datetime) -> None:
    """Put the database's clock on, if it is not that late yet (C15)."""
    ahead = at - clock.now()
    if ahead > timedelta(0):
        let_time_pass(ahead.total_seconds())


def let_time_pass(seconds: float) -> None:
    """Put the database's clock on, for as long as the test's transaction lasts."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('failsoft.clock_shift', (coalesce(nullif("
            "current_setting('failsoft.clock_shift', true), ''), '0')::interval"
            " + make_interval(secs => %s))::text, true)",
            [seconds],
        )


def events_named(record: Record, kind: str) -> list[Record]:
    """The events of a record whose name ends so, in the order of time."""
    return [event for event in record["events"] if event["name"].endswith(f".{kind}")]


def tables_holding(text: str) -> list[str]:
    """The tables in which a text stands anywhere, in any column."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        found = []
        for table in tables:
            query = f'SELECT count(*) FROM "{table}" AS t WHERE strpos(t::text, %s) > 0'  # noqa: S608 - names from the catalogue
            cursor.execute(query, [text])
            if cursor.fetchone()[0]:
                found.append(table)
    return found


class Api:
    """A client that holds a key of the project."""

    def __init__(self, key: str) -> None:
        self._client = Client()
        self._headers = {"Authorization": f"Bearer {key}"}

    def get(self, path: str, **query: str) -> Any:
        """GET below /api/v1/."""
        return self._client.get(f"/api/v1/{path}", query, headers=self._headers)

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        """POST JSON, or bytes as they are, below /api/v1/."""
        return self._client.post(
            f"/api/v1/{path}",
            body if body is not None else {},
            content_type="application/json",
            headers={**self._headers, **headers},
        )

    def put(self, path: str, body: object) -> Any:
        """PUT JSON below /api/v1/."""
        return self._client.put(
            f"/api/v1/{path}", body, content_type="application/json", headers=self._headers
        )

    def metrics(self) -> str:
        """What Prometheus would read on the machine itself: all projects."""
        return self._client.get("/metrics").content.decode()


@pytest.fixture
def project(db: None) -> Project:
    """A project of its own."""
    return Project.objects.create(slug="lab", name="Lab")


@pytest.fixture
def planner(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planner]:
    """A project whose default model answers from a script."""
    monkeypatch.setattr(registry, "open_script", SCRIPTS.__getitem__)
    provider = Provider.objects.create(
        project=project, name="fake", adapter=Provider.Adapter.SCRIPTED, base_url=SCRIPT
    )
    model = LanguageModel.objects.create(
        project=project, provider=provider, name="fake-1", is_default=True
    )
    yield Planner(project, model)
    SCRIPTS.clear()


@pytest.fixture
def api(project: Project) -> Api:
    """A client with every scope in the project."""
    return Api(issue_key(project, "tests", list(Scope)).text)

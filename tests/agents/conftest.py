"""A project with a scripted planner, and one process that is web, worker and relay at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents import running
from agents.models import Goal, LanguageModel, Provider
from agents.providers.scripted import SCRIPTS, ScriptedProvider
from agents.reading import goal_record
from agents.submitting import submit_goal
from diagnostics.models import OutboxMessage, Project
from plans import running as plan_running

SCRIPT = "tests"
Reply = str | Mapping[str, Any]


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

    def submit(
        self, goal: str = "Say hello", mode: str = "next_step", **order: Any
    ) -> Goal:  # noqa: ANN401 - any field
        """Queue a goal."""
        return submit_goal(self.project.pk, {"goal": goal, "mode": mode, **order}).goal

    def run(self, *replies: Reply, **order: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
        """Submit a goal to a planner with these replies, work it off, read the record."""
        self.will_say(*replies)
        return self.finish(self.submit(**order))

    def finish(self, goal: Goal) -> dict[str, Any]:
        """Do what the workers would do until the outbox is empty; read the record."""
        work_off()
        return goal_record(Goal.objects.get(pk=goal.pk))


def work_off() -> None:
    """Execute what is enqueued, oldest first, in this process."""
    tasks: dict[str, Callable[..., None]] = {
        "agents.tasks.run_goal": running.run_goal,
        "plans.tasks.execute_run": plan_running.execute_run,
    }
    while (message := OutboxMessage.objects.order_by("pk").first()) is not None:
        message.delete()
        tasks[message.task](*message.kwargs.values())


@pytest.fixture
def project(db: None) -> Project:
    """A project of its own."""
    return Project.objects.create(slug="lab", name="Lab")


@pytest.fixture
def planner(project: Project) -> Iterator[Planner]:
    """A project whose default model answers from a script."""
    provider = Provider.objects.create(
        project=project,
        name="fake",
        adapter=Provider.Adapter.SCRIPTED,
        base_url=f"memory:{SCRIPT}",
    )
    model = LanguageModel.objects.create(
        project=project, provider=provider, name="fake-1", is_default=True
    )
    yield Planner(project, model)
    SCRIPTS.clear()


def names_of(events: Iterable[Mapping[str, Any]], kind: str = "") -> list[str]:
    """The names of events, of one kind when it is given."""
    return [event["name"] for event in events if event["name"].endswith(kind)]

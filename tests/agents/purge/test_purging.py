"""A purge by command: goals, runs and events of one reference, and nothing else."""

import sys
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from agents.demo.loading import load
from agents.goals.models import Attempt, Goal
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.store.models import Event
from plans.checks.workspaces import clear_decision_file, workspace_of
from plans.models.check import CompletionCheck
from plans.models.run import Run, WorkingItem
from tests.console import make_goal
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = Project.objects.create(slug="p", name="P")
    load(project, clock.now(), volume=0.02)
    return project


def purge(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    call_command("purge", "--project", "p", *words)
    return capsys.readouterr().out


@pytest.mark.slow
def test_one_reference_goes_and_the_others_stay(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    goal = Goal.objects.exclude(outcome=None).filter(attempts__isnull=False).first()
    assert goal is not None
    others, reference = Goal.objects.count() - 1, goal.correlation_id
    WorkingItem.objects.create(
        project=project, owner=f"goal:{goal.pk}", name="text", ciphertext=b"x"
    )
    assert "1 goal," in purge(capsys, "--correlation-id", reference)
    assert Goal.objects.count() == others
    assert not Attempt.objects.filter(goal_id=goal.pk).exists()
    assert not Run.objects.filter(correlation_id=reference).exists()
    assert not Event.objects.filter(correlation_id=reference).exists()
    assert not WorkingItem.objects.exists()
    assert Event.objects.exists()
    assert purge(capsys, "--correlation-id", reference).startswith("Deleted: 0 events")


def test_what_its_checks_wrote_goes_with_a_goal(
    capsys: pytest.CaptureFixture[str], settings: Any, tmp_path: Path
) -> None:
    settings.FAILSOFT_WORKSPACE_DIR = tmp_path
    project = Project.objects.create(slug="p", name="P")
    goals = [make_goal(project, name, status="failed") for name in ("gone", "kept")]
    for goal in goals:
        clear_decision_file(workspace_of(project.pk, str(goal.pk)), "decision.json")
        CompletionCheck.objects.create(
            project=project,
            owner=f"goal:{goal.pk}",
            correlation_id=goal.correlation_id,
            check_id=str(uuid4()),
            kind="command",
            cycle=1,
            iteration=1,
            preview="what it printed",
        )
    purge(capsys, "--correlation-id", "gone")
    assert CompletionCheck.objects.get().correlation_id == "kept"
    assert [path.name for path in (tmp_path / str(project.pk)).iterdir()] == [str(goals[1].pk)]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_everything_is_not_deleted_without_a_terminal_or_yes(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = Goal.objects.count()
    with pytest.raises(CommandError, match=f"{goals} goals, .* confirm with --yes"):
        purge(capsys, "--everything")
    assert Goal.objects.count() == goals


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "is_gone"), [("p\n", True), ("P\n", False)])
def test_at_a_terminal_the_slug_is_typed(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    is_gone: bool,
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with nullcontext() if is_gone else pytest.raises(CommandError, match="nothing"):
        purge(capsys, "--everything")
    assert Goal.objects.exists() is not is_gone


@pytest.mark.slow
def test_a_dry_run_counts_and_deletes_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    told = purge(capsys, "--everything", "--dry-run")
    counts = (Event.objects.count(), Goal.objects.count(), Run.objects.count())
    assert told == "Would delete: {:,} events, {} goals, {} runs.\n".format(*counts)


def test_everything_recorded_of_a_project_goes_and_its_settings_stay(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Project.objects.create(slug="o", name="O")
    record(other.pk, [make_event()])
    purge(capsys, "--everything", "--yes")
    assert Goal.objects.count() == Run.objects.count() == 0
    assert Event.objects.get().project_id == other.pk
    assert project.providers.exists()


def test_what_is_still_at_work_is_refused(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    Goal.objects.filter(project=project).update(status=Goal.Status.RUNNING)
    with pytest.raises(CommandError, match="cancel them first"):
        purge(capsys, "--everything", "--yes")
    assert Event.objects.exists()


def test_an_unknown_project_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="'p'"):
        purge(capsys, "--correlation-id", str(uuid4()))

"""What a project may call: everything, but what was denied to it."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from diagnostics.accounts.models import Project
from failsoft.plans.execution import CallContext, ToolRefusedError
from plans.models.run import RunStep
from plans.models.tool import ProjectToolPolicy
from plans.runs.running import execute_run
from plans.runs.submission import submit_run
from plans.tools.registry import call_tool, offered_tools, set_allowed

pytestmark = pytest.mark.django_db


def names_for(project: Project) -> list[str]:
    return [tool.name for tool in offered_tools(project.pk)]


def test_a_denied_tool_is_neither_offered_nor_called(project: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    set_allowed(project.pk, "echo", allowed=False)
    assert "echo" not in names_for(project)
    assert "echo" in names_for(other)
    with pytest.raises(ToolRefusedError) as refused:
        call_tool("echo", {"a": 1}, CallContext(project_id=project.pk))
    assert refused.value.reason == "tool_not_allowed"
    assert call_tool("echo", {"a": 1}, CallContext(project_id=other.pk)) == {"a": 1}
    assert call_tool("echo", {"a": 1}) == {"a": 1}


def test_who_changed_it_is_kept_and_it_can_be_allowed_again(project: Project) -> None:
    user = User.objects.create(username="ann")
    set_allowed(project.pk, "echo", allowed=False, by=user)
    set_allowed(project.pk, "echo", allowed=True, by=user)
    assert "echo" in names_for(project)
    policy = ProjectToolPolicy.objects.get()
    assert (policy.allowed, policy.changed_by) == (True, user)


def test_s29_steps_with_denied_and_unknown_tools_fail_with_a_reason_each(project: Project) -> None:
    set_allowed(project.pk, "template", allowed=False)
    steps: list[dict[str, Any]] = [
        {"step_id": "step_1", "tool": "template"},
        {"step_id": "step_2", "tool": "nobody_knows"},
        {"step_id": "step_3", "tool": "echo"},
    ]
    run = submit_run(project.pk, {"steps": steps}, None)
    execute_run(run.pk)
    rows = RunStep.objects.filter(run=run).order_by("position")
    assert [(step.ok, step.reason) for step in rows] == [
        (False, "tool_not_allowed"),
        (False, "tool_not_found"),
        (True, None),
    ]

"""Every command names an unknown project, and those that exist, in the same words."""

import pytest
from django.core.management import CommandError, call_command

from diagnostics.accounts.models import Project

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "words",
    [
        ("create_key", "--name", "x", "--scope", "read"),
        ("load_demo",),
        ("purge", "--everything"),
        ("run_goal", "examples/agent-pr-loop.yaml"),
        ("run_plan", "examples/plan.json", "--runner", "distributed"),
        ("submit_goal", "Echo"),
    ],
    ids=lambda words: words[0],
)
def test_an_unknown_project_is_refused_with_those_that_exist(words: tuple[str, ...]) -> None:
    for slug in ("beta", "alpha"):
        Project.objects.create(slug=slug, name=slug)
    with pytest.raises(CommandError) as refusal:
        call_command(*words, "--project", "nope")
    assert str(refusal.value) == "project 'nope' not found; known: alpha, beta"

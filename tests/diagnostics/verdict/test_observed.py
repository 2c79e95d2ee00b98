"""What was observed to change of who answers stands in the verdict's reason."""

from datetime import timedelta

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.statuses import verdict_within
from diagnostics.ingest import answerers
from diagnostics.selection.selection import Selection
from tests.console import post_runs
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def afternoon(db: None) -> None:
    """Where all runs lie within one slot: those that fail come first."""
    shift_clock()


@pytest.mark.parametrize(("changed", "is_told"), [("gpt-4o", True), ("gpt-5", False)])
def test_a_change_of_the_model_that_is_hit_is_told(
    project: Project,
    changed: str,
    is_told: bool,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    now = clock.now()
    for at, bad, served in ((now - timedelta(days=2), 0, "old"), (now, 60, "new")):
        answerers._quiet.clear()
        with django_capture_on_commit_callbacks(execute=True):
            for model in ("gpt-4o", "gpt-5"):
                answered = served if model == changed else model
                failed = bad if model == "gpt-4o" else 0
                told = {"model": model, "served_model": answered}
                post_runs(project, 100 - failed, 0, at - timedelta(minutes=20), **told)
                post_runs(project, 0, failed, at - timedelta(minutes=15), **told)
    verdict = verdict_within(project.pk, Selection(), now)
    assert verdict.state == "degrading"
    assert ("The served model changed from old to new at" in verdict.sentence) is is_told

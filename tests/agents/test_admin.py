"""Providers and models are set up in the administration; work can only be looked at."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.demonstrating import load
from agents.models import Attempt, Goal, LanguageModel, Provider
from diagnostics.models import Project
from plans.models import Run, RunStep

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)
WORK = (
    ("agents/goal", Goal),
    ("agents/attempt", Attempt),
    ("plans/run", Run),
    ("plans/runstep", RunStep),
)


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="p", name="P")


@pytest.mark.parametrize(
    ("page", "model"),
    [*WORK, ("agents/provider", Provider), ("agents/languagemodel", LanguageModel)],
)
def test_every_list_and_row_can_be_looked_at(
    admin: Client, project: Project, page: str, model: type[Goal]
) -> None:
    load(project, NOW, volume=0.001)
    row = model.objects.filter(project=project).earliest("pk")
    assert admin.get(f"/admin/{page}/").status_code == 200
    assert admin.get(f"/admin/{page}/{row.pk}/change/").status_code == 200


@pytest.mark.parametrize("page", [page for page, _ in WORK])
def test_work_cannot_be_added(admin: Client, page: str) -> None:
    assert admin.get(f"/admin/{page}/add/").status_code == 403


def test_a_provider_is_added_with_a_reference(admin: Client, project: Project) -> None:
    form = {
        "project": project.pk,
        "name": "openai",
        "adapter": "openai",
        "credential": "env:OPENAI_API_KEY",
        "enabled": "on",
        "language_models-TOTAL_FORMS": 0,
        "language_models-INITIAL_FORMS": 0,
    }
    assert admin.post("/admin/agents/provider/add/", form).status_code == 302
    assert Provider.objects.get(project=project).credential == "env:OPENAI_API_KEY"


def test_a_credential_that_is_a_value_is_refused(
    admin: Client, project: Project
) -> None:
    form = {
        "project": project.pk,
        "name": "openai",
        "adapter": "openai",
        "credential": "a plain value",
        "language_models-TOTAL_FORMS": 0,
        "language_models-INITIAL_FORMS": 0,
    }
    assert admin.post("/admin/agents/provider/add/", form).status_code == 200
    assert not Provider.objects.filter(project=project).exists()

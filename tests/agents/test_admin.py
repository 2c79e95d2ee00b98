"""The administration shows providers, models, breakers and work; the console changes them."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.breakers.models import Breaker
from agents.demo.loading import load
from agents.goals.models import Attempt, Goal
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.models import Project
from plans.models.run import Run, RunStep

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_times_and_choices_are_written_as_in_the_console(admin: Client, project: Project) -> None:
    load(project, NOW, volume=0.001)
    html = admin.get("/admin/agents/goal/").content.decode()
    assert re.search(r"2026-11-2\d \d\d:\d\d:\d\d UTC", html)
    assert "p.m." not in html
    assert ">Ok first</td>" in html
    assert "Ok First" not in html
    assert "<h1>Data</h1>" in admin.get("/admin/").content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("page", ["diagnostics/storedevent", "agents/attempt"])
def test_events_and_attempts_are_searched_and_never_changed(
    admin: Client, project: Project, page: str
) -> None:
    load(project, NOW, volume=0.001)
    html = admin.get(f"/admin/{page}/", {"q": "demo-goal-01"}).content.decode()
    assert 'id="searchbar"' in html
    assert "0 results" not in html
    assert admin.get(f"/admin/{page}/add/").status_code == 403


@pytest.mark.parametrize("page", [page for page, _ in WORK])
def test_work_cannot_be_added(admin: Client, page: str) -> None:
    assert admin.get(f"/admin/{page}/add/").status_code == 403


@pytest.mark.parametrize("page", ["provider", "languagemodel", "breaker"])
def test_what_the_console_changes_is_read_only_here(
    admin: Client, project: Project, page: str
) -> None:
    provider = Provider.objects.create(project=project, name="openai", adapter="openai")
    LanguageModel.objects.create(project=project, provider=provider, name="gpt")
    Breaker.objects.create(
        project=project, provider="openai", model="gpt", operation="plan", kind="transport"
    )
    assert "openai" in admin.get(f"/admin/agents/{page}/").content.decode()
    assert admin.get(f"/admin/agents/{page}/add/").status_code == 403
    rows = {"provider": Provider, "languagemodel": LanguageModel, "breaker": Breaker}
    [row] = rows[page]._default_manager.all()
    address = f"/admin/agents/{page}/{row.pk}/change/"
    assert admin.get(address).status_code == 200
    assert admin.post(address, {"enabled": "", "state": "open"}).status_code == 403

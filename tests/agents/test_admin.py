"""Providers and models are set up in the administration; work can only be looked at."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission, User
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


def test_a_credential_that_is_a_value_is_refused(admin: Client, project: Project) -> None:
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


@pytest.fixture
def breaker(project: Project) -> Breaker:
    provider = Provider.objects.create(
        project=project, name="openai", adapter=Provider.Adapter.OPENAI
    )
    LanguageModel.objects.create(project=project, provider=provider, name="gpt")
    return Breaker.objects.create(
        project=project,
        provider="openai",
        model="gpt",
        operation="plan",
        kind=Breaker.Kind.TRANSPORT,
    )


def act(client: Client, action: str, breaker: Breaker) -> int:
    form = {"action": action, "_selected_action": [breaker.pk]}
    return client.post("/admin/agents/breaker/", form).status_code


def test_somebody_isolates_a_breaker_and_closes_it_and_is_named(
    admin: Client, breaker: Breaker
) -> None:
    assert act(admin, "isolate", breaker) == 302
    breaker.refresh_from_db()
    assert breaker.state == "isolated"
    listed = admin.get("/admin/agents/languagemodel/").content.decode()
    assert "plan transport: isolated" in listed

    assert act(admin, "close", breaker) == 302
    breaker.refresh_from_db()
    assert breaker.state == "closed"
    history = breaker.transitions.order_by("pk").values_list("to_state", "actor")
    assert list(history) == [("isolated", "root"), ("closed", "root")]
    page = admin.get(f"/admin/agents/breaker/{breaker.pk}/change/")
    assert page.status_code == 200
    assert "isolated" in page.content.decode()


def test_who_may_only_look_cannot_act_on_a_breaker(breaker: Breaker) -> None:
    person = User.objects.create_user("eve", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_breaker"))
    client = Client()
    client.force_login(person)
    assert client.get("/admin/agents/breaker/").status_code == 200
    act(client, "isolate", breaker)
    breaker.refresh_from_db()
    assert breaker.state == "closed"


def test_a_breaker_and_its_history_cannot_be_edited(admin: Client, breaker: Breaker) -> None:
    assert admin.get("/admin/agents/breaker/add/").status_code == 403
    address = f"/admin/agents/breaker/{breaker.pk}/change/"
    assert admin.post(address, {"state": "open"}).status_code == 403

"""The wallboard: no session, no payload, until an administrator revokes it."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project, Wallboard
from diagnostics.accounts.projects import ensure_default_project
from diagnostics.accounts.wallboards import address_of
from diagnostics.alerting.incident_models import Incident
from diagnostics.store.aggregation import fold
from diagnostics.verdict.wording import Sentence, write_sentence
from tests.console import Role, make_member, post_runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(db: None, settings: Any) -> Project:
    settings.FAILSOFT_REQUIRE_MFA = False
    return ensure_default_project()


@pytest.fixture
def admin(project: Project) -> Client:
    made = Client()
    made.force_login(make_member(project, role=Role.ADMIN))
    return made


@pytest.fixture
def path(admin: Client) -> str:
    """The path of a wallboard that an administrator has created."""
    admin.post("/settings/wallboards/", {"name": "NOC"})
    address = address_of(Wallboard.objects.get())
    assert address in admin.get("/settings/wallboards/").text
    return address.removeprefix(django_settings.FAILSOFT_BASE_URL)


def open_incident(project: Project, lead: str, **fields: Any) -> Incident:
    now = clock.now()
    told = {"told": write_sentence(Sentence(lead, now, ""))}
    return Incident.objects.create(
        project=project, title="m", onset=now, fired_at=now, verdict=told, **fields
    )


def test_it_shows_incidents_and_models_to_nobody_in_particular(project: Project, path: str) -> None:
    post_runs(project, 40, 0, clock.now() - timedelta(minutes=5), model="gpt-5", provider="openai")
    fold()
    open_incident(project, "Degrading since")
    answer = Client().get(path)
    assert "Degrading since" in answer.text
    assert ", warning, not acknowledged" in answer.text
    assert "openai/gpt-5" in answer.text
    assert "<title>(1) Default" in answer.text
    assert 'http-equiv="refresh"' in answer.text
    assert not answer.cookies
    assert "no-store" in answer["Cache-Control"]


def test_calm_and_empty_projects_say_so(path: str) -> None:
    page = Client().get(path).text
    assert "No open incidents." in page
    assert "Waiting for the first event." in page


def test_incidents_of_other_projects_and_resolved_ones_are_left_out(
    project: Project, path: str
) -> None:
    other = Project.objects.create(slug="other", name="Other")
    open_incident(other, "Theirs")
    open_incident(project, "Ended", state="resolved", cleared_at=clock.now())
    page = Client().get(path).text
    assert "Theirs" not in page
    assert "Ended" not in page


def test_many_incidents_are_counted(project: Project, path: str) -> None:
    for number in range(6):
        open_incident(project, f"Number {number}")
    assert "+2 more incidents" in Client().get(path).text


def test_a_revoked_or_forged_address_is_not_found(admin: Client, path: str) -> None:
    forged = path[:-3] + ("AA/" if path[-3:-1] != "AA" else "BB/")
    assert Client().get(forged).status_code == 404
    assert Client().get("/wallboard/1/").status_code == 404
    row = Wallboard.objects.get()
    admin.post(f"/settings/wallboards/{row.pk}/revoke/")
    assert Client().get(path).status_code == 404
    noted = AuditEntry.objects.filter(action__startswith="wallboard.").order_by("number")
    assert [entry.action for entry in noted] == ["wallboard.created", "wallboard.revoked"]


def test_only_administrators_create_and_revoke(project: Project, path: str) -> None:
    operator = Client()
    operator.force_login(make_member(project, "olga"))
    assert operator.post("/settings/wallboards/", {"name": "Mine"}).status_code == 403
    row = Wallboard.objects.get()
    assert operator.post(f"/settings/wallboards/{row.pk}/revoke/").status_code == 403
    assert Client().get(path).status_code == 200


def test_it_neither_keeps_a_session_open_nor_ends_with_one(
    admin: Client, path: str, settings: Any
) -> None:
    session = admin.session
    session["stamps"] = [0, 0]
    session.save()
    assert admin.get(path).status_code == 200
    assert admin.session["stamps"] == [0, 0]


def test_a_post_changes_nothing(path: str) -> None:
    assert Client().post(path).status_code == 405

"""The administration shows everything and changes little."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from diagnostics.core.api_keys import Scope
from diagnostics.models import ApiKey, Heartbeat, Project
from diagnostics.outbox import enqueue
from diagnostics.projects import issue_key
from tests.diagnostics.builders import AT

pytestmark = pytest.mark.django_db
PAGES = ("project", "apikey", "outboxmessage", "heartbeat")


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("page", PAGES)
def test_every_list_and_row_can_be_looked_at(admin: Client, page: str) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.READ])
    message = enqueue("a.task", {}, "fold", None)
    Heartbeat.objects.create(name="beat", at=AT)
    rows = dict(zip(PAGES, (project.pk, key.row.pk, message.pk, "beat"), strict=True))
    assert admin.get(f"/admin/diagnostics/{page}/").status_code == 200
    answer = admin.get(f"/admin/diagnostics/{page}/{rows[page]}/change/")
    assert answer.status_code == 200
    assert bytes(key.row.secret_hash).hex() not in answer.text


@pytest.mark.parametrize("page", PAGES[1:])
def test_rows_of_the_product_cannot_be_added(admin: Client, page: str) -> None:
    assert admin.get(f"/admin/diagnostics/{page}/add/").status_code == 403


def test_a_key_is_revoked(admin: Client) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.READ]).row
    chosen = {"action": "revoke", "_selected_action": [key.pk]}
    admin.post("/admin/diagnostics/apikey/", chosen)
    assert ApiKey.objects.get().revoked_at is not None

"""A database that is away is told as such, with a time to come back."""

import pytest
from django.db import OperationalError
from django.test import Client

from diagnostics.access.projects import issue_key
from diagnostics.api import events
from diagnostics.core.api_keys import Scope
from diagnostics.models import Event, Project
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db


def test_a_post_that_cannot_be_stored_is_503_with_retry_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.INGEST]).text

    def lose_connection(project_id: int, *given: object) -> None:
        raise OperationalError("server closed the connection: password in here")

    monkeypatch.setattr(events, "record", lose_connection)
    answer = Client(headers={"Authorization": f"Bearer {key}"}).post(
        "/api/v1/events", [wire_event()], content_type="application/json"
    )
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert "password" not in answer.text
    assert Event.objects.count() == 0

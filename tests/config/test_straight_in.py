"""Telemetry passes by the middleware of pages; what protects answers stays."""

import json

import pytest
from django.test import Client, override_settings

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.diagnostics.builders import succeeded

pytestmark = pytest.mark.django_db
URL = "/api/v1/events"


@pytest.fixture
def headers() -> dict[str, str]:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.INGEST]).text
    return {"Authorization": f"Bearer {key}"}


def test_an_event_is_taken_and_its_answer_is_protected(headers: dict[str, str]) -> None:
    body = json.dumps([succeeded()])
    answer = Client().post(URL, body, content_type="application/json", headers=headers)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 1
    assert answer.headers["Content-Length"] == str(len(answer.content))
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_no_session_is_asked_for(headers: dict[str, str]) -> None:
    client = Client()
    client.cookies["sessionid"] = "made-up"
    answer = client.post(URL, "[]", content_type="application/json", headers=headers)
    assert answer.status_code == 200
    assert "Vary" not in answer.headers or "Cookie" not in answer.headers["Vary"]


@pytest.mark.parametrize("path", [URL, "/api/v1/outcomes", "/v1/traces", "/v1/logs"])
def test_who_has_no_key_is_told_so(path: str) -> None:
    answer = Client().post(path, "[]", content_type="application/json")
    assert answer.status_code == 401
    assert answer.headers["X-Frame-Options"] == "DENY"


@override_settings(ALLOWED_HOSTS=["here"])
def test_another_name_of_ours_is_refused(headers: dict[str, str]) -> None:
    client = Client(SERVER_NAME="elsewhere")
    answer = client.post(URL, "[]", content_type="application/json", headers=headers)
    assert answer.status_code == 400


def test_reading_goes_the_usual_way() -> None:
    assert Client().get(URL).status_code == 401

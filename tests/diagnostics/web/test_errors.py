"""What a reader sees when a page of ours breaks."""

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError
from django.template.loader import get_template
from django.test import Client, RequestFactory
from django.urls import resolve
from pytest_django import Settings
from structlog.testing import capture_logs

from diagnostics.web.errors import server_error


@pytest.fixture(autouse=True)
def _views() -> None:
    """Import views and tags: one imported while a name is patched keeps the patched one."""
    resolve("/")
    get_template("base.html")


def test_page_has_an_id_that_is_in_the_log(
    rf: RequestFactory, caplog: pytest.LogCaptureFixture
) -> None:
    answer = server_error(rf.get("/goals/"))
    found = re.search(r"<code>([0-9a-f]{12})</code>", answer.content.decode())
    assert answer.status_code == 500
    assert found is not None
    assert found[1] in caplog.text


@pytest.mark.django_db
def test_broken_page_is_answered_with_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("canary-of-the-cause")

    monkeypatch.setattr("diagnostics.web.pages.memberships_of", broken)
    client.force_login(User.objects.create(username="ann"))
    client.raise_request_exception = False
    answer = client.get("/")
    assert answer.status_code == 500
    assert b"Internal error" in answer.content
    assert b"canary" not in answer.content


def test_a_page_without_its_static_files_says_what_to_run(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    storage = "whitenoise.storage.CompressedManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": storage}}
    settings.STATIC_ROOT = tmp_path
    client.raise_request_exception = False
    with capture_logs() as lines:
        answer = client.get("/accounts/login/")
    assert answer.status_code == 500
    assert b"<code>manage.py collectstatic</code>" in answer.content
    (line,) = [line for line in lines if line["event"] == "static_files_missing"]
    assert "manage.py collectstatic" in line["remedy"]


def lose_database(*_: object) -> None:
    raise OperationalError("password in here")


@pytest.fixture
def without_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A signed-in reader whose database is lost with the next query of a page."""
    client.force_login(User.objects.create(username="ann"))
    client.raise_request_exception = False
    monkeypatch.setattr("diagnostics.web.pages.memberships_of", lose_database)
    return client


@pytest.mark.django_db
def test_page_without_a_database_is_503_and_says_how_to_go_on(without_database: Client) -> None:
    answer = without_database.get("/failures/?range=7d&q=a&b")
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert "Database unavailable" in answer.text
    assert 'href="/failures/?range=7d&amp;q=a&amp;b"' in answer.text
    assert "password" not in answer.text


@pytest.mark.django_db
def test_form_sent_without_a_database_is_to_be_sent_again_not_opened(
    without_database: Client,
) -> None:
    answer = without_database.post("/views/save/", {"name": "mine"})
    assert answer.status_code == 503
    assert "submit it again" in answer.text
    assert "Try again" not in answer.text


@pytest.mark.django_db
def test_session_that_cannot_be_read_is_503_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(User.objects.create(username="ann"))
    client.raise_request_exception = False
    monkeypatch.setattr(SessionStore, "load", lose_database)
    assert client.get("/").status_code == 503


def test_metrics_without_a_database_are_a_line_with_a_time_to_come_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.raise_request_exception = False
    monkeypatch.setattr("diagnostics.metrics.read_counts", lose_database)
    answer = client.get("/metrics")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer["Content-Type"].startswith("text/plain")
    assert answer.text == "the database does not answer\n"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "wait"), [("/api/v1/goals", "5"), ("/api/v1/series", "5"), ("/v1/traces", "2")]
)
def test_program_without_a_database_is_answered_503_as_json(
    client: Client, monkeypatch: pytest.MonkeyPatch, path: str, wait: str
) -> None:
    client.raise_request_exception = False
    monkeypatch.setattr("diagnostics.accounts.authentication.find_key", lose_database)
    answer = client.get(path, headers={"Authorization": "Bearer fs_x"})
    if path.startswith("/v1/"):
        answer = client.post(
            path, {}, content_type="application/json", headers={"Authorization": "x"}
        )
    assert (answer.status_code, answer["Retry-After"]) == (503, wait)
    assert answer["Content-Type"] == "application/json"


@pytest.mark.django_db
def test_address_that_the_api_does_not_have_is_404_as_json(client: Client) -> None:
    answer = client.get("/api/v1/nothing")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"
    assert answer.json()["detail"].endswith("/api/docs/ lists what there is.")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/api/v1/events/", "/api/v1/events"),
        ("/api//v1/events", "/api/v1/events"),
        ("/v1/traces/", "/v1/traces"),
        ("/v1/traces/v1/traces", "/v1/traces"),
        ("/api/v1/traces", "/v1/traces"),
        ("/api/v1/api/v1/events", "/api/v1/events"),
    ],
)
def test_an_address_with_something_too_much_is_answered_with_the_right_one(
    client: Client, path: str, right: str
) -> None:
    answer = client.post(path, {}, content_type="application/json")
    detail = f"There is nothing at this address; did you mean {right}?"
    assert (answer.status_code, answer.json()["detail"]) == (404, detail)

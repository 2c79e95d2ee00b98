"""Every refusal has `detail` and `code`; a database that is away is 503."""

import pytest
from django.db import OperationalError
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.api import events
from diagnostics.store.models import Event
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db


def test_a_post_that_cannot_be_stored_is_503_with_retry_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.INGEST]).text

    def lose_connection(project_id: int, *given: object) -> None:
        raise OperationalError("server closed the connection: password in here")

    monkeypatch.setattr(events, "record_calls", lose_connection)
    answer = Client(headers={"Authorization": f"Bearer {key}"}).post(
        "/api/v1/events", [wire_event()], content_type="application/json"
    )
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert "password" not in answer.text
    assert Event.objects.count() == 0


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("events", {"Authorization": ""}, 401, "authentication_failed"),
        ("events", {"Accept": "image/png"}, 406, "not_acceptable"),
        ("incidents/9", {}, 404, "not_found"),
        ("nothing", {}, 404, "not_found"),
        ("series?foo=1", {}, 400, "unknown_parameter"),
        ("events?foo=1", {}, 400, "unknown_parameter"),
        ("events?limit=x", {}, 400, "invalid"),
        ("events?limit=x&foo=1", {}, 400, "unknown_parameter"),
        ("rejects?cursor=x", {}, 400, "bad_cursor"),
        ("silences/9", {}, 405, "method_not_allowed"),
    ],
)
def test_every_refusal_has_a_detail_and_a_code(
    path: str, headers: dict[str, str], status: int, code: str
) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", list(Scope)).text
    sent = {"Authorization": f"Bearer {key}", **headers}
    answer = Client(headers=sent).get(f"/api/v1/{path}")
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code)
    assert body["detail"]
    assert "matches the given query" not in body["detail"]
    if "foo=1" in path and "limit" not in path:
        assert body["foo"] == "unknown parameter"
        assert body["detail"] == "foo: unknown parameter"


def test_a_row_that_is_not_there_is_not_found_in_our_words() -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", list(Scope)).text
    client = Client(headers={"Authorization": f"Bearer {key}"})
    answer = client.post(
        "/api/v1/breakers/9/isolate", {"reason": "x"}, content_type="application/json"
    )
    assert answer.json() == {"detail": "Not found.", "code": "not_found"}


JSON, TEXT = "application/json", "text/plain"
NOTHING = "There is nothing at this address; /api/docs/ lists what there is."


@pytest.mark.parametrize(
    ("method", "url", "kind", "status", "sentence"),
    [
        ("GET", "/api/v1/events", JSON, 403, "This needs the scope read; the key has ingest."),
        ("POST", "/api/v1/goals", JSON, 403, "This needs the scope admin; the key has ingest."),
        ("POST", "/api/v1/deploys", TEXT, 415, f"Content-Type must be {JSON}, got {TEXT}."),
        ("POST", "/v1/traces", TEXT, 415, f"or application/x-protobuf, got {TEXT}."),
        ("PATCH", "/api/v1/schemas/a", JSON, 405, "PATCH is not allowed here; allowed: DELETE,"),
        ("GET", "/api/events", JSON, 404, NOTHING),
        # Where an exporter sends spans whose address has no path.
        ("POST", "/", "application/x-protobuf", 404, NOTHING),
    ],
)  # fmt: skip
def test_a_refusal_of_a_program_says_what_to_send(
    method: str, url: str, kind: str, status: int, sentence: str
) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.INGEST]).text
    client = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})
    answer = client.generic(method, url, b"{}", content_type=kind)
    assert answer.status_code == status
    assert sentence in answer.json().get("detail", answer.json().get("message"))

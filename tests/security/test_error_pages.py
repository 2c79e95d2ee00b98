"""Error pages of our own: an id that is in the log, and nothing of what went wrong (S27)."""

import re
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import DatabaseError
from django.http import Http404
from django.test import Client

from diagnostics.accounts.models import Project
from tests.console import make_member

pytestmark = pytest.mark.django_db
ID = re.compile(r"<code>([0-9a-f]{12})</code>")
FAULTS: tuple[Callable[[str], Exception], ...] = (
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    DatabaseError,
    OSError,
    AssertionError,
    RecursionError,
    LookupError,
    lambda text: UnicodeDecodeError("utf-8", text.encode(), 0, 1, text),
    lambda text: ExceptionGroup(text, [ValueError(text)]),
    lambda text: type(text.replace("-", "_"), (Exception,), {})(text),
)
REFUSALS = ((PermissionDenied, 403), (Http404, 404), (SuspiciousOperation, 400))


@pytest.fixture
def client(client: Client) -> Client:
    client.force_login(make_member(Project.objects.create(slug="p", name="P")))
    client.raise_request_exception = False
    return client


def broken(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("diagnostics.web.pages.memberships_of", fail)


@pytest.mark.parametrize("place", range(len(FAULTS)))
def test_s27_no_exception_is_shown(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: int
) -> None:
    canary = f"canary-{secrets.token_hex(8)}"
    broken(monkeypatch, FAULTS[place](canary))
    for headers in ({}, {"HX-Request": "true"}, {"Accept": "application/json"}):
        caplog.clear()
        answer = client.get("/account/", headers=headers)
        page = answer.content.decode()
        assert answer.status_code == 500
        assert canary not in page + str(answer.headers)
        assert "Traceback" not in page
        found = ID.search(page)
        assert found is not None
        assert found[1] in caplog.text


@pytest.mark.parametrize(("kind", "status"), REFUSALS, ids=["403", "404", "400"])
def test_refusals_have_an_id_and_no_reason(
    client: Client, monkeypatch: pytest.MonkeyPatch, kind: Any, status: int
) -> None:
    canary = f"canary-{secrets.token_hex(8)}"
    broken(monkeypatch, kind(canary))
    answer = client.get("/account/")
    assert answer.status_code == status
    assert ID.search(answer.content.decode())
    assert canary not in answer.content.decode()


def test_a_form_without_its_token_is_told_so() -> None:
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/accounts/login/", {"login": "a", "password": "b"})
    assert answer.status_code == 403
    assert "expired" in answer.content.decode()
    assert ID.search(answer.content.decode())


def test_too_many_tries_have_a_page(settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login": "1/m/ip"}
    told = {"login": "nobody", "password": "x"}
    Client().post("/accounts/login/", told)
    answer = Client().post("/accounts/login/", told)
    assert answer.status_code == 429
    assert "Too many attempts" in answer.content.decode()

"""A page whose query takes too long is stopped by the server, and says what to do."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.http import HttpResponse
from django.test import RequestFactory
from django_htmx.middleware import HtmxMiddleware

from diagnostics.accounts.models import Project
from diagnostics.web import pages
from diagnostics.web.pages import ConsoleRequest, member_view
from tests.console import make_member

pytestmark = pytest.mark.django_db(transaction=True)


def limit_now() -> str:
    """Ask the server what the limit of this connection is."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


@member_view
def sleeps(request: ConsoleRequest) -> HttpResponse:
    """Stand for a page whose query takes two seconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(2)")
    return HttpResponse("slept")


@member_view
def tells(request: ConsoleRequest) -> HttpResponse:
    """Say the limit that the page's queries have."""
    return HttpResponse(limit_now())


@pytest.fixture
def user() -> User:
    return make_member(Project.objects.create(slug="p", name="Planner"))


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pages, "STATEMENT_SECONDS", 0.2)
    yield
    with suppress(Exception):
        connection.close()


def asked(user: User, method: str = "get", **headers: str) -> ConsoleRequest:
    """Give a request as the middleware would leave it."""
    request: ConsoleRequest = getattr(RequestFactory(), method)(
        "/?range=30d&model=haiku&q=word", headers=headers
    )
    request.user, request.session = user, SessionStore()
    HtmxMiddleware(lambda _: HttpResponse())(request)
    return request


def test_a_page_has_five_seconds_and_the_pool_gets_a_connection_without_limit(user: User) -> None:
    before = limit_now()
    assert tells(asked(user)).content == b"5s"
    assert limit_now() == before


@pytest.mark.usefixtures("_impatient")
def test_a_query_that_takes_too_long_leads_to_a_shorter_range(user: User) -> None:
    answer = sleeps(asked(user))
    html = answer.content.decode()
    assert answer.status_code == 503
    assert "Narrow the range" in html
    assert "range=7d&amp;model=haiku" in html
    assert "range=90d" not in html
    assert "<!doctype html>" in html
    # The connection is usable, and its limit is gone.
    assert limit_now() == "0"


@pytest.mark.usefixtures("_impatient")
def test_a_fragment_is_told_where_it_belongs(user: User) -> None:
    answer = sleeps(asked(user, **{"HX-Request": "true"}))
    assert answer["HX-Retarget"] == "#page"
    assert "HX-Request" in answer["Vary"]
    assert b"<!doctype" not in answer.content


@pytest.mark.slow
@pytest.mark.usefixtures("_impatient")
def test_what_a_person_changes_is_not_cut_short(user: User) -> None:
    assert sleeps(asked(user, "post")).content == b"slept"

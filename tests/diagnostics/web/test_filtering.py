"""The filter bar: what it offers, what it says, and that a query survives the round trip."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html import unescape
from typing import Any, cast
from urllib.parse import parse_qsl

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.urls import resolve
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Project, SavedView
from diagnostics.selection.selection import Selection
from diagnostics.store.aggregation import fold
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest
from tests.console import make_member, post_runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(project: Project) -> User:
    return make_member(project)


@pytest.fixture
def client(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


def asked(user: User, path: str, sent_with: Mapping[str, Any] | None = None) -> ConsoleRequest:
    """Give a request as the middleware would leave it."""
    request = cast("ConsoleRequest", RequestFactory().get(path, sent_with))
    request.user, request.session = user, SessionStore()
    return request


class Bar:
    """A bar as a reader of a page gets it."""

    def __init__(self, user: User, project: Project, query: str = "") -> None:
        self.request = asked(user, f"/?{query}")
        self.request.project = project
        self.request.resolver_match = resolve("/")
        self.selection: Selection = read_filters(self.request)

    def html(self, **options: Any) -> str:
        """Render it."""
        frame = filter_frame(self.request, self.selection, **options)
        return render_to_string("console/_filters.html", frame, self.request)

    def links(self, **options: Any) -> list[str]:
        """Give the query strings of its links."""
        return [unescape(found) for found in re.findall(r'href="\?([^"]*)"', self.html(**options))]


def sent(html: str) -> dict[str, str]:
    """Give what the form would send as it stands, boxes that are empty left out."""
    found = dict(re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]+)"', html))
    for name, options in re.findall(r'<select name="(\w+)".*?>(.*?)</select>', html, re.DOTALL):
        if chosen := re.search(r'<option(?: value="([^"]+)")? selected>([^<]*)', options):
            found[name] = chosen[1] or chosen[2]
    ours = {key: unescape(value) for key, value in found.items()}
    return {key: value for key, value in ours.items() if key not in {"page", "query"}}


@pytest.mark.parametrize(
    "query",
    [
        "",
        "range=7d&model=haiku&environment=prod&kind=truncated&outcome=degraded&attempt=2",
        "model=-&source=-&q=-env%3Adev+%22two+words%22+model%3Ahaiku",
        "correlation_id=run-1&pointer=%2Fsteps%2F2%2Ftool&code=missing&reason=timeout",
        "from=2026-11-20T04%3A00&to=2026-11-21T05%3A30&tz=Europe%2FBerlin&node=plan",
        "tz=UTC&prompt_version=v%2B5&schema=S&release=2026.11",
    ],
)
def test_the_form_sends_what_the_page_shows(user: User, project: Project, query: str) -> None:
    first = Bar(user, project, query)
    again = Bar(user, project)
    request = asked(user, "/", sent(first.html()))
    selection = read_filters(request)
    assert (selection.terms, selection.text) == (first.selection.terms, first.selection.text)
    assert selection.window(clock.now())[0].date() == (
        first.selection.window(clock.now())[0].date()
    )
    assert selection.zone == first.selection.zone
    assert selection.query() == first.selection.query()
    assert again.selection.query() == ""


def test_every_chip_takes_out_its_filter_alone(user: User, project: Project) -> None:
    bar = Bar(user, project, "model=haiku&q=-env%3Adev+word&status=failed")
    frame = filter_frame(bar.request, bar.selection, kept=("status",))["bar"]
    told = {chip["text"]: dict(parse_qsl(chip["query"])) for chip in frame["chips"]}
    assert told == {
        "haiku": {"q": "-env:dev word", "status": "failed"},
        "-env:dev": {"model": "haiku", "q": "word", "status": "failed"},
        "word": {"model": "haiku", "q": "-env:dev", "status": "failed"},
    }
    assert dict(parse_qsl(frame["clear"])) == {"status": "failed"}


def test_a_fault_stands_beside_what_was_typed(user: User, project: Project) -> None:
    html = Bar(user, project, "q=colour%3Ared&attempt=x&tz=Nowhere").html()
    assert "unknown key colour" in html
    assert 'value="colour:red"' in html
    assert 'aria-invalid="true"' in html
    assert "Query: unknown key colour. Attempt: must be a number from 1." in html
    assert "Time zone: must be a time zone such as Europe/Berlin" in html


def test_times_are_shown_in_the_zone_that_was_asked_for(user: User, project: Project) -> None:
    query = "from=2026-07-01T10:00Z&tz=Europe/Berlin"
    html = Bar(user, project, query).html()
    assert 'value="2026-07-01T12:00"' in html
    assert 'data-tz="Europe/Berlin"' in html
    assert "data-tz" not in Bar(user, project).html()


def test_the_zone_of_the_profile_is_meant_where_none_is_asked_for(
    client: Client, user: User, project: Project
) -> None:
    bar = Bar(user, project, "from=2026-07-01T10:00")
    bar.request.session["zone"] = "Asia/Tokyo"
    selection = read_filters(bar.request)
    assert selection.begin == datetime(2026, 7, 1, 1, tzinfo=UTC)
    assert "tz=" not in selection.query()


def test_choices_are_known_values_and_never_those_of_others(user: User, project: Project) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_runs(other, 1, 0, clock.now(), model="foreign")
    post_runs(project, 1, 0, clock.now(), model="<b>ours", prompt_version="v5")
    fold()
    html = Bar(user, project).html()
    assert "&lt;b&gt;ours" in html
    assert ">v5</option>" in html
    assert "foreign" not in html


def test_single_events_are_said_to_be_of_seven_days(user: User, project: Project) -> None:
    said = "last 7 days of the range"
    assert said in Bar(user, project, "range=30d&q=word").html()
    assert said not in Bar(user, project, "range=30d&model=m").html()
    assert said not in Bar(user, project, "range=24h&q=word").html()


def test_counts_by_who_answered_are_said_to_leave_ends_of_runs_out(
    user: User, project: Project
) -> None:
    told = {"model": "gpt-4o", "served_model": "gpt-4o-mini"}
    post_runs(project, 1, 0, clock.now(), **told)
    fold()
    said = "The end of a run does not say who answered"
    assert said in Bar(user, project, "served=gpt-4o-mini").html()
    assert said in Bar(user, project, "q=-served:mini").html()
    assert said not in Bar(user, project).html()
    assert ">gpt-4o-mini</option>" in Bar(user, project).html()


def test_an_export_names_its_range(user: User, project: Project) -> None:
    html = Bar(user, project, "model=haiku").html()
    assert "/export/events.csv?model=haiku&amp;range=24h" in html
    assert "/export/events.ndjson?range=7d" in Bar(user, project, "range=7d").html()
    assert "/export/" not in Bar(user, project).html(export=None)


def test_queries_of_the_bar_are_two(
    user: User, project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        SavedView.objects.create(project=project, owner=user, name=f"view {number}", page="now")
    bar = Bar(user, project, "model=haiku")
    with django_assert_num_queries(1):  # known values are asked beside Django
        bar.html()


def test_hostile_values_stay_text(user: User, project: Project) -> None:
    nasty = '"><script>alert(1)</script>'
    html = Bar(user, project, f"model={nasty}&q={nasty}&tz={nasty}&range={nasty}").html()
    assert "<script>" not in html

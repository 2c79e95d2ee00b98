"""Every page of the console applies a filter, or marks its chip as not applied."""

import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qsl

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.demo.loading import load
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import IncidentSlice
from diagnostics.failures.models import FailureGroup
from diagnostics.selection.fields import FIELDS
from diagnostics.store.models import Series
from diagnostics.web.model_links import model_url
from tests.console import Role, make_member
from tests.console_pages import console_pages
from tests.diagnostics.alerting.notifications.building import make_incident

pytestmark = pytest.mark.django_db

NOTHING_HAS_IT = "zzz-nothing"
FILTERS = (*FIELDS, "q")
BAR, MARK = 'class="filterbar"', "not applied on this page"


class PageText(HTMLParser):
    """The text of a page without its filter bar and its times."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.inside_bar = 0
        self.is_time = False
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_time = tag == "time"
        if tag == "div" and (self.inside_bar or ("class", "filterbar") in attrs):
            self.inside_bar += 1

    def handle_endtag(self, tag: str) -> None:
        self.is_time = False
        if tag == "div" and self.inside_bar:
            self.inside_bar -= 1

    def handle_data(self, data: str) -> None:
        if not self.inside_bar and not self.is_time and data.strip():
            self.texts.append(data.strip())


@pytest.fixture
def reader(project: Project, client: Client) -> User:
    """An administrator of a project with demo data."""
    load(project, clock.now(), volume=0.02)
    named = {"environment": "prod", "node": "plan", "provider": "acme", "model": "acme-1"}
    make_incident(project)
    IncidentSlice.objects.update(slice=named)
    user = make_member(project, "boss", Role.ADMIN)
    client.force_login(user)
    return user


@pytest.mark.slow
def test_every_page_applies_a_filter_or_says_that_it_does_not(
    reader: User, project: Project, client: Client
) -> None:
    pages = {path: client.get(path).content.decode() for path in console_pages(client, project)}
    filtered = {path: PageText(html).texts for path, html in pages.items() if BAR in html}
    assert len(filtered) >= 8
    silent = [
        f"{path}?{name}"
        for path, plain in filtered.items()
        for name in FILTERS
        if not is_honest(client.get(path, {name: NOTHING_HAS_IT}).content.decode(), plain)
    ]
    assert silent == []


def is_honest(html: str, plain: list[str]) -> bool:
    """Whether a page that was asked for nothing shows something else, or says why not."""
    assert NOTHING_HAS_IT in html
    return MARK in html or PageText(html).texts != plain


@pytest.mark.slow
@pytest.mark.parametrize("name", ["outcome", "attempt"])
def test_a_value_that_a_field_cannot_have_gives_an_empty_result(
    reader: User, client: Client, name: str
) -> None:
    html = client.get("/failures/", {name: "never-heard-of", "range": "7d"}).content.decode()
    assert "never-heard-of" in html
    assert f"{name.capitalize()}: must be" in html
    assert "data-row" not in html


@pytest.mark.slow
def test_a_marked_chip_leads_to_the_failures_that_it_narrows(reader: User, client: Client) -> None:
    html = client.get("/models/", {"kind": "refusal", "model": "m"}).content.decode()
    assert html.count(MARK) == 1
    assert 'href="/failures/?model=m&amp;kind=refusal"' in html


@pytest.mark.slow
def test_a_kind_that_is_none_is_told_which_there_are(reader: User, client: Client) -> None:
    html = client.get("/failures/", {"q": 'kind:"cut off"'}).content.decode()
    assert "No kind is called cut off; kinds are not_json" in html
    assert "No kind is called" not in client.get("/failures/?kind=truncated").content.decode()


def shared_links(html: str) -> list[str]:
    """The addresses of the Share menu."""
    menu = html.partition('id="share"')[2].partition("</details>")[0]
    return [unescape(address) for address in re.findall(r'href="([^"]*)"', menu)]


@pytest.mark.slow
def test_share_is_limited_to_the_model_of_the_page(
    reader: User, project: Project, client: Client
) -> None:
    series = Series.objects.filter(project=project, provider__isnull=False).latest("pk")
    html = client.get(model_url(series.provider, series.model), {"range": "7d"}).content.decode()
    alert, compare, csv, lines = shared_links(html)
    assert [link.partition("?")[0] for link in (alert, compare, csv, lines)] == [
        "/alerts/rules/new/",
        "/compare/",
        "/export/events.csv",
        "/export/events.ndjson",
    ]
    wanted = {"provider": series.provider, "model": series.model, "range": "7d"}
    assert all(dict(parse_qsl(link.partition("?")[2])) == wanted for link in (alert, compare, csv))


def test_share_is_limited_to_the_failure_of_the_page(
    reader: User, project: Project, client: Client
) -> None:
    group = FailureGroup.objects.filter(project=project, error_type="truncated").latest("pk")
    html = client.get(f"/failures/{group.pk}/").content.decode()
    for link in shared_links(html)[:3]:
        asked = dict(parse_qsl(link.partition("?")[2]))
        assert asked.items() >= {"node": group.node, "kind": "truncated"}.items()

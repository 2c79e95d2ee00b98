"""The bar: places, help, theme, the notice, and the state of the project in the tab."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.accounts.projects import ensure_default_project
from diagnostics.alerting.incident_models import Incident
from diagnostics.ingest.models import Deploy
from diagnostics.web.navigation import DATA, MAIN, MORE, SETTINGS
from failsoft import VERSION
from tests.console import Role, make_member

pytestmark = pytest.mark.django_db
PAGES = [
    *MAIN,
    *(page for group in (*MORE.values(), *SETTINGS.values()) for page in group),
    *DATA[1:],
]


@pytest.fixture
def project(db: None, settings: Any) -> Project:
    settings.FAILSOFT_REQUIRE_MFA = False
    return ensure_default_project()


@pytest.fixture
def client(project: Project) -> Client:
    made = Client()
    made.force_login(make_member(project, role=Role.ADMIN))
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_place_of_the_bar_is_a_page_that_marks_itself(client: Client, page: Any) -> None:
    address = reverse(page.name)
    answer = client.get(address, follow=True)
    assert answer.status_code == 200
    assert 'aria-current="page"' in answer.text.partition("</header>")[0] + answer.text


def test_settings_are_five_groups_of_all_its_pages(client: Client) -> None:
    page = client.get("/settings/projects/").content.decode()
    tabs = page.partition('aria-label="Settings"')[2].partition("</nav>")[0]
    assert [name for name in SETTINGS if f"<p>{name}</p>" in tabs] == list(SETTINGS)
    assert len(SETTINGS) == 5
    assert tabs.count("<a ") == 14


@pytest.mark.parametrize(
    "path", ["/accounts/2fa/", "/accounts/password/change/", "/help/patterns/"]
)
def test_pages_of_no_project_keep_the_project_menu(client: Client, path: str) -> None:
    answer = client.get(path, follow=True)
    assert '<details class="menu project">\n<summary>Default' in answer.text


def test_the_notice_of_local_mode_stays_away_once_dismissed(client: Client) -> None:
    assert "Local mode: MFA is off." in client.get("/models/").text
    answer = client.post("/account/notice/", {"next": "/models/?range=7d"})
    assert answer["Location"] == "/models/?range=7d"
    assert "Local mode" not in client.get("/models/").text


def test_no_notice_where_mfa_is_required(client: Client, settings: Any) -> None:
    settings.FAILSOFT_REQUIRE_MFA = True
    assert "Local mode" not in client.get("/models/").text


def test_the_theme_is_switched_from_the_menu(client: Client) -> None:
    answer = client.post("/account/theme/", {"theme": "dark", "next": "//elsewhere.example/"})
    assert answer["Location"] == "/"
    assert 'data-theme="dark"' in client.get("/models/").text
    assert User.objects.get().profile.theme == "dark"
    assert client.post("/account/theme/", {"theme": "pink"}).status_code == 404


def test_title_and_icon_tell_of_an_open_incident(client: Client, project: Project) -> None:
    calm = client.get("/models/").text
    assert "<title>Models" in calm
    assert "logo-incident" not in calm
    now = clock.now()
    row = Incident.objects.create(project=project, title="m", onset=now, fired_at=now)
    assert "<title>(1) Models" in client.get("/models/").text
    part = client.get("/models/", headers={"HX-Request": "true"}).text
    assert 'id="icon"' in part
    assert "logo-incident" in part
    Incident.objects.filter(pk=row.pk).update(state="resolved", cleared_at=now)
    assert "logo-incident" not in client.get("/models/").text


def test_help_has_documents_shortcuts_and_version(client: Client) -> None:
    page = client.get("/help/").text
    for part in ('id="shortcuts"', 'id="docs"', VERSION, "Ctrl"):
        assert part in page


def test_earlier_addresses_of_the_documentation_lead_to_its_site(client: Client) -> None:
    moved = client.get("/help/docs/alerts/")
    assert (moved.status_code, moved.url) == (301, "/docs/alerts/")  # type: ignore[attr-defined]


def mark(client: Client, **fields: str) -> Any:
    told = {"kind": "release", "version": "1.4.2", **fields}
    return client.post("/deploys/", told, follow=True)


def test_an_operator_marks_a_deploy(project: Project) -> None:
    operator = Client()
    operator.force_login(make_member(project, "olga"))
    answer = mark(operator, source="bot", at="2026-01-05T10:30", tz="Europe/Oslo")
    assert "Deploy marked: release 1.4.2." in answer.text
    row = Deploy.objects.get()
    assert (row.version, row.source, row.environment) == ("1.4.2", "bot", None)
    assert row.at.isoformat() == "2026-01-05T09:30:00+00:00"
    assert AuditEntry.objects.filter(action="deploy.marked").count() == 1


def test_the_same_deploy_is_marked_once(client: Client) -> None:
    for _ in range(2):
        answer = mark(client, at="2026-01-05T10:30")
    assert "was marked before" in answer.text
    assert Deploy.objects.count() == 1


@pytest.mark.parametrize(
    "fields", [{"version": ""}, {"at": "yesterday"}, {"at": "9999-01-01T00:00"}, {"kind": "x"}]
)
def test_a_deploy_that_cannot_be_is_refused(client: Client, fields: dict[str, str]) -> None:
    assert 'class="errors"' in mark(client, **fields).text
    assert not Deploy.objects.exists()


def test_a_viewer_marks_no_deploy(project: Project) -> None:
    viewer = Client()
    viewer.force_login(make_member(project, "vera", Role.VIEWER))
    assert "Mark a deploy" not in viewer.get("/deploys/").text
    assert mark(viewer).status_code == 403


def test_sign_in_has_one_link_to_a_new_password_and_plain_labels(db: None) -> None:
    page = Client().get("/accounts/login/").text
    assert page.count("/accounts/password/reset/") == 1
    assert "Username or email" in page
    assert "create_admin" not in page


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("/accounts/password/change/", ["Change password</h1>", "Current password</label>"]),
        ("/accounts/2fa/", ["Security keys</h2>", "MFA</h1>"]),
    ],
)
def test_pages_of_the_account_have_labels_in_sentence_case(
    client: Client, path: str, labels: list[str]
) -> None:
    page = client.get(path).text
    for label in labels:
        assert label in page
    assert not re.search("(Change|Current|New) Password", page)


def test_every_form_of_a_project_names_it() -> None:
    """The tag of the library `console` adds the project; Django's own would not."""
    root = Path(__file__).parents[3] / "templates"
    own = {
        str(path.relative_to(root))
        for path in root.rglob("*.html")
        if "{% csrf_token %}" in (text := path.read_text("utf-8"))
        and not re.search(r"{% load [^%]*\bconsole\b", text)
    }
    # Of no project; a draft has the project among its fields.
    known = {"settings/invitation.html", "console/_draft.html"}
    assert {
        name for name in own - known if not name.startswith(("account/", "mfa/", "admin/"))
    } == set()

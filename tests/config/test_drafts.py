"""A form that is sent after its session ended: what was written is there after sign-in."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from config.accounts import STAMPS
from diagnostics.accounts.models import Project
from diagnostics.web.pages import DRAFT, DRAFT_CHARACTERS
from tests.agents.conftest import project as project
from tests.signing import PASSWORD, join, make_person

pytestmark = pytest.mark.django_db
PAGE = "/failures/?range=24h"
ACTION = "/failures/act/"
LOGIN = "/accounts/login/"


@pytest.fixture
def ada(project: Project) -> User:
    """Give a member."""
    person = make_person()
    join(person, project)
    return person  # type: ignore[no-any-return]  # a builder of any kind of user


@pytest.fixture
def client(ada: User) -> Client:
    """Give a signed-in client whose forms need their token."""
    client = Client(enforce_csrf_checks=True)
    _sign_in(client)
    return client


def _token(client: Client, page: str) -> str:
    return str(client.get(page).context["csrf_token"])


def _sign_in(client: Client, page: str = LOGIN, name: str = "ada") -> Any:
    given = {"login": name, "password": PASSWORD, "csrfmiddlewaretoken": _token(client, page)}
    return client.post(page, given)


def _let_expire(client: Client) -> None:
    session = client.session
    session[STAMPS] = [time.time() - 3600, time.time() - 1801]
    session.save()


def _send_when_over(client: Client, action: str = ACTION, **fields: object) -> Any:
    """Send a form half an hour after the page was opened."""
    token = _token(client, PAGE)
    _let_expire(client)
    return _send(client, token, action, **fields)


def _send(client: Client, token: str, action: str = ACTION, **fields: object) -> Any:
    return client.post(
        action,
        {"csrfmiddlewaretoken": token, **fields},
        headers={"Referer": f"http://testserver{PAGE}"},
    )


def test_a_form_returns_to_its_page_with_the_draft(client: Client) -> None:
    ended = _send_when_over(client, text="Rolled back <v7>", id=["3", "4"])
    back = _sign_in(client, ended["Location"])
    assert back["Location"] == PAGE
    page = client.get(PAGE).text
    assert f'id="draft" action="{ACTION}"' in page
    assert "Rolled back &lt;v7&gt;" in page
    assert 'name="id" rows="2">4<' in page
    assert 'id="draft"' not in client.get(PAGE).text


def test_a_form_of_the_sign_in_before_returns_to_its_page_with_the_draft(client: Client) -> None:
    token = _token(client, PAGE)
    client.post("/accounts/logout/", {"csrfmiddlewaretoken": token})
    _sign_in(client)
    refused = _send(client, token, text="Rolled back v7")
    assert client.get(refused["Location"])["Location"] == PAGE
    assert "Rolled back v7" in client.get(PAGE).text


def test_a_form_without_its_page_is_refused_and_kept_nowhere(client: Client) -> None:
    _token(client, PAGE)
    assert client.post(ACTION, {"text": "Rolled back"}).status_code == 403
    assert DRAFT not in client.session


def test_secrets_are_not_kept(client: Client) -> None:
    key = "sk-" + "proj-abcdefghijklmnop0123456789ABCDEF"
    ended = _send_when_over(
        client,
        "/alerts/channels/new/",
        name="On call",
        webhook="https://hooks.example.org/a-path-that-is-secret",
        api_key="plain",
        escalate_to=f"see {key}",
    )
    assert ended.status_code == 302
    kept = client.session[DRAFT]["fields"]
    assert kept["name"] == ["On call"]
    assert set(kept) == {"name", "escalate_to"}
    assert key not in str(kept)


def test_a_draft_is_shown_to_whoever_wrote_it(client: Client, project: Project) -> None:
    join(make_person("bob"), project)
    _sign_in(client, _send_when_over(client, text="mine")["Location"], "bob")
    assert 'id="draft"' not in client.get(PAGE).text


def test_a_form_of_another_site_keeps_nothing(client: Client) -> None:
    _let_expire(client)
    assert client.post(ACTION, {"text": "theirs"}).status_code == 403
    assert DRAFT not in client.session


@pytest.mark.parametrize(("length", "is_kept"), [(DRAFT_CHARACTERS, True), (60_000, False)])
def test_a_draft_is_bounded(client: Client, length: int, is_kept: bool) -> None:
    _send_when_over(client, text="x" * length)
    assert (DRAFT in client.session) is is_kept


def test_an_address_may_leave_20_drafts_an_hour(client: Client) -> None:
    _send_when_over(client, text="first")
    token = _token(client, LOGIN)
    for _ in range(25):
        client.cookies.pop("sessionid", None)
        client.post(ACTION, {"csrfmiddlewaretoken": token, "text": "more"})
    assert DRAFT not in client.session

"""A person's own account, and the pages around signing in."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from diagnostics.models import Project
from tests.console import make_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return make_member(Project.objects.create(slug="p", name="P"))


@pytest.fixture
def client(client: Client, person: User) -> Client:
    client.force_login(person)
    return client


def test_name_is_saved(client: Client, person: User) -> None:
    filled = {"first_name": "Ann", "last_name": "Lee", "email": "ann@example.org"}
    assert client.post("/account/", filled).status_code == 302
    person.refresh_from_db()
    assert (person.first_name, person.email) == ("Ann", "ann@example.org")


def test_faults_stand_beside_their_field(client: Client) -> None:
    html = client.post("/account/", {"email": "nowhere"}).content.decode()
    assert 'id="id_email_error"' in html
    assert 'aria-invalid="true"' in html


def test_nobody_is_made_staff_by_the_form(client: Client, person: User) -> None:
    client.post("/account/", {"is_staff": "on", "username": "root"})
    person.refresh_from_db()
    assert (person.is_staff, person.username) == (False, "ann")


def test_sign_in_page_has_a_form_and_no_sign_up() -> None:
    html = Client().get("/accounts/login/").content.decode()
    assert 'name="password"' in html
    assert "sign up" not in html.lower()


def test_sign_up_is_closed() -> None:
    answer = Client().post(
        "/accounts/signup/",
        {"username": "x", "password1": "pw-of-x-1", "password2": "pw-of-x-1"},
    )
    assert b"Sign-up is closed" in answer.content
    assert not User.objects.filter(username="x").exists()


def test_unknown_address_has_a_page_of_its_own(client: Client) -> None:
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert b"There is nothing at this address" in answer.content


@pytest.mark.parametrize("path", ["password/change/", "logout/", "2fa/"])
def test_account_pages_wear_the_same_frame(client: Client, path: str) -> None:
    html = client.get(f"/accounts/{path}").content.decode()
    assert "console/console.css" in html
    assert "<h1" in html

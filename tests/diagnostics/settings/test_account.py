"""A person's own account, and the pages around signing in."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from diagnostics.accounts.models import Project
from tests.console import make_member
from tests.signing import PASSWORD, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return make_member(Project.objects.create(slug="p", name="P"))


@pytest.fixture
def client(client: Client, person: User) -> Client:
    client.force_login(person)
    return client


def test_name_is_saved(client: Client, person: User) -> None:
    person.set_password(PASSWORD)
    person.save()
    client = signed_in("ann")
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
        "/accounts/signup/", {"username": "x", "password1": "pw-of-x-1", "password2": "pw-of-x-1"}
    )
    assert b"Sign-up is closed" in answer.content
    assert not User.objects.filter(username="x").exists()


def test_unknown_address_has_a_page_of_its_own(client: Client) -> None:
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert b"This page does not exist" in answer.content


@pytest.mark.parametrize("path", ["password/change/", "logout/", "2fa/"])
def test_account_pages_wear_the_same_frame(client: Client, path: str) -> None:
    html = client.get(f"/accounts/{path}").content.decode()
    assert "console/console.css" in html
    assert "<h1" in html


def test_zone_and_theme_hold_for_every_page(client: Client, person: User) -> None:
    client.post("/account/", {"zone": "Europe/Oslo", "theme": "dark"})
    html = client.get("/").content.decode()
    assert '<html lang="en" data-theme="dark" data-zone="Europe/Oslo">' in html
    person.set_password(PASSWORD)
    person.save()
    again = signed_in("ann").get("/").content.decode()
    assert 'data-theme="dark"' in again


def test_what_is_no_zone_is_refused(client: Client, person: User) -> None:
    html = client.post("/account/", {"zone": "Nowhere/Land"}).content.decode()
    assert "Enter a time zone such as Europe/Berlin" in html


def test_s22_a_new_address_is_asked_for_the_password_first(client: Client, person: User) -> None:
    person.set_password(PASSWORD)
    person.save()
    client.force_login(person)
    answer = client.post("/account/", {"email": "new@example.org"})
    asked = answer.headers["Location"]
    assert asked.startswith("/accounts/reauthenticate/")
    assert "Nothing was saved yet." in client.get(asked).content.decode()
    person.refresh_from_db()
    assert person.email == ""


def test_signing_out_everywhere_ends_every_session(person: User) -> None:
    person.set_password(PASSWORD)
    person.save()
    desk, phone = signed_in("ann"), signed_in("ann")
    page = desk.get("/account/").content.decode()
    assert page.count("127.0.0.1") >= 2
    desk.post("/account/sign-out/")
    assert [one.get("/account/").status_code for one in (desk, phone)] == [302, 302]

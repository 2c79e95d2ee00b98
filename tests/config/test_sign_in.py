"""Signing in: locked after a few bad tries, ended in time, staff with a second factor."""

import base64
import time
from collections.abc import Sequence
from io import StringIO
from socket import create_server
from threading import Event
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core import mail
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.core.mail.backends.locmem import EmailBackend
from django.core.management import call_command
from django.test import Client
from structlog.testing import capture_logs

from config.accounts import STAMPS
from config.second_factor import SealedFactors
from diagnostics.accounts.models import AuditEntry, Membership, Project
from diagnostics.accounts.projects import ensure_default_project
from tests.signing import sent_mails

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery staple"
LOGIN = "/accounts/login/"
HOUR = 3600


@pytest.fixture
def ada() -> Any:
    user = get_user_model().objects.create_user("ada", "ada@example.org", PASSWORD)
    Membership.objects.create(project=ensure_default_project(), user=user, role="admin")
    return user


def sign_in(client: Client, password: str = PASSWORD, name: str = "ada") -> Any:
    return client.post(LOGIN, {"login": name, "password": password})


class CountedHasher(MD5PasswordHasher):
    """Counts the passwords that are hashed: what a try to sign in takes its time for."""

    hashed = 0

    def encode(self, password: str, salt: str) -> str:
        CountedHasher.hashed += 1
        return super().encode(password, salt)


def test_a_try_takes_as_long_whether_the_person_exists_or_not(ada: Any, settings: Any) -> None:
    settings.PASSWORD_HASHERS = [f"{__name__}.CountedHasher"]
    get_user_model().objects.create_user("eve", "eve@example.org", PASSWORD, is_active=False)
    names = ("ada", "ada@example.org", "bob", "bob@example.org", "eve", "eve@example.org")
    hashed = {}
    for name in names:
        CountedHasher.hashed = 0
        sign_in(Client(), "wrong", name)
        hashed[name] = CountedHasher.hashed
    assert hashed == dict.fromkeys(names, 1)


@pytest.mark.slow
def test_s22_100_bad_sign_ins_lock_the_name_within_10(ada: Any) -> None:
    tried = []
    for number in range(100):
        # Another process, another address each time: what counts is shared.
        client = Client(REMOTE_ADDR=f"192.0.2.{number}")
        tried.append(sign_in(client, f"wrong {number}").content.decode())
    locked = [place for place, page in enumerate(tried) if "Too many" in page]
    assert locked[0] <= 10
    assert locked == list(range(locked[0], 100))
    # The right password does not open it either.
    client = Client(REMOTE_ADDR="192.0.2.200")
    assert sign_in(client).status_code == 200
    assert "_auth_user_id" not in client.session


NAMES = ["ada", "ada@example.org", " ADA\t", "Ada@Example.ORG", "\u00a0ada@example.org ", "aDa"]


def test_s22_tries_by_name_and_by_address_count_for_the_same_person(ada: Any) -> None:
    tried = [
        sign_in(Client(REMOTE_ADDR=f"192.0.2.{at}"), f"wrong {at}", NAMES[at % len(NAMES)])
        for at in range(12)
    ]
    assert ["Too many" in page.content.decode() for page in tried] == [False] * 8 + [True] * 4
    for name in NAMES:
        assert sign_in(Client(REMOTE_ADDR="192.0.2.99"), PASSWORD, name).status_code == 200
    call_command("unlock_sign_in", "ada@example.org")
    assert sign_in(Client(), PASSWORD, "ada").status_code == 302


def test_s22_an_address_of_two_people_counts_for_both(ada: Any) -> None:
    get_user_model().objects.create_user("bob", "ada@example.org", "another")
    for at in range(8):
        name = ("ada@example.org", "ada")[at % 2]
        sign_in(Client(REMOTE_ADDR=f"192.0.2.{at}"), f"wrong {at}", name)
    for at in range(4):
        assert "Too many" not in sign_in(Client(), f"wrong {at}", "bob").content.decode()
    assert "Too many" in sign_in(Client(), "another", "bob").content.decode()


def test_s22_a_name_that_nobody_has_is_locked_alike(ada: Any) -> None:
    tried = [
        sign_in(Client(REMOTE_ADDR=f"192.0.2.{at}"), "x", ("eve", " EVE ")[at % 2])
        for at in range(10)
    ]
    assert ["Too many" in page.content.decode() for page in tried] == [False] * 8 + [True] * 2


@pytest.mark.slow
def test_a_person_who_signs_in_is_not_locked_by_their_own_tries(ada: Any) -> None:
    for at in range(30):
        assert sign_in(Client(), PASSWORD, NAMES[at % len(NAMES)]).status_code == 302


def test_a_new_password_by_mail_opens_the_lock(ada: Any) -> None:
    EmailAddress.objects.create(user=ada, email=ada.email, verified=True, primary=True)
    for at in range(20):
        sign_in(Client(REMOTE_ADDR=f"192.0.2.{at}"), f"wrong {at}", NAMES[at % len(NAMES)])
    client = Client()
    client.post("/accounts/password/reset/", {"email": "ada@example.org"})
    link = next(word for word in sent_mails()[-1].body.split() if "/password/reset/" in word)
    sent = mail.outbox[-1].message()
    assert sent["Auto-Submitted"] == "auto-generated"
    assert sent["Message-ID"].endswith(f"@{urlsplit(settings.FAILSOFT_BASE_URL).hostname}>")
    page = client.get(urlsplit(link).path, follow=True)
    fresh = "a fresh horse battery staple"
    client.post(page.request["PATH_INFO"], {"password1": fresh, "password2": fresh})
    assert sign_in(Client(), fresh, "ada").status_code == 302


def test_a_lock_is_opened_by_the_command(ada: Any) -> None:
    for number in range(20):
        sign_in(Client(), f"wrong {number}")
    assert sign_in(Client()).status_code == 200
    call_command("unlock_sign_in", "ada")
    assert sign_in(Client()).status_code == 302


def test_a_lock_opens_with_time(ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        sign_in(Client(), f"wrong {number}")
    late = time.time() + 16 * 60
    monkeypatch.setattr(time, "time", lambda: late)
    assert sign_in(Client()).status_code == 302


def test_a_bad_password_is_not_in_the_audit_log_nor_the_cache(ada: Any) -> None:
    sign_in(Client(), "wrong-but-dear-to-me")
    assert not AuditEntry.objects.filter(target__contains="dear").exists()
    assert cache.get("wrong-but-dear-to-me") is None


def test_signing_in_is_noted_with_its_address(ada: Any) -> None:
    sign_in(Client(REMOTE_ADDR="192.0.2.9"))
    entry = AuditEntry.objects.get(action="sign_in.succeeded")
    assert (entry.actor, entry.address) == ("ada", "192.0.2.9")


def shift(client: Client, began: float = 0, last_seen: float = 0) -> None:
    """Let the session have begun, and been seen, so many seconds earlier."""
    session = client.session
    session[STAMPS] = [time.time() - began, time.time() - last_seen]
    session.save()


def test_a_session_ends_after_30_idle_minutes(ada: Any) -> None:
    client = Client()
    sign_in(client)
    shift(client, began=HOUR, last_seen=29 * 60)
    assert client.get("/").status_code == 200
    shift(client, began=HOUR, last_seen=30 * 60)
    answer = client.get("/")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(LOGIN)
    assert not UserSession.objects.exists()


def test_a_session_ends_after_12_hours_however_busy(ada: Any) -> None:
    client = Client()
    sign_in(client)
    shift(client, began=12 * HOUR, last_seen=1)
    assert client.get("/").status_code == 302


def test_a_page_that_refreshes_itself_keeps_no_session_open(ada: Any) -> None:
    client = Client()
    sign_in(client)
    shift(client, began=HOUR, last_seen=20 * 60)
    poll = {"HX-Request": "true", "X-Poll": "1"}
    assert client.get("/", headers=poll).status_code == 200
    last_seen = client.session[STAMPS][1]
    assert time.time() - last_seen > 19 * 60
    client.get("/")
    assert time.time() - client.session[STAMPS][1] < 60


def test_an_ended_session_reloads_the_page_that_polls(ada: Any) -> None:
    client = Client()
    sign_in(client)
    shift(client, last_seen=HOUR)
    answer = client.get("/", headers={"HX-Request": "true", "X-Poll": "1"})
    assert answer.headers["HX-Refresh"] == "true"


@pytest.fixture
def staff(ada: Any, settings: Any) -> Client:
    settings.FAILSOFT_REQUIRE_MFA = True
    ada.is_staff = ada.is_superuser = True
    ada.save()
    client = Client()
    sign_in(client)
    return client


@pytest.mark.parametrize("path", ["/", "/admin/", "/settings/redaction/", "/runs/"])
def test_s22_staff_without_a_second_factor_are_led_to_it(staff: Client, path: str) -> None:
    answer = staff.get(path)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/accounts/2fa/")


def code_of(secret: str, steps: int = 0) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time() // 30) + steps)))


def test_s22_the_journey_to_a_second_factor(staff: Client, ada: Any) -> None:
    secret = staff.get("/accounts/2fa/totp/activate/").context["form"].secret
    staff.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    assert staff.get("/").status_code == 200
    stored = Authenticator.objects.get(user=ada, type="totp").data["secret"]
    assert secret not in stored
    # The next sign-in asks for a code; without one nobody is signed in.
    again = Client()
    answer = sign_in(again)
    assert answer.headers["Location"].startswith("/accounts/2fa/authenticate/")
    assert again.get("/").status_code == 302
    again.post("/accounts/2fa/authenticate/", {"code": "000000"})
    assert "_auth_user_id" not in again.session
    again.post("/accounts/2fa/authenticate/", {"code": code_of(secret, 1)})
    assert again.get("/").status_code == 200


def test_what_people_change_about_signing_in_is_in_the_audit_log(
    ada: Any, django_capture_on_commit_callbacks: Any
) -> None:
    client, fresh = Client(), "a fresh horse battery staple"
    sign_in(client)
    secret = client.get("/accounts/2fa/totp/activate/").context["form"].secret
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
        client.post("/accounts/2fa/recovery-codes/generate/")
    client.post("/accounts/2fa/totp/deactivate/")
    passwords = {"oldpassword": PASSWORD, "password1": fresh, "password2": fresh}
    client.post("/accounts/password/change/", passwords)
    entries = AuditEntry.objects.exclude(action="sign_in.succeeded").order_by("number")
    assert list(entries.values_list("actor", "action", "details")) == [
        ("ada", "second_factor.added", '{"type":"totp"}'),
        ("ada", "second_factor.added", '{"type":"recovery_codes"}'),
        ("ada", "second_factor.renewed", '{"type":"recovery_codes"}'),
        ("ada", "second_factor.removed", '{"type":"totp"}'),
        ("ada", "second_factor.removed", '{"type":"recovery_codes"}'),
        ("ada", "password.changed", "{}"),
    ]


@pytest.mark.parametrize("path", ["", "totp/activate/", "recovery-codes/generate/"])
def test_pages_of_the_second_factor_call_it_so(staff: Client, path: str) -> None:
    secret = staff.get("/accounts/2fa/totp/activate/").context["form"].secret
    if path.startswith("recovery"):
        staff.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    page = staff.get(f"/accounts/2fa/{path}")
    assert page.status_code == 200
    assert "two-factor" not in page.text.lower()


def test_the_page_that_asks_for_a_code_calls_it_a_second_factor(staff: Client) -> None:
    secret = staff.get("/accounts/2fa/totp/activate/").context["form"].secret
    staff.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    again = Client()
    sign_in(again)
    page = again.get("/accounts/2fa/authenticate/").text
    assert "<h1>MFA</h1>" in page
    assert "two-factor" not in page.lower()


def test_refusals_call_it_a_second_factor() -> None:
    messages = " ".join(SealedFactors.error_messages.values())
    assert "MFA" in messages
    assert "two-factor" not in messages


def test_a_code_works_once(staff: Client, ada: Any) -> None:
    secret = staff.get("/accounts/2fa/totp/activate/").context["form"].secret
    staff.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    factor = Authenticator.objects.get(user=ada, type="totp")
    code = code_of(secret, 1)
    assert TOTP(factor).validate_code(code)
    assert not TOTP(factor).validate_code(code)


def test_a_factor_that_another_key_sealed_takes_no_code_and_the_log_says_why(
    staff: Client, ada: Any, settings: Any
) -> None:
    secret = staff.get("/accounts/2fa/totp/activate/").context["form"].secret
    staff.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    settings.FAILSOFT_WORKING_KEY = base64.b64encode(bytes(range(32))).decode()
    again = Client()
    sign_in(again)
    with capture_logs() as lines:
        answer = again.post("/accounts/2fa/authenticate/", {"code": code_of(secret, 1)})
    assert answer.status_code == 200
    assert "_auth_user_id" not in again.session
    assert any("another FAILSOFT_WORKING_KEY" in str(line.get("reason")) for line in lines)


def test_recovery_codes_that_another_key_sealed_are_not_shown_and_made_again(
    staff: Client, ada: Any, settings: Any
) -> None:
    secret = staff.get("/accounts/2fa/totp/activate/").context["form"].secret
    staff.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    stored = Authenticator.objects.get(user=ada, type="recovery_codes")
    settings.FAILSOFT_WORKING_KEY = base64.b64encode(bytes(range(32))).decode()
    page = staff.get("/accounts/2fa/").text
    assert "encrypted with another FAILSOFT_WORKING_KEY" in page
    assert "recovery-codes/download" not in page
    assert not stored.wrap().generate_codes()
    assert not stored.wrap().validate_code("00000000")
    codes = "/accounts/2fa/recovery-codes/"
    assert staff.get(codes).context["unused_codes"] == []
    assert staff.get(f"{codes}download/").status_code == 404
    assert staff.get(f"{codes}generate/").status_code == 200
    answer = staff.post(f"{codes}generate/", follow=True)
    assert len(answer.context["unused_codes"]) == 10
    fresh = answer.context["unused_codes"][0]
    # The unreadable seed of the app does not hide a recovery code that can be read.
    again = Client()
    sign_in(again)
    again.post("/accounts/2fa/authenticate/", {"code": fresh})
    assert "_auth_user_id" in again.session


def test_an_app_that_another_key_sealed_is_called_unreadable_until_it_is_set_up_again(
    staff: Client, settings: Any
) -> None:
    app = "/accounts/2fa/totp/"
    secret = staff.get(f"{app}activate/").context["form"].secret
    staff.post(f"{app}activate/", {"code": code_of(secret)})
    assert "Active." in staff.get("/accounts/2fa/").text
    assert "unreadable" not in staff.get("/account/").text
    settings.FAILSOFT_WORKING_KEY = base64.b64encode(bytes(range(32))).decode()
    page = staff.get("/accounts/2fa/").text
    assert "Active." not in page
    assert page.count("encrypted with another FAILSOFT_WORKING_KEY") == 2  # app and codes
    assert staff.get("/account/").text.count("unreadable") == 3  # MFA, app and codes
    staff.post(f"{app}deactivate/")
    secret = staff.get(f"{app}activate/").context["form"].secret
    staff.post(f"{app}activate/", {"code": code_of(secret)})
    assert "Active." in staff.get("/accounts/2fa/").text


def test_members_who_are_not_staff_need_none(ada: Any, settings: Any) -> None:
    settings.FAILSOFT_REQUIRE_MFA = True
    client = Client()
    sign_in(client)
    assert client.get("/").status_code == 200


def test_a_lost_password_is_replaced_by_a_link_in_a_mail(ada: Any) -> None:
    Client().post("/accounts/password/reset/", {"email": "ada@example.org"})
    (letter,) = sent_mails()
    assert letter.to == ["ada@example.org"]
    link = next(line for line in letter.body.splitlines() if "/accounts/" in line)
    client = Client()
    page = client.get(link.strip().partition("testserver")[2], follow=True)
    fresh = "quite another long staple"
    form = {"password1": fresh, "password2": fresh}
    client.post(page.redirect_chain[-1][0], form)
    assert sign_in(Client(), fresh).status_code == 302


def test_an_unknown_address_gets_no_mail_and_the_same_answer(ada: Any) -> None:
    path = "/accounts/password/reset/"
    responses = [Client().post(path, {"email": f"{n}@example.org"}) for n in ("ada", "eve")]
    assert len({answer.headers["Location"] for answer in responses}) == 1
    assert len(sent_mails()) == 1


class HeldMail(EmailBackend):
    """Sends nothing before the answer has arrived."""

    answered = Event()
    waited: ClassVar[list[bool]] = []

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        HeldMail.waited.append(self.answered.wait(10))
        return super().send_messages(messages)


def test_a_reset_is_answered_before_its_mail_is_sent(ada: Any, settings: Any) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.HeldMail"
    answer = Client().post("/accounts/password/reset/", {"email": "ada@example.org"})
    HeldMail.answered.set()
    assert answer.status_code == 302
    assert len(sent_mails()) == 1
    assert HeldMail.waited == [True]


def test_an_address_is_not_given_away_by_a_mail_server_that_is_down(
    ada: Any, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "diagnostics.outbound.smtp.EmailBackend"
    with create_server(("127.0.0.1", 0)) as closed:
        settings.EMAIL_HOST, settings.EMAIL_PORT = closed.getsockname()[:2]
    path = "/accounts/password/reset/"
    responses = [Client().post(path, {"email": f"{n}@example.org"}) for n in ("ada", "eve")]
    assert [answer.status_code for answer in responses] == [302, 302]


def test_a_command_replaces_a_password_and_ends_every_session(ada: Any) -> None:
    client = Client()
    sign_in(client)
    Authenticator.objects.create(user=ada, type="totp", data={"secret": "00"})
    out = StringIO()
    call_command("reset_password", "ada", "--forget-second-factor", stdout=out)
    assert client.get("/").status_code == 302
    assert not Authenticator.objects.filter(user=ada).exists()
    fresh = out.getvalue().rpartition("Password: ")[2].strip()
    assert sign_in(Client(), fresh).status_code == 302
    assert sign_in(Client()).status_code == 200
    entry = AuditEntry.objects.get(action="password.reset")
    assert fresh not in entry.details


@pytest.mark.parametrize("end", ["signed out", "expired"])
def test_the_project_chosen_last_is_open_after_the_next_sign_in(
    ada: Any, client: Client, end: str
) -> None:
    second = Project.objects.create(slug="second", name="Second")
    Membership.objects.create(project=second, user=ada, role="viewer")
    sign_in(client)
    client.post("/project/", {"project": "second"})
    if end == "signed out":
        client.post("/accounts/logout/")
    else:
        client.cookies.pop("sessionid")
    sign_in(client)
    assert client.get("/reports/").context["project"] == second
    # Another person in the same browser has a project of their own.
    other = get_user_model().objects.create_user("bob", "bob@example.org", PASSWORD)
    Membership.objects.create(project=ensure_default_project(), user=other, role="admin")
    client.post("/accounts/logout/")
    sign_in(client, name="bob")
    assert client.get("/reports/").context["project"] != second

"""OpenID Connect against an issuer on this machine: known people enter, strangers do not."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.account.models import EmailAddress
from certifi import where
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client

from config.checks import check_mail, check_oidc, check_second_factor
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.invitations import invite
from diagnostics.accounts.models import Membership
from diagnostics.accounts.profiles import give_address
from diagnostics.accounts.projects import ensure_default_project
from tests.signing import PASSWORD, join, make_person, sent_mails, signed_in
from tests.sinks import certificate

pytestmark = pytest.mark.django_db
SECRET = "a client secret of the tests"
CLIENT = "failsoft"
BEGIN = "/accounts/oidc/sso/login/"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
END = "/accounts/oidc/sso/login/callback/"


class Issuer(ThreadingHTTPServer):
    """Discovery, token and person; `person` is who signs in next."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Desk)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.key = KEY
        self.person: dict[str, Any] = {}
        # What userinfo says instead, as AD FS, Entra ID and Cognito do.
        self.userinfo: dict[str, Any] | None = None
        self.missing = ""
        self.token_requests: list[dict[str, list[str]]] = []
        self.issuer_told = self.url


class Desk(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        url = self.server.url
        if self.path.startswith("/.well-known"):
            discovery = {
                "issuer": url,
                "authorization_endpoint": f"{url}/authorize",
                "token_endpoint": f"{url}/token",
                "userinfo_endpoint": f"{url}/userinfo",
                "jwks_uri": f"{url}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
            }
            self.say({name: discovery[name] for name in discovery if name != self.server.missing})
        else:
            person, userinfo = self.server.person, self.server.userinfo
            self.say(person if userinfo is None else userinfo)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.token_requests.append(parse_qs(body))
        claims = {
            **self.server.person,
            "iss": self.server.issuer_told,
            "aud": CLIENT,
            "exp": 2**33,
            "iat": 1_700_000_000,
        }
        token = jwt.encode(claims, self.server.key, "RS256", headers={"kid": "1"})
        self.say({"access_token": "x", "token_type": "Bearer", "id_token": token})

    def say(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def issuer(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    server = Issuer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("TEST_OIDC_SECRET", SECRET)
    settings.FAILSOFT_OIDC_ISSUER = server.url
    settings.FAILSOFT_OIDC_CLIENT_SECRET = "env:TEST_OIDC_SECRET"
    settings.FAILSOFT_OIDC_ALLOWED_DOMAINS = ["example.org"]
    app = {
        "provider_id": "sso",
        "name": "Our issuer",
        "client_id": CLIENT,
        "secret": "",
        "settings": {"server_url": server.url, "oauth_pkce_enabled": True},
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def ada() -> Any:
    user = known("ada")
    join(user, ensure_default_project())
    return user


def known(name: str) -> Any:
    """A person whose address an administrator set."""
    user = make_person(name)
    give_address(user)
    return user


def enter(
    issuer: Issuer,
    email: str,
    *,
    verified: bool = True,
    client: Client | None = None,
    **claims: object,
) -> Client:
    """Sign in at the issuer and come back."""
    person = {"sub": f"id of {email}", "email": email, "email_verified": verified}
    issuer.person = {**claims, **person}
    client = client or Client()
    sent = address_in(client.post(BEGIN))
    query = parse_qs(urlsplit(sent).query)
    assert sent.startswith(f"{issuer.url}/authorize")
    assert query["code_challenge_method"] == ["S256"]
    client.get(END, {"code": "c", "state": query["state"][0]})
    if issuer.token_requests:
        digest = hashlib.sha256(issuer.token_requests[-1]["code_verifier"][0].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        assert proof == query["code_challenge"][0]
    return client


def address_in(page: Any) -> str:
    """Return where a page leads: no header does, a browser would check it as part of a form."""
    assert "Location" not in page.headers
    (address,) = re.findall(r'http-equiv="refresh" content="0;url=([^"]+)"', page.content.decode())
    return unescape(address)


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_known_person_is_signed_in(issuer: Issuer, ada: Any) -> None:
    client = enter(issuer, "ADA@example.org")
    assert is_in(client)
    assert client.get("/").status_code == 200
    # The secret came from its reference, and nowhere else.
    assert issuer.token_requests[0]["client_secret"] == [SECRET]
    assert is_in(enter(issuer, "ADA@example.org"))


def test_a_stranger_is_not_made(issuer: Issuer, ada: Any) -> None:
    assert not is_in(enter(issuer, "eve@example.org"))
    assert get_user_model().objects.count() == 1


def test_an_address_that_nobody_verified_is_nobodys(issuer: Issuer, ada: Any) -> None:
    assert not is_in(enter(issuer, "ada@example.org", verified=False))


@pytest.mark.parametrize(
    ("userinfo", "token"),
    [
        ({"email": "ada@example.org", "email_verified": "true"}, {}),
        ({}, {"email": "ada@example.org", "email_verified": True}),
        ({"email": "ada@example.org"}, {"email": "ada@example.org", "xms_edov": "1"}),
    ],
    ids=["cognito", "adfs", "entra"],
)
def test_an_address_counts_that_userinfo_or_token_calls_verified(
    issuer: Issuer, ada: Any, userinfo: Any, token: Any
) -> None:
    issuer.userinfo = {"sub": "1", **userinfo}
    client = Client()
    begin(client, issuer, {"sub": "1", **token})
    assert client.get("/account/").context["user"].username == "ada"


@pytest.mark.parametrize(
    ("userinfo", "token"),
    [
        ({"email": "ada@example.org", "email_verified": "false"}, {}),
        ({"email": "ada@example.org"}, {"email": "eve@example.org", "email_verified": True}),
        (
            {"email": "ada@example.org", "email_verified": True},
            {"email": "ada@example.org", "email_verified": False},
        ),
        ({"email": "ada@example.org", "email_verified": True}, {"email_verified": False}),
    ],
    ids=["text", "another", "contradiction", "elsewhere"],
)
def test_an_address_does_not_count_that_either_calls_unverified(
    issuer: Issuer, ada: Any, settings: Any, userinfo: Any, token: Any
) -> None:
    settings.FAILSOFT_OIDC_ALLOWED_DOMAINS = ["example.org"]
    issuer.userinfo = {"sub": "1", **userinfo}
    client = Client()
    begin(client, issuer, {"sub": "1", **token})
    assert not is_in(client) or client.get("/account/").context["user"].username != "ada"


def begin(client: Client, issuer: Issuer, person: dict[str, Any]) -> Any:
    """Sign in as a person whose claims are these alone; return the answer at the end."""
    issuer.person = person
    query = parse_qs(urlsplit(address_in(client.post(BEGIN))).query)
    return client.get(END, {"code": "c", "state": query["state"][0]})


@pytest.mark.parametrize(("trusts", "enters"), [(False, False), (True, True)])
def test_an_address_of_an_issuer_that_verifies_none_counts_if_the_settings_say_so(
    issuer: Issuer, ada: Any, settings: Any, trusts: bool, enters: bool
) -> None:
    settings.FAILSOFT_OIDC_TRUST_EMAIL = trusts
    client = Client()
    page = begin(client, issuer, {"sub": "1", "email": "ada@example.org"})
    assert is_in(client) == enters
    assert ("does not say that your email address is verified" in page.content.decode()) != enters


def test_an_address_that_the_issuer_denies_counts_under_no_setting(
    issuer: Issuer, ada: Any, settings: Any
) -> None:
    settings.FAILSOFT_OIDC_TRUST_EMAIL = True
    assert not is_in(enter(issuer, "ada@example.org", verified=False))


@pytest.mark.parametrize(
    ("person", "words", "setting"),
    [
        ({}, "no email address", "FAILSOFT_OIDC_TRUST_EMAIL"),
        ({"email": "ada@example.org"}, "verified", "FAILSOFT_OIDC_TRUST_EMAIL"),
        (
            {"email": "ada@elsewhere.example", "email_verified": True},
            "elsewhere.example",
            "FAILSOFT_OIDC_ALLOWED_DOMAINS",
        ),
    ],
)
def test_a_refusal_says_why_and_the_log_names_the_setting(
    issuer: Issuer,
    caplog: pytest.LogCaptureFixture,
    person: dict[str, Any],
    words: str,
    setting: str,
) -> None:
    page = begin(Client(), issuer, {"sub": "1", **person})
    assert page.status_code == 403
    assert words in page.content.decode()
    assert logged(caplog, "single_sign_on_refused")["setting"] == setting


def logged(caplog: pytest.LogCaptureFixture, event: str) -> dict[str, Any]:
    """Return the fields of the one line about an event."""
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    (line,) = [line for line in lines if line["event"] == event]
    return line


def test_another_domain_does_not_enter(issuer: Issuer) -> None:
    user = make_person("bob")
    user.email = "bob@elsewhere.example"
    user.save()
    give_address(user)
    assert not is_in(enter(issuer, "bob@elsewhere.example"))


def test_a_person_who_was_closed_does_not_enter(issuer: Issuer, ada: Any) -> None:
    ada.is_active = False
    ada.save()
    assert not is_in(enter(issuer, "ada@example.org"))


def type_address(person: Client, address: str) -> None:
    person.post("/account/", {"email": address})


def add_address(person: Client, address: str) -> None:
    person.post("/accounts/email/", {"email": address, "action_add": ""})
    person.post("/accounts/email/", {"email": address, "action_primary": ""})


@pytest.mark.parametrize("claim", [type_address, add_address])
def test_an_address_that_its_owner_typed_lets_nobody_else_in(issuer: Issuer, claim: Any) -> None:
    eve = make_person("eve")
    join(eve, ensure_default_project())
    claim(signed_in("eve"), "Ada@example.org")
    eve.refresh_from_db()
    assert eve.email.lower() == "ada@example.org"
    assert not is_in(enter(issuer, "ada@example.org"))
    # Whom an administrator gives the address has it.
    known("ada")
    client = enter(issuer, "ada@example.org")
    assert client.get("/account/").context["user"].username == "ada"


def test_an_address_that_somebody_typed_is_free_for_its_owner(issuer: Issuer) -> None:
    root = known("root")
    join(root, ensure_default_project())
    type_address(signed_in("root"), "eve@example.org")
    _, token = invite(ensure_default_project(), root, "viewer")
    client = Client()
    client.get(f"/invitations/{token}/")
    enter(issuer, "eve@example.org", client=client)
    assert client.get("/account/").context["user"].email == "eve@example.org"
    assert get_user_model().objects.count() == 2
    assert is_in(enter(issuer, "eve@example.org"))


def test_a_typed_address_counts_once_its_owner_has_confirmed_it(issuer: Issuer, ada: Any) -> None:
    person = signed_in("ada")
    person.post("/account/", {"email": "ada.l@example.org"})
    person.post("/accounts/email/", {"email": "ada.l@example.org", "action_send": ""})
    link = next(word for word in sent_mails()[-1].body.split() if "/confirm-email/" in word)
    person.post(urlsplit(link).path)
    assert is_in(enter(issuer, "ada.l@example.org"))
    assert not is_in(enter(issuer, "ada@example.org"))


@pytest.mark.parametrize(("invited", "joins"), [("Ada@example.org", True), ("", False)])
def test_an_address_at_sign_up_counts_if_the_invitation_was_sent_there(
    issuer: Issuer, invited: str, joins: bool
) -> None:
    root = make_person("root")
    join(root, ensure_default_project())
    _, token = invite(ensure_default_project(), root, "viewer", invited)
    client = Client()
    client.get(f"/invitations/{token}/")
    account = {"username": "ada", "email": "ada@example.org"}
    client.post("/accounts/signup/", {**account, "password1": PASSWORD, "password2": PASSWORD})
    assert is_in(client)
    assert is_in(enter(issuer, "ada@example.org")) == joins


def test_addresses_of_before_count_unless_their_owner_typed_them(issuer: Issuer) -> None:
    people = {name: make_person(name) for name in ("ada", "bob", "cay", "dee")}
    note(None, people["ada"], "account.changed", "ada", {"changed": "first_name, email"})
    note(None, people["bob"], "account.changed", "bob", {"changed": "zone"})
    note(None, "manage.py", "account.changed", "x", {"changed": "email"})
    get_user_model().objects.create_user("cay2", "CAY@example.org")
    EmailAddress.objects.create(user=people["dee"], email="dee@example.org")
    given = import_module("diagnostics.migrations.0004_given_addresses")
    with connection.cursor() as cursor:
        cursor.execute(given.KEEP)
    entered = [name for name in people if is_in(enter(issuer, f"{name}@example.org"))]
    assert entered == ["bob"]


def test_an_address_that_an_administrator_sets_counts(issuer: Issuer, ada: Any) -> None:
    call_command("create_admin", "root", "--email", "root@example.org", stdout=StringIO())
    root = enter(issuer, "root@example.org")
    assert is_in(root)
    page = f"/admin/auth/user/{ada.pk}/change/"
    fields = root.get(page).context["adminform"].form.initial
    root.post(page, {**fields, "email": "lee@example.org", "groups": [], "user_permissions": []})
    assert is_in(enter(issuer, "lee@example.org"))
    assert not is_in(enter(issuer, "ada@example.org"))


def test_a_token_of_another_issuer_is_refused(issuer: Issuer, ada: Any) -> None:
    issuer.issuer_told = "https://evil.example"
    assert not is_in(enter(issuer, "ada@example.org"))


def test_an_issuer_that_is_down_is_named_in_the_log_and_the_form_stays(
    issuer: Issuer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.shutdown()
    issuer.server_close()
    page = Client().post(BEGIN)
    assert page.status_code == 503
    assert "cannot be reached" in page.content.decode()
    assert logged(caplog, "single_sign_on_failed")["issuer"] == issuer.url
    assert Client().get("/accounts/login/").status_code == 200


@pytest.mark.parametrize("missing", ["authorization_endpoint", "userinfo_endpoint"])
def test_a_discovery_without_an_endpoint_is_named_in_the_log(
    issuer: Issuer, caplog: pytest.LogCaptureFixture, missing: str
) -> None:
    issuer.missing = missing
    client = Client()
    page = client.post(BEGIN)
    if missing == "userinfo_endpoint":
        page = begin(client, issuer, {"sub": "1"})
    assert page.status_code == 503
    assert missing in logged(caplog, "single_sign_on_failed")["detail"]


def test_a_refused_client_is_named_in_the_log(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.issuer_told = "https://evil.example"
    page = begin(Client(), issuer, {"sub": "1"})
    assert page.status_code == 503
    assert "Single sign-on failed" in page.content.decode()
    assert "InvalidIssuerError" in logged(caplog, "single_sign_on_failed")["detail"]


def test_an_error_of_the_issuer_is_shown_by_its_code_alone(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client()
    query = parse_qs(urlsplit(address_in(client.post(BEGIN))).query)
    words = {"error": "invalid_scope", "error_description": "call 555 now"}
    page = client.get(END, {**words, "state": query["state"][0]}).content.decode()
    assert "invalid_scope" in page
    assert "555" not in page
    assert "555" in logged(caplog, "single_sign_on_failed")["detail"]


def test_an_answer_to_no_question_asks_to_begin_again(issuer: Issuer) -> None:
    page = Client().get(END, {"code": "c", "state": "another"})
    assert page.status_code == 400
    assert "sign in again" in page.content.decode()


def test_a_secret_that_cannot_be_read_stops_single_sign_on_alone(
    issuer: Issuer, ada: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("TEST_OIDC_SECRET")
    assert is_in(signed_in("ada"))
    assert Client().get("/accounts/login/").status_code == 200
    assert Client().post(BEGIN).status_code == 503
    line = logged(caplog, "single_sign_on_failed")
    assert "env:TEST_OIDC_SECRET" in line["detail"]


def test_the_authority_of_a_private_issuer_is_named_in_ssl_cert_file(
    issuer: Issuer, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CURL_CA_BUNDLE", where())
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    issuer.socket = certificate(tmp_path).wrap_socket(issuer.socket, server_side=True)
    issuer.url = issuer.issuer_told = issuer.url.replace("http:", "https:")
    app = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]
    app["settings"]["server_url"] = issuer.url
    page = Client().post(BEGIN)
    assert page.status_code == 503
    assert "SSL_CERT_FILE" in page.content.decode()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "sink.pem"))
    assert address_in(Client().post(BEGIN)).startswith(issuer.url)


CLAIMS: dict[str, Any] = {
    **dict.fromkeys(("is_staff", "is_superuser", "is_active", "admin"), True),
    "groups": ["admin", "staff"],
    "roles": ["superuser"],
    "role": "admin",
    "preferred_username": "root",
}


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_a_person_has_the_role_of_the_project_whatever_the_issuer_claims(
    issuer: Issuer, role: str
) -> None:
    ada = known("ada")
    project = ensure_default_project()
    Membership.objects.create(project=project, user=ada, role=role)
    client = enter(issuer, "ada@example.org", **CLAIMS)
    ada.refresh_from_db()
    assert (ada.username, ada.is_staff, ada.is_superuser) == ("ada", False, False)
    assert Membership.objects.get(user=ada).role == role
    statuses = {
        "viewer": client.get("/failures/").status_code,
        "operator": client.post("/goals/new/", {}).status_code,
        "admin": client.post("/settings/quotas/", {}).status_code,
    }
    allowed = {"viewer": 1, "operator": 2, "admin": 3}[role]
    assert [status == 403 for status in statuses.values()] == [n >= allowed for n in range(3)]
    assert client.get("/admin/", follow=True).status_code == 403


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_a_stranger_with_an_invitation_gets_its_role_and_no_more(
    issuer: Issuer, ada: Any, role: str
) -> None:
    _, token = invite(ensure_default_project(), ada, role)
    client = Client()
    assert client.get(f"/invitations/{token}/").status_code in (200, 302)
    enter(issuer, "eve@example.org", client=client, **CLAIMS)
    eve = get_user_model().objects.get(email="eve@example.org")
    assert (eve.is_staff, eve.is_superuser) == (False, False)
    client.post(f"/invitations/{token}/")
    assert Membership.objects.get(user=eve).role == role


def test_staff_need_a_second_factor_behind_single_sign_on_too(
    issuer: Issuer, ada: Any, settings: Any
) -> None:
    settings.FAILSOFT_REQUIRE_MFA = True
    ada.is_staff = ada.is_superuser = True
    ada.save()
    client = enter(issuer, "ada@example.org", amr=["mfa", "otp"])
    for page in ("/", "/admin/", "/admin/auth/user/", "/settings/members/"):
        assert client.get(page).headers["Location"] == "/accounts/2fa/", page


def test_the_way_is_offered_on_the_page(issuer: Issuer) -> None:
    page = Client().get("/accounts/login/").content.decode()
    assert "Our issuer" in page
    assert BEGIN in page


def test_half_a_configuration_is_an_error(settings: Any) -> None:
    settings.FAILSOFT_OIDC_ISSUER = "http://issuer.example"
    settings.FAILSOFT_OIDC_CLIENT_ID = ""
    assert [message.id for message in check_oidc(None)] == [
        "config.E006",
        "config.E007",
        "config.W001",
    ]
    settings.FAILSOFT_OIDC_ISSUER = ""
    assert check_oidc(None) == []


def test_addresses_of_any_domain_are_not_trusted_unverified(settings: Any) -> None:
    settings.FAILSOFT_OIDC_ISSUER = "https://issuer.example"
    settings.FAILSOFT_OIDC_CLIENT_ID = CLIENT
    settings.FAILSOFT_OIDC_CLIENT_SECRET = "file:/run/secrets/oidc"
    settings.FAILSOFT_OIDC_TRUST_EMAIL = True
    settings.FAILSOFT_OIDC_ALLOWED_DOMAINS = []
    assert [fault.id for fault in check_oidc(None)] == ["config.E010", "config.W001"]
    settings.FAILSOFT_OIDC_ALLOWED_DOMAINS = ["example.org"]
    assert check_oidc(None) == []


def test_a_client_secret_in_a_file_elsewhere_is_an_error(settings: Any) -> None:
    settings.FAILSOFT_OIDC_ISSUER = "https://issuer.example"
    settings.FAILSOFT_OIDC_CLIENT_ID = CLIENT
    settings.FAILSOFT_OIDC_CLIENT_SECRET = "file:/etc/passwd"
    settings.FAILSOFT_OIDC_ALLOWED_DOMAINS = ["example.org"]
    assert [fault.id for fault in check_oidc(None)] == ["config.E006"]
    settings.FAILSOFT_OIDC_CLIENT_SECRET = "file:/run/secrets/oidc"
    assert check_oidc(None) == []


def test_a_deployment_without_mail_or_second_factor_is_warned(settings: Any) -> None:
    settings.FAILSOFT_REQUIRE_MFA = False
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    warnings = [*check_mail(None), *check_second_factor(None)]
    assert [message.id for message in warnings] == ["config.W002", "config.W003"]
    settings.FAILSOFT_REQUIRE_MFA = True
    settings.EMAIL_BACKEND = "diagnostics.outbound.smtp.EmailBackend"
    assert [*check_mail(None), *check_second_factor(None)] == []

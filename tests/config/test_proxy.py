"""A reverse proxy and the settings that do not fit: the answer and the log name the setting."""

import json
from typing import Any

import pytest
from django.test import Client
from google.rpc.status_pb2 import Status
from pytest_django import Settings

from config import proxy
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key

pytestmark = pytest.mark.django_db
HOST = "failsoft.example.org"
BASE = f"https://{HOST}"
FORM = {"login": "ann", "password": "wrong"}
TLS = {"X-Forwarded-Proto": "https"}


@pytest.fixture(autouse=True)
def _server(settings: Settings) -> None:
    settings.FAILSOFT_BASE_URL = BASE
    settings.ALLOWED_HOSTS = [HOST]
    settings.CSRF_TRUSTED_ORIGINS = [BASE]
    proxy._warn_once.cache_clear()


@pytest.fixture
def tls(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")


@pytest.fixture
def key() -> str:
    project = Project.objects.create(slug="p", name="P")
    return issue_key(project, "k", [Scope.INGEST, Scope.READ]).text


def at(host: str, **options: Any) -> Client:
    """Return a client that asks for a host; options in capitals are headers."""
    headers = {name: options.pop(name) for name in list(options) if name[0].isupper()}
    return Client(headers={"Host": host, **headers}, **options)


def logged_details(caplog: pytest.LogCaptureFixture) -> list[str]:
    fields = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [str(field["detail"]) for field in fields if "setting" in field]


def test_a_page_under_an_unknown_host_names_the_setting_the_host_and_the_base_url(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = at("failsoft-web").get("/accounts/login/")
    page = answer.content.decode()
    assert answer.status_code == 400
    for text in ("failsoft-web", BASE, "FAILSOFT_BASE_URL", "FAILSOFT_ALLOWED_HOSTS"):
        assert text in page
    (detail,) = logged_details(caplog)
    assert "'failsoft-web'" in detail
    assert "FAILSOFT_ALLOWED_HOSTS" in detail


def test_an_unknown_host_is_quoted_as_text() -> None:
    page = at("<b>x").get("/").content.decode()
    assert "&lt;b&gt;x" in page
    assert "<b>x" not in page


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/failures", "/nowhere"])
def test_a_client_of_the_api_reads_which_setting_is_wrong(key: str, path: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    client = at("web:8000", **headers)
    answer = client.post(path, "[]", content_type="application/json")
    assert answer.status_code == 400
    if path.startswith("/api"):
        assert answer.json()["code"] == "unknown_host"
        assert "FAILSOFT_ALLOWED_HOSTS" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_an_exporter_logs_which_setting_is_wrong(key: str, path: str) -> None:
    client = at("web", Authorization=f"Bearer {key}")
    answer = client.post(path, b"\n", content_type="application/x-protobuf")
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/x-protobuf"
    assert "FAILSOFT_ALLOWED_HOSTS" in Status.FromString(answer.content).message
    answer = client.post(path, "{}", content_type="application/json")
    assert "FAILSOFT_ALLOWED_HOSTS" in json.loads(answer.content)["message"]


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_a_probe_under_an_unknown_host_gets_one_line(path: str) -> None:
    answer = at("10.0.0.7").get(path)
    assert answer.status_code == 400
    assert answer.content.decode().count("\n") == 1
    assert "FAILSOFT_ALLOWED_HOSTS" in answer.content.decode()


@pytest.mark.usefixtures("tls")
@pytest.mark.parametrize(
    "sent",
    [
        {"Origin": "http://failsoft.lan"},
        {"Origin": "http://failsoft.example.org:8443"},
        {"Origin": "null"},
        {"Referer": "https://failsoft.lan/accounts/login/"},
    ],
)
def test_a_form_from_another_address_is_not_called_expired(
    sent: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    client = at(HOST, enforce_csrf_checks=True, **TLS)
    answer = client.post("/accounts/login/", FORM, headers=sent)
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "expired" not in page
    assert "FAILSOFT_BASE_URL" in page
    assert BASE in page
    (detail,) = logged_details(caplog)
    assert next(iter(sent.values())).removesuffix("/accounts/login/") in detail


@pytest.mark.usefixtures("tls")
def test_a_form_from_here_without_a_token_is_expired() -> None:
    client = at(HOST, enforce_csrf_checks=True, **TLS)
    answer = client.post("/accounts/login/", FORM, headers={"Origin": BASE})
    assert answer.status_code == 403
    assert "expired" in answer.content.decode()


@pytest.mark.usefixtures("tls")
@pytest.mark.parametrize("sent", [{}, {"X-Forwarded-Proto": "HTTPS on"}])
def test_a_page_without_the_header_of_the_proxy_is_no_endless_redirect(
    sent: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    answer = at(HOST).get("/", headers=sent)
    assert answer.status_code == 400
    assert "X-Forwarded-Proto" in answer.content.decode()
    assert BASE in answer.content.decode()
    (detail,) = logged_details(caplog)
    assert "missing" in detail or "'HTTPS on'" in detail


@pytest.mark.usefixtures("tls")
def test_a_browser_without_tls_is_redirected_and_a_program_is_told(key: str) -> None:
    plain = {"X-Forwarded-Proto": "http", "Authorization": f"Bearer {key}"}
    client = at(HOST, **plain)
    answer = client.get("/accounts/login/")
    assert (answer.status_code, answer.headers["Location"]) == (301, f"{BASE}/accounts/login/")
    answer = client.post("/api/v1/events", "[]", content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["code"] == "not_secure"
    assert client.get("/readyz").status_code != 400


@pytest.mark.usefixtures("tls")
def test_tls_at_the_proxy_is_served() -> None:
    client = at(HOST, **TLS)
    assert client.get("/accounts/login/").status_code == 200


@pytest.mark.parametrize("path", ["/accounts/login/", "/api/v1/failures"])
def test_fewer_forwarded_addresses_than_proxies_are_no_fault_of_ours(
    settings: Settings, path: str
) -> None:
    settings.FAILSOFT_TRUSTED_PROXIES = settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    client = at(HOST, raise_request_exception=False)
    answer = client.post(path, FORM, headers={"X-Forwarded-For": "192.0.2.1"})
    assert answer.status_code == 400
    assert "FAILSOFT_TRUSTED_PROXIES" in answer.content.decode()


@pytest.mark.parametrize(("proxies", "sent"), [(1, {}), (0, {"X-Forwarded-For": "192.0.2.1"})])
def test_unknown_addresses_of_clients_are_logged_once(
    settings: Settings, caplog: pytest.LogCaptureFixture, proxies: int, sent: dict[str, str]
) -> None:
    settings.FAILSOFT_TRUSTED_PROXIES = settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    for _ in range(3):
        client = at(HOST)
        assert client.get("/accounts/login/", headers=sent).status_code == 200
    (detail,) = logged_details(caplog)
    assert f"FAILSOFT_TRUSTED_PROXIES is {proxies}" in detail

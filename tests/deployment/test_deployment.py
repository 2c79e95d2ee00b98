"""The way of docs/deployment.md, from empty servers to a page that is signed in over TLS."""

import base64
import hmac
import json
import os
import re
import shutil
import ssl
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql

from tests.deployment.installation import DEPLOYMENT, UNITS, Deployment, printed
from tests.diagnostics.builders import degraded
from tests.faults.stack import eventually
from tests.test_commands_as_printed import TOP

PROGRAMS = ("nginx", "caddy", "openssl", "runuser", "rabbitmqctl", "pg_dump", "systemd-analyze")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=f"root, and {MISSING}"),
]
COUNTED = ("diagnostics_event", "auth_user", "diagnostics_apikey", "django_migrations")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Roles, database, virtual host and certificate, with the folders; all gone at the end."""
    made = Deployment(tmp_path_factory.mktemp("deployment"))
    made.folder.chmod(0o755)
    for name in ("etc", "var", "tls"):
        (made.folder / name).mkdir()
    made.shell(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        " -addext subjectAltName=DNS:localhost -keyout tls/key.pem -out tls/fullchain.pem"
    )
    try:
        made.run(printed("CREATE ROLE"))
        yield made
    finally:
        for what in (
            f"DATABASE {made.name}",
            f"DATABASE {made.name}_restored",
            f"ROLE {made.name}",
        ):
            made.shell(f"cd / && runuser -u postgres -- psql -qc 'DROP {what}' || true")
        made.shell(f"rabbitmqctl delete_vhost {made.name}; rabbitmqctl delete_user {made.name}")


@pytest.fixture(scope="module")
def printed_once(deployment: Deployment) -> dict[str, str]:
    """The password and the key that the commands of the first start print."""
    deployment.fill_in()
    output = deployment.run(printed("create_admin"))
    password, key = re.findall(r"^(?:Password: )?(\S{20,})$", output, re.MULTILINE)
    return {"password": password, "key": key}


@pytest.fixture(scope="module")
def running(deployment: Deployment, printed_once: dict[str, str]) -> Iterator[Deployment]:
    """Every process of the units."""
    with deployment.processes():
        assert eventually(lambda: is_ready(deployment), 120), logs(deployment)
        yield deployment


def is_ready(deployment: Deployment) -> bool:
    """Whether database, broker, workers and beat work."""
    try:
        return httpx.get(f"http://127.0.0.1:{deployment.port}/readyz").is_success
    except httpx.TransportError:
        return False


def logs(deployment: Deployment) -> str:
    return "\n".join(deployment.log(name).read_text(encoding="utf-8") for name in UNITS)


@contextmanager
def proxy(deployment: Deployment, program: str) -> Iterator[httpx.Client]:
    """Run a proxy with its printed file; yield a browser that trusts its certificate."""
    command = PROXIES[program](deployment)
    with (deployment.folder / f"{program}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=deployment.folder, env=deployment.environment(), stdout=log, stderr=log
        )
    trust = ssl.create_default_context(cafile=deployment.folder / "tls" / "fullchain.pem")
    try:
        with httpx.Client(base_url=deployment.url, verify=trust, follow_redirects=True) as browser:
            assert eventually(lambda: answers(browser), 30), deployment.log(program).read_text()
            yield browser
    finally:
        process.terminate()
        process.wait(30)


def answers(browser: httpx.Client) -> bool:
    """Whether anybody answers at the address."""
    try:
        return browser.get("/healthz").is_success
    except httpx.TransportError:
        return False


def nginx(deployment: Deployment) -> list[str]:
    """Return the command of nginx with the printed server, on ports that are free."""
    text = deployment.place((DEPLOYMENT / "nginx.conf").read_text(encoding="utf-8"))
    text = text.replace("listen 443", f"listen 127.0.0.1:{deployment.tls_port}")
    text = text[: text.rindex("server {")].replace("failsoft.example.org", "localhost")
    path = deployment.folder / "nginx.conf"
    path.write_text(f"pid nginx.pid;\nevents {{}}\nhttp {{\n{text}}}\n", encoding="utf-8")
    return ["nginx", "-p", str(deployment.folder), "-c", str(path), "-g", "daemon off;"]


def caddy(deployment: Deployment) -> list[str]:
    """Return the command of Caddy with the printed site and a certificate of ours."""
    text = deployment.place((DEPLOYMENT / "Caddyfile").read_text(encoding="utf-8"))
    site = f"{deployment.url} {{\n\ttls tls/fullchain.pem tls/key.pem"
    text = text.replace("failsoft.example.org {", site)
    path = deployment.folder / "Caddyfile"
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
    path.write_text(options + text, encoding="utf-8")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(path)]


PROXIES = {"nginx": nginx, "caddy": caddy}


def submit(browser: httpx.Client, page: httpx.Response, **fields: str) -> httpx.Response:
    """Send the form of a page, as a browser does."""
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token, page.text
    answer = browser.post(
        page.url,
        data={"csrfmiddlewaretoken": token[1], **fields},
        headers={"Referer": str(page.url), "Origin": str(browser.base_url).rstrip("/")},
    )
    assert answer.is_success, answer.text
    return answer


def code_of(secret: str) -> str:
    """Return the six digits that an authenticator app shows now (RFC 6238)."""
    digest = hmac.digest(
        base64.b32decode(secret), struct.pack(">Q", int(time.time()) // 30), "sha1"
    )
    number = struct.unpack_from(">I", digest, digest[-1] & 15)[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


def test_the_example_of_the_environment_is_refused_until_it_is_filled_in(
    deployment: Deployment,
) -> None:
    deployment.fill_in()
    filled = deployment.env_file.read_text(encoding="utf-8")
    names = ("DATABASE_URL", "BROKER_URL", "FAILSOFT_BASE_URL", "FAILSOFT_EMAIL_URL")
    text = filled
    for line in deployment.example().splitlines():
        if line.startswith(names):
            name = line.partition("=")[0]
            text = re.sub(rf"^{name}=.*$", line, text, flags=re.MULTILINE)
    deployment.env_file.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError) as refusal:
        deployment.shell(
            f"cd {TOP}; FAILSOFT_ENV_FILE={deployment.env_file} python manage.py check --deploy"
        )
    refused = re.findall(r"config.E008\) (\w+) still has", str(refusal.value))
    assert sorted(refused) == sorted(names)


@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_each_unit(deployment: Deployment, name: str) -> None:
    path = deployment.folder / f"failsoft-{name}.service"
    path.write_text(deployment.unit(name), encoding="utf-8")
    assert deployment.shell(f"systemd-analyze verify {path}") == ""


@pytest.mark.parametrize("program", ["nginx", "caddy"])
def test_a_first_administrator_ends_signed_in_over_tls(
    running: Deployment, printed_once: dict[str, str], program: str
) -> None:
    with proxy(running, program) as browser:
        login = browser.get("/")
        assert login.url.path == "/accounts/login/"
        assert login.headers["strict-transport-security"] == "max-age=31536000"
        page = submit(browser, login, login="ann", password=printed_once["password"])
        secret = running.folder / "totp"
        if not secret.exists():
            page = browser.get("/accounts/2fa/totp/activate/")
            found = re.search(r'id="authenticator_secret"[^>]*value="(\w+)"', page.text)
            found = found or re.search(r'value="(\w+)"[^>]*id="authenticator_secret"', page.text)
            assert found, page.text
            secret.write_text(found[1], encoding="utf-8")
            submit(browser, page, code=code_of(found[1]))
        else:
            submit(browser, page, code=code_of(secret.read_text(encoding="utf-8")))
        now = browser.get("/")
        assert now.url.path == "/"
        assert "Log out" in now.text or "Sign out" in now.text
        assert all(cookie.secure for cookie in browser.cookies.jar)


def test_an_event_that_an_agent_posts_is_counted(
    running: Deployment, printed_once: dict[str, str]
) -> None:
    headers = {"Authorization": f"Bearer {printed_once['key']}"}
    run = f"run-{uuid4().hex[:8]}"
    event = degraded(correlation_id=run, occurred_at=datetime.now(UTC).isoformat())
    with proxy(running, "nginx") as agent:
        answer = agent.post("/api/v1/events", json=[event], headers=headers)
        assert answer.json()["accepted"] == 1, answer.text
        listed = httpx.Request(
            "GET", f"{running.url}/api/v1/runs?correlation_id={run}", headers=headers
        )
        assert eventually(lambda: agent.send(listed).json()["items"] != [], 60)
        families = {
            one.name
            for one in text_string_to_metric_families(agent.get("/metrics", headers=headers).text)
        }
    assert "failsoft_runs" in families


def test_every_line_that_the_processes_log_is_json(running: Deployment) -> None:
    for name in UNITS:
        lines = running.log(name).read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if not is_object(line)] == [], name


def is_object(line: str) -> bool:
    """Whether a line is one JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_a_backup_is_private_and_restores_to_equal_numbers(running: Deployment) -> None:
    running.run(printed("pg_dump"))
    assert running.dump.stat().st_mode & 0o777 == 0o600
    restored = f"{running.name}_restored"
    running.shell(f"cd / && runuser -u postgres -- createdb --owner={running.name} {restored}")
    running.run(printed("pg_restore"))
    assert counts(running, restored) == counts(running, running.name)


def counts(deployment: Deployment, database: str) -> list[int]:
    """Return how many rows some tables have."""
    url = deployment.settings()["DATABASE_URL"].rpartition("/")[0]
    count = sql.SQL("SELECT count(*) FROM {}")
    with psycopg.connect(f"{url}/{database}") as connection:
        rows = [
            connection.execute(count.format(sql.Identifier(table))).fetchone() for table in COUNTED
        ]
    return [row[0] for row in rows if row]
